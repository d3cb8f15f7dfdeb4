"""Events from files and Kafka topics, as DataFrames, streaming or batch.

Every source has the columns of the schema, and in each row a verdict: `_bad` is null, or the reason
why the record cannot be read. In that case the columns of the schema are null, `_record` has the
text of the record and `_source` its location, so that nothing is lost: `split_bad` separates good
and bad rows.

Schema drift is a value whose type differs from that of the schema. With ``drift="bad"`` such a
record is bad; with ``drift="error"`` the batch fails with a message that names the column. Columns
that are not in the schema are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast, get_args

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import ConnectorError
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE, VERDICT_FIELDS, event_schema
from tidegate.spark.sources.json_records import VALUE, JsonReader
from tidegate.spark.sources.parquet_files import ParquetReader
from tidegate.spark.storage.locations import credentials_of, scheme_of, spark_location

Drift = Literal["bad", "error"]
FileFormat = Literal["json", "parquet"]
KafkaField = Literal["topic", "partition", "offset", "timestamp"]

_FILE_SCHEMA = "path string, modificationTime timestamp, length bigint, content binary"
_WHITESPACE = " \t\r\n"


def kafka_events(
    spark: SparkSession,
    servers: str,
    topic: str,
    schema: str | t.StructType,
    *,
    key: str | None = "key",
    headers: Sequence[str] = (),
    header: str = "header",
    keep: Sequence[KafkaField] = (),
    drift: Drift = "bad",
    starting: str = "earliest",
    options: Mapping[str, str] | None = None,
    streaming: bool = True,
) -> DataFrame:
    """Events from a Kafka topic whose values are JSON objects.

    The record's key becomes the column ``key``, a string, unless that is None. The named
    ``headers`` become one column ``header``, a struct: the attribute is ``header.<name>``, and of
    several headers with the same name the last one counts, as in Kafka. ``keep`` adds fields of the
    record under their own names. ``options`` are those of Spark's Kafka connector, such as
    ``maxOffsetsPerTrigger`` or ``kafka.security.protocol``. A record without a value, a tombstone,
    is bad.
    """
    _choose("drift", drift, get_args(Drift))
    for name in keep:
        _choose("keep", name, get_args(KafkaField))
    extra = [*([] if key is None else [key]), *([header] if headers else []), *keep]
    if len(set(extra)) < len(extra):
        raise ConnectorError(f"two columns of the source have one name: {', '.join(extra)}")
    checked = event_schema(schema, frozenset(extra))
    all_options = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": starting,
        "includeHeaders": str(bool(headers)).lower(),
        **(options or {}),
    }
    reader = _reader(spark, streaming).format("kafka").options(**all_options)
    records = _load(reader, None, f"topic {topic!r}")
    source = f.concat_ws("/", "topic", "partition", "offset").alias(SOURCE)
    columns = [f.col("value").alias(VALUE), source]
    if key is not None:
        columns.append(_to_string(f.col("key")).alias(key))
    if headers:
        columns.append(f.struct(*map(_header, headers)).alias(header))
    columns += [f.col(name) for name in keep]
    return _read_json(records.select(*columns), checked, drift)


def file_events(
    spark: SparkSession,
    path: str,
    format: FileFormat,
    schema: str | t.StructType,
    *,
    drift: Drift = "bad",
    options: Mapping[str, str] | None = None,
    streaming: bool = True,
) -> DataFrame:
    """Events from the JSON Lines or Parquet files of a folder.

    ``options`` are those of Spark's file source, such as ``maxFilesPerTrigger`` or
    ``pathGlobFilter``. Blank lines are skipped. A Parquet file is good or bad as a whole; the row
    for a bad one has no text in `_record`. With ``drift="bad"`` Parquet files are read by Arrow in
    Spark's workers, one file at a time; they must be in a storage that `locations.py` lists. A path
    without a scheme is one of the local system, whatever Spark's default file system is.
    """
    _choose("format", format, get_args(FileFormat))
    _choose("drift", drift, get_args(Drift))
    checked = event_schema(schema)
    reader = _reader(spark, streaming).options(**(options or {}))
    location = spark_location(path)
    if format == "json":
        lines = _load(reader.format("text"), location, path)
        records = lines.where(f.trim("value", f.lit(_WHITESPACE)) != "").select(
            f.col("value").cast("binary").alias(VALUE), f.col("_metadata.file_path").alias(SOURCE)
        )
        return _read_json(records, checked, drift)
    if drift == "error":
        rows = _load(reader.schema(checked).format("parquet"), location, path)
        return rows.select("*", *_no_verdict())
    scheme_of(path)  # raises if Arrow has no such storage
    if "pathGlobFilter" not in (options or {}):
        reader = reader.option("pathGlobFilter", "*.parquet")
    # Spark only lists the files: it loads no content, because the column is not selected.
    files = _load(reader.schema(_FILE_SCHEMA).format("binaryFile"), location, path).select("path")
    output = t.StructType([*checked.fields, *VERDICT_FIELDS])
    return files.mapInArrow(ParquetReader(checked, credentials_of(spark)), output)


def split_bad(events: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The good events without their verdict, and the bad records as `record`, `reason`, `source`.

    In a micro-batch, persist the events first; otherwise they are read twice.
    """
    missing = [name for name in (BAD, RECORD, SOURCE) if name not in events.columns]
    if missing:
        raise ConnectorError(
            f"the events have no column {missing[0]!r}, so they are not from a Tidegate source; "
            f"their columns are {', '.join(events.columns)}"
        )
    good = events.where(f.col(BAD).isNull()).drop(BAD, RECORD, SOURCE)
    bad = events.where(f.col(BAD).isNotNull()).select(
        f.col(RECORD).alias("record"), f.col(BAD).alias("reason"), f.col(SOURCE).alias("source")
    )
    return good, bad


def _read_json(records: DataFrame, schema: t.StructType, drift: Drift) -> DataFrame:
    passed = [each for each in records.schema.fields if each.name not in (VALUE, SOURCE)]
    output = t.StructType([*schema.fields, *passed, *VERDICT_FIELDS])
    return records.mapInArrow(JsonReader(schema, drift == "error"), output)


def _header(name: str) -> Column:
    same_name = f.filter("headers", lambda each: each["key"] == f.lit(name))
    return _to_string(f.try_element_at(same_name, f.lit(-1))["value"]).alias(name)


def _to_string(raw: Column) -> Column:
    """Bytes as a string; bytes that are not UTF-8 are replaced, because no string can hold them."""
    return f.make_valid_utf8(raw.cast("string"))


def _no_verdict() -> list[Column]:
    return [f.lit(None).cast("string").alias(field.name) for field in VERDICT_FIELDS]


def _reader(spark: SparkSession, streaming: bool) -> DataFrameReader:
    # The two readers have the methods used here in common, but no base class.
    return cast(DataFrameReader, spark.readStream) if streaming else spark.read


def _load(reader: DataFrameReader, path: str | None, name: str) -> DataFrame:
    try:
        return reader.load(path) if path is not None else reader.load()
    except AnalysisException as error:
        if "kafka" in str(error).lower() and "find data source" in str(error).lower():
            raise ConnectorError(
                "this Spark session has no Kafka connector; "
                "add the jars of tidegate.spark.connectors.kafka_jars() to its spark.jars"
            ) from error
        raise ConnectorError(f"{name} cannot be read: {error}") from error


def _choose(name: str, choice: str, choices: Sequence[str]) -> None:
    if choice not in choices:
        raise ConnectorError(f"{name} is {choice!r}; it can be {', '.join(choices)}")
