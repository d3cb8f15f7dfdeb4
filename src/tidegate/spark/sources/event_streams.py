"""Streams of events, as DataFrames.

Every source gives the columns of the schema, and in each row a verdict: `_bad` is null, or says why
the record cannot be taken. Then the other columns are null, `_record` has the record and `_source`
the place that it came from, so that nothing is lost: `split_bad` tells the two kinds apart.

A column whose type is another than the schema says is drift. By ``drift="bad"`` such records are
bad ones; by ``drift="error"`` the batch fails with a message that names the column. A column that
the schema does not name is not read.
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

Drift = Literal["bad", "error"]
FileFormat = Literal["json", "parquet"]
KafkaField = Literal["topic", "partition", "offset", "timestamp"]

_FILES = "path string, modificationTime timestamp, length bigint, content binary"
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

    The record's key becomes the column ``key``, a string, unless that is None. The ``headers`` that
    are named become one column ``header``, a struct: Tidegate's attribute is ``header.<name>``, and
    if a name stands twice the last one counts, as in Kafka. ``keep`` adds fields of the record
    under their own names. ``options`` go to Spark's Kafka connector, as ``maxOffsetsPerTrigger`` or
    ``kafka.security.protocol``. A record without a value, a tombstone, is a bad one.
    """
    _choose("drift", drift, get_args(Drift))
    for name in keep:
        _choose("keep", name, get_args(KafkaField))
    extra = [*([] if key is None else [key]), *([header] if headers else []), *keep]
    if len(set(extra)) < len(extra):
        raise ConnectorError(f"two columns of the source have one name: {', '.join(extra)}")
    checked = event_schema(schema, frozenset(extra))
    given = {
        "kafka.bootstrap.servers": servers,
        "subscribe": topic,
        "startingOffsets": starting,
        "includeHeaders": str(bool(headers)).lower(),
        **(options or {}),
    }
    reader = _reader(spark, streaming).format("kafka").options(**given)
    records = _load(reader, None, f"topic {topic!r}")
    source = f.concat_ws("/", "topic", "partition", "offset").alias(SOURCE)
    columns = [f.col("value").alias(VALUE), source]
    if key is not None:
        columns.append(_text(f.col("key")).alias(key))
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
    """Events from the files of a folder, JSON Lines or Parquet.

    ``options`` go to Spark's file source, as ``maxFilesPerTrigger`` or ``pathGlobFilter``. Blank
    lines are no records. A Parquet file is good or bad as a whole, and its bad record has no text.
    With ``drift="bad"`` Parquet is read by Arrow in Spark's workers, a file at a time, from where
    Arrow can read: local and mounted folders, and the stores that Arrow has a name for.
    """
    _choose("format", format, get_args(FileFormat))
    _choose("drift", drift, get_args(Drift))
    checked = event_schema(schema)
    reader = _reader(spark, streaming).options(**(options or {}))
    if format == "json":
        lines = _load(reader.format("text"), path, path)
        records = lines.where(f.trim("value", f.lit(_WHITESPACE)) != "").select(
            f.col("value").cast("binary").alias(VALUE), f.col("_metadata.file_path").alias(SOURCE)
        )
        return _read_json(records, checked, drift)
    if drift == "error":
        rows = _load(reader.schema(checked).format("parquet"), path, path)
        return rows.select("*", *_no_verdict())
    if "pathGlobFilter" not in (options or {}):
        reader = reader.option("pathGlobFilter", "*.parquet")
    # Only the path is asked for, so the content is not loaded.
    files = _load(reader.schema(_FILES).format("binaryFile"), path, path).select("path")
    output = t.StructType([*checked.fields, *VERDICT_FIELDS])
    return files.mapInArrow(ParquetReader(checked), output)


def split_bad(events: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The good events without their verdict, and the bad ones as `record`, `reason`, `source`.

    In a micro-batch, persist the events first; else they are read twice.
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
    named = f.filter("headers", lambda each: each["key"] == f.lit(name))
    return _text(f.try_element_at(named, f.lit(-1))["value"]).alias(name)


def _text(raw: Column) -> Column:
    """Bytes as a string; what is not UTF-8 is replaced, because no string can hold it."""
    return f.make_valid_utf8(raw.cast("string"))


def _no_verdict() -> list[Column]:
    return [f.lit(None).cast("string").alias(field.name) for field in VERDICT_FIELDS]


def _reader(spark: SparkSession, streaming: bool) -> DataFrameReader:
    # The two readers share all that is used here, but no class.
    return cast(DataFrameReader, spark.readStream) if streaming else spark.read


def _load(reader: DataFrameReader, path: str | None, name: str) -> DataFrame:
    try:
        return reader.load(path) if path is not None else reader.load()
    except AnalysisException as error:
        if "kafka" in str(error).lower() and "find data source" in str(error).lower():
            raise ConnectorError(
                "this Spark session has no Kafka connector; "
                "put what tidegate.spark.connectors.kafka_jars() gives into its spark.jars"
            ) from error
        raise ConnectorError(f"{name} cannot be read: {error}") from error


def _choose(name: str, choice: str, choices: Sequence[str]) -> None:
    if choice not in choices:
        raise ConnectorError(f"{name} is {choice!r}; it can be {', '.join(choices)}")
