"""A pipeline from its settings: source, subscriptions, sink and the query that joins them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import ConnectorError, TidegateError
from tidegate.matching.json_lines import decode_line, filled_lines
from tidegate.spark.columns import check_events
from tidegate.spark.connectors import kafka_jars
from tidegate.spark.log import datasource
from tidegate.spark.session import local_session
from tidegate.spark.settings import PipelineSettings
from tidegate.spark.sinks.delta import DeltaSink
from tidegate.spark.sinks.sink import ConsoleSink, KafkaSink, LogSink, ParquetSink, Sink
from tidegate.spark.sources.event_schemas import event_schema
from tidegate.spark.sources.event_streams import file_events, kafka_events
from tidegate.spark.streaming.stream import BatchReport, deliver
from tidegate.spark.subscriptions import matcher_of, read_versions


def session_for(settings: PipelineSettings) -> SparkSession:
    """A Spark session with what a pipeline needs, or the one that is there."""
    jars = kafka_jars() if settings.needs_kafka else []
    given = {name: str(value) for name, value in settings.spark.items()}
    master = given.pop("spark.master", "local[*]")
    spark = local_session("tidegate-pipeline", master=master, jars=jars, settings=given)
    datasource.register(spark)
    return spark


def check_places(settings: PipelineSettings) -> None:
    """See that what a pipeline reads from is there, as far as that is known without Spark."""
    chosen = settings.subscriptions
    places = [
        ("source", settings.source.path),
        ("subscriptions", chosen.changes),
        ("subscriptions", chosen.table),
    ]
    for name, path in places:
        if path is not None and "://" not in path and not Path(path).exists():
            raise ConnectorError(f"[{name}] there is no {path}")


def check(settings: PipelineSettings, spark: SparkSession) -> int | None:
    """See that a pipeline could run, without reading events.

    Gives the number of subscriptions, where they are a table.
    """
    check_places(settings)
    source = settings.source
    schema = event_schema(source.schema)
    check_events(spark.createDataFrame([], schema), source.event_time)
    if settings.subscriptions.table is None:
        return None
    table = read_table(settings.subscriptions.table)
    versions = read_versions(table, timeless=source.event_time is None, skip_bad=False)
    return len(matcher_of(versions, skip_bad=False))


def start(
    settings: PipelineSettings,
    spark: SparkSession,
    report: Callable[[BatchReport], None] | None = None,
) -> StreamingQuery:
    """Start a pipeline."""
    sink, trigger = settings.sink, settings.trigger
    given: dict[str, Any] | None = None
    if trigger.once:
        given = {"availableNow": True}
    elif trigger.every is not None:
        given = {"processingTime": f"{round(trigger.every.total_seconds() * 1000)} milliseconds"}
    aside = settings.checkpoint.aside
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
        aside=None if aside is None else ParquetSink(aside),
        trigger=given,
        report=report,
        name="tidegate",
    )


def source_of(settings: PipelineSettings, spark: SparkSession) -> DataFrame:
    """The stream of events."""
    source = settings.source
    options = _texts(source.options)
    if source.format == "kafka":
        return kafka_events(
            spark, source.servers or "", source.topic or "", source.schema, key=source.key,
            headers=source.headers, starting=source.starting, options=options,
            drift="error" if source.drift == "error" else "bad",
        )  # fmt: skip
    if source.format == "tidegate":
        reader = spark.readStream.format("tidegate").schema(event_schema(source.schema))
        return reader.options(**options).load(source.path)
    return file_events(
        spark, source.path or "", "parquet" if source.format == "parquet" else "json",
        source.schema, options=options, drift="error" if source.drift == "error" else "bad",
    )  # fmt: skip


def subscriptions_of(settings: PipelineSettings, spark: SparkSession) -> DataFrame | pa.Table:
    """The table of subscriptions, or the stream of changes, as JSON in a column `value`."""
    chosen = settings.subscriptions
    if chosen.table is not None:
        return read_table(chosen.table)
    if chosen.topic is not None:
        reader = spark.readStream.format("kafka").options(
            **{
                "kafka.bootstrap.servers": chosen.servers or "",
                "subscribe": chosen.topic,
                "startingOffsets": chosen.starting,
                **_texts(chosen.options),
            }
        )
        return reader.load().selectExpr("cast(value as string) as value")
    lines = spark.readStream.options(**_texts(chosen.options)).text(chosen.changes or "")
    return lines.where("trim(value) != ''")


def sink_of(settings: PipelineSettings) -> Sink:
    """Where deliveries go."""
    sink = settings.sink
    match sink.format:
        case "parquet":
            return ParquetSink(sink.path or "")
        case "delta":
            return DeltaSink(sink.path or "")
        case "kafka":
            return KafkaSink(sink.servers or "", sink.topic or "", sink.key)
        case "tidegate":
            return LogSink(sink.path or "")
        case _:
            return ConsoleSink()


def read_table(path: str) -> pa.Table:
    """A table of subscriptions or a log of changes, from JSON Lines or Parquet."""
    try:
        if path.endswith(".parquet"):
            return pq.read_table(path)
        with open(path, "rb") as file:
            return _as_table([_row(line, f"{path}:{at}") for at, line in filled_lines(file)])
    except OSError as error:
        raise ConnectorError(f"{path}: {error.strerror or error}") from None
    except pa.ArrowException as error:
        raise ConnectorError(f"{path}: {error}") from None


def _row(line: bytes, where: str) -> dict[str, object]:
    try:
        return decode_line(line)
    except TidegateError as error:
        raise ConnectorError(f"{where}: {error}") from None


def _as_table(rows: list[dict[str, object]]) -> pa.Table:
    """Rows as a table; parameters stay JSON, because they may be of any kinds."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: dict[str, Any] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        if name == "params":
            values = [None if each is None else json.dumps(each) for each in values]
        columns[name] = pa.array(values)
    return pa.table(columns)


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as Spark takes them."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in options.items()
    }
