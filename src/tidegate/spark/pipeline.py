"""A pipeline built from its settings: the source, the subscriptions, the sink and the query."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import ConnectorError, NetworkError, TidegateError
from tidegate.language.spaces import Space
from tidegate.matching.json_lines import decode_line, non_blank_lines
from tidegate.matching.space_file import read_space
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.columns import check_events
from tidegate.spark.connectors import kafka_jars, s3_jars
from tidegate.spark.log import datasource
from tidegate.spark.pipeline_settings import PipelineSettings, SinkSettings, SourceSettings
from tidegate.spark.session import local_session
from tidegate.spark.sinks.broker import BrokerSink
from tidegate.spark.sinks.console import ConsoleSink
from tidegate.spark.sinks.delta import DeltaSink
from tidegate.spark.sinks.event_log import LogSink
from tidegate.spark.sinks.kafka import KafkaSink
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.sink import Sink
from tidegate.spark.sources.event_schemas import check_in_space, event_schema
from tidegate.spark.sources.event_streams import file_events, kafka_events
from tidegate.spark.storage.folder import as_connector_error
from tidegate.spark.storage.locations import (
    Credentials,
    credentials_of,
    folder_at,
    is_uri,
    local_path,
    scheme_of,
    spark_location,
)
from tidegate.spark.streaming.deliver import deliver
from tidegate.spark.streaming.initial_changes import initial_changes
from tidegate.spark.streaming.micro_batch import BatchReport
from tidegate.spark.subscription_tables import build_matcher, read_versions

HEADER = "header"
"""The struct that has the headers of a Kafka record."""


def session_for(settings: PipelineSettings) -> SparkSession:
    """A Spark session for a pipeline, or the existing one of this process."""
    jars = [
        *(kafka_jars() if settings.needs_kafka else []),
        *(s3_jars() if settings.needs_s3 else []),
    ]
    spark_settings = {name: str(value) for name, value in settings.spark.items()}
    spark = local_session("tidegate-pipeline", jars=jars, settings=spark_settings)
    datasource.register(spark)
    return spark


def check_paths(settings: PipelineSettings) -> None:
    """Check that the files a pipeline reads exist, as far as that can be seen without Spark, and
    that there is a storage for those it writes.
    """
    subscriptions = settings.subscriptions
    paths = [
        ("source", settings.source.path),
        ("subscriptions", subscriptions.changes),
        ("subscriptions", subscriptions.table),
        ("subscriptions", subscriptions.initial),
    ]
    for table, path in paths:
        if path is not None and not is_uri(path) and not Path(path).exists():
            raise ConnectorError(f"[{table}] there is no {path}")
    checkpoint = settings.checkpoint
    for table, location in (("checkpoint", checkpoint.path), ("checkpoint", checkpoint.rejected)):
        if location is not None:
            with _in_table(table):
                scheme_of(location)
    with _in_table("sink"):
        sink_of(settings)
    with _in_table("source"):
        if settings.source.format == "tidegate":
            local_path(settings.source.path or "", "an event log")
        elif settings.source.format == "broker":
            BrokerOptions.of(_broker_options(settings.source))
    space_of(settings)


@contextmanager
def _in_table(table: str) -> Iterator[None]:
    """Name the table of the file in errors about it."""
    try:
        yield
    except ConnectorError as error:
        raise ConnectorError(f"[{table}] {error}") from None


def check(settings: PipelineSettings, spark: SparkSession) -> int | None:
    """Check that a pipeline can run, without reading events.

    Returns the number of subscriptions if they are a table, else None.
    """
    check_paths(settings)
    _check_brokers(settings)
    checkpoint = folder_at(settings.checkpoint.path, credentials_of(spark))
    with _in_table("checkpoint"), as_connector_error(checkpoint):
        checkpoint.names()
    source = settings.source
    schema = event_schema(source.schema)
    # An empty table stands for the stream, because starting the source would need Kafka or files.
    check_events(spark.createDataFrame([], schema), source.event_time)
    space = space_of(settings)
    if space is not None:
        try:
            check_in_space(_with_kafka_columns(schema, source), space)
        except ConnectorError as error:
            raise ConnectorError(f"[source] schema: {error}") from None
    initial = _initial(settings, spark)
    if initial is not None:
        initial_changes(initial, source.event_time, space)  # raises an error for a bad subscription
    if settings.subscriptions.table is None:
        return None
    table = read_table(settings.subscriptions.table, credentials_of(spark))
    timeless = source.event_time is None
    versions = read_versions(table, timeless=timeless, skip_bad=False, space=space)
    build_matcher(versions, skip_bad=False)  # raises an error for a bad subscription
    return sum(each.until is None for each in versions)


def _with_kafka_columns(schema: t.StructType, source: SourceSettings) -> t.StructType:
    """A schema with the columns for the key and the headers of Kafka records."""
    keys = [] if source.key is None else [t.StructField(source.key, t.StringType())]
    headers = t.StructType([t.StructField(name, t.StringType()) for name in source.headers])
    return t.StructType([*schema.fields, *keys, t.StructField(HEADER, headers)])


def space_of(settings: PipelineSettings) -> Space | None:
    """The space of a pipeline; raises SpaceError that names its file."""
    return None if settings.source.space is None else read_space(settings.source.space)


def start(
    settings: PipelineSettings,
    spark: SparkSession,
    report: Callable[[BatchReport], None] | None = None,
) -> StreamingQuery:
    """Start a pipeline; returns the running query."""
    sink, trigger = settings.sink, settings.trigger
    spark_trigger: dict[str, Any] | None = None
    if trigger.once:
        spark_trigger = {"availableNow": True}
    elif trigger.every is not None:
        spark_trigger = {
            "processingTime": f"{round(trigger.every.total_seconds() * 1000)} milliseconds"
        }
    rejected_path = settings.checkpoint.rejected
    return deliver(
        source_of(settings, spark),
        subscriptions_of(settings, spark),
        sink_of(settings),
        event_time=settings.source.event_time,
        checkpoint=settings.checkpoint.path,
        lateness=settings.subscriptions.lateness,
        key=sink.columns,
        grouped=sink.grouped,
        variables=settings.variables,
        rejected=ParquetSink(
            rejected_path or f"{settings.checkpoint.path}/rejected",
            keep_batches=settings.checkpoint.keep_rejected,
        ),
        trigger=spark_trigger,
        report=report,
        name="tidegate",
        space=space_of(settings),
        ahead=settings.source.ahead,
        initial=_initial(settings, spark),
    )


def _initial(settings: PipelineSettings, spark: SparkSession) -> pa.Table | None:
    """The table that a stream of changes begins with, if there is one."""
    path = settings.subscriptions.initial
    return None if path is None else read_table(path, credentials_of(spark))


def source_of(settings: PipelineSettings, spark: SparkSession) -> DataFrame:
    """The stream of events."""
    source = settings.source
    options = _spark_options(source.options)
    if source.format == "kafka":
        return kafka_events(
            spark, source.servers or "", source.topic or "", source.schema, key=source.key,
            headers=source.headers, header=HEADER, starting=source.starting, options=options,
            drift="error" if source.drift == "error" else "bad",
        )  # fmt: skip
    if source.format in ("tidegate", "broker"):
        reader = spark.readStream.format("tidegate").schema(event_schema(source.schema))
        if source.format == "broker":
            return reader.options(**_broker_options(source)).load()
        return reader.options(**options).load(source.path)
    return file_events(
        spark, source.path or "", "parquet" if source.format == "parquet" else "json",
        source.schema, options=options, drift="error" if source.drift == "error" else "bad",
    )  # fmt: skip


def subscriptions_of(settings: PipelineSettings, spark: SparkSession) -> DataFrame | pa.Table:
    """The table of subscriptions, or a stream of changes as JSON in a column `value`."""
    subscriptions = settings.subscriptions
    if subscriptions.table is not None:
        return read_table(subscriptions.table, credentials_of(spark))
    if subscriptions.topic is not None:
        kafka_reader = spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": subscriptions.servers or "",
                "subscribe": subscriptions.topic,
                "startingOffsets": subscriptions.starting,
                **_spark_options(subscriptions.options),
            }
        )
        return kafka_reader.load().selectExpr("cast(value as string) as value")
    reader = spark.readStream.options(**_spark_options(subscriptions.options))
    lines = reader.text(spark_location(subscriptions.changes or ""))
    return lines.where("trim(value) != ''")  # blank lines are not changes


def sink_of(settings: PipelineSettings) -> Sink:
    """The sink for deliveries."""
    sink = settings.sink
    match sink.format:
        case "parquet":
            return ParquetSink(sink.path or "", keep_batches=sink.keep_batches)
        case "delta":
            return DeltaSink(sink.path or "", compact_every=sink.compact_every)
        case "kafka":
            return KafkaSink(sink.servers or "", sink.topic or "", sink.key, mode=sink.mode)
        case "tidegate":
            return LogSink(sink.path or "")
        case "broker":
            return BrokerSink(_broker_options(sink))
        case _:
            return ConsoleSink()


def read_table(path: str, credentials: Credentials) -> pa.Table:
    """Read a table of subscriptions or a change log from a JSON Lines or Parquet file."""
    parent, slash, name = path.rpartition("/")
    folder = folder_at(parent + slash, credentials)
    try:
        if path.endswith(".parquet"):
            with folder.open_input(name) as source:
                return pq.read_table(source)
        lines = non_blank_lines(io.BytesIO(folder.read(name)))
        return _to_table([_parse_line(line, f"{path}:{number}") for number, line in lines])
    except OSError as error:
        raise ConnectorError(f"{path}: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise ConnectorError(f"{path}: {error}") from None


def _parse_line(line: bytes, where: str) -> dict[str, object]:
    try:
        return decode_line(line)
    except TidegateError as error:
        raise ConnectorError(f"{where}: {error}") from None


def _to_table(rows: list[dict[str, object]]) -> pa.Table:
    """Rows as an Arrow table.

    Parameters stay JSON: their names and types differ from row to row, and a column has one type.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if name == "params":
            values = [None if each is None else json.dumps(each) for each in values]
        columns[name] = pa.array(values)
    return pa.table(columns)


def _broker_options(table: SourceSettings | SinkSettings) -> dict[str, str]:
    """The options of `format("tidegate")` for the broker of a table."""
    options = {"broker": table.broker, "identity": table.identity}
    if isinstance(table, SourceSettings):
        options["filter"] = table.filter
    given = {name: value for name, value in options.items() if value is not None}
    return {**_spark_options(table.options), **given}


def _check_brokers(settings: PipelineSettings) -> None:
    """Check that the brokers of a pipeline answer, by another identity than that of the pipeline,
    which may be running."""
    for name, table in (("source", settings.source), ("sink", settings.sink)):
        if table.format == "broker":
            with _in_table(name):
                options = BrokerOptions.of({"timeout": "10", **_broker_options(table)})
                try:
                    options.connect(None).close()
                except NetworkError as error:
                    raise ConnectorError(str(error)) from None


def _spark_options(options: Mapping[str, Any]) -> dict[str, str]:
    """Options of the TOML file as the strings that Spark expects."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
