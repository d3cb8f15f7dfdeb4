"""Spark's data source ``tidegate``: DataFrames and streams of event logs, and streams of brokers.

With the option ``broker`` it is a broker (see `tidegate.spark.brokers.options`), with ``path`` an
event log, of which the rest tells.

Reading: ``spark.read`` and ``spark.readStream`` with ``.format("tidegate")`` and the options

=====================  ===========================================================================
``path``               the folder of the log (see `event_log.py`); required
``startingOffset``     ``earliest`` (the default), ``latest`` (only in a stream) or an offset; a
                       stream that is restarted continues from its checkpoint instead
``maxEventsPerBatch``  the largest number of events in a micro-batch; by default all available
``onMismatch``         ``error`` (the default), or ``null`` to read a value that its column cannot
                       hold as null
=====================  ===========================================================================

Columns are attributes; see `projection.py`. Without a schema there are the columns ``_offset`` and
``_time``, and one for each attribute that is in the log when the query is made.

Writing: each row becomes an event, published at its ``_time`` if it has one, else now; ``_offset``
is ignored, because the log assigns its own offsets. A write is in the log as a whole or not at all,
and each micro-batch of a stream is in it exactly once: its producer is the id of the query, which
Spark keeps in the checkpoint. For a batch write, as in ``foreachBatch``, the options ``producer``
and ``batch`` have the same effect.

Tasks stage their events on disk next to the log, and the driver publishes all of them at once. So
every machine of the cluster must reach the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tidegate.errors import ConnectorError, LogError
from tidegate.matching.batches import wall_clock
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.writer import BrokerWriter
from tidegate.spark.commit_messages import CommitMessages, query_of_task
from tidegate.spark.log.event_columns import batch_to_columns
from tidegate.spark.log.event_log import EventLog, StagedFolder
from tidegate.spark.log.projection import OFFSET, TIME, Projection, check_columns, infer_columns
from tidegate.spark.option_values import integer_option, is_integer, mismatch_to_null
from tidegate.spark.storage.locations import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import DataSourceStreamReader, DataSourceStreamWriter

PARTITION_EVENTS_MAX = 50_000
"""The largest number of events that one task reads."""


def register(spark: SparkSession) -> None:
    """Make ``format("tidegate")`` known to a session."""
    spark.dataSource.register(TidegateDataSource)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a read or write, checked."""

    path: str
    starting_offset: int | None
    """None stands for the latest."""
    events_per_batch_max: int | None
    mismatch_to_null: bool
    producer: str | None
    batch: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Check the options that Spark passes on; raises LogError for a wrong one.

        >>> SourceOptions.of({"path": "events", "startingOffset": "7"}).starting_offset
        7
        """
        return cls(
            path=str(local_path(options["path"], "an event log")),
            starting_offset=_starting_offset(options.get("startingOffset", "earliest")),
            events_per_batch_max=integer_option(options, "maxEventsPerBatch", 1, LogError),
            mismatch_to_null=mismatch_to_null(options, LogError),
            producer=options.get("producer"),
            batch=integer_option(options, "batch", 0, LogError),
        )


def _starting_offset(text: str) -> int | None:
    names = {"earliest": 0, "latest": None}
    if text.lower() in names:
        return names[text.lower()]
    if is_integer(text):
        return int(text)
    raise LogError(
        f"option 'startingOffset' is {text!r:.120}; take 'earliest', 'latest' or an offset"
    )


def is_broker(options: Mapping[str, str]) -> bool:
    """Whether options are for a broker; raises ConnectorError unless they are for it or a log."""
    if "url" in options:
        raise ConnectorError("there is no option 'url'; the URL of a broker goes in 'broker'")
    has_broker, has_path = bool(options.get("broker")), bool(options.get("path"))
    if has_broker and has_path:
        raise ConnectorError(
            "options 'broker' and 'path' are both set; 'broker' is the URL of a broker, 'path' the "
            "folder of an event log: take one"
        )
    if not (has_broker or has_path):
        raise ConnectorError(
            "option 'path' is missing, and so is 'broker'; set 'path' to the folder of an event "
            "log, or 'broker' to the URL of a broker"
        )
    return has_broker


class TidegateDataSource(DataSource):
    """An event log or a broker as a source and a sink of Spark."""

    @classmethod
    def name(cls) -> str:
        """The name to use in ``format(...)``."""
        return "tidegate"

    def schema(self) -> StructType:
        if is_broker(self.options):
            raise ConnectorError(
                "the events of a broker may have any attributes; say with .schema(...) which to "
                "read, for example 'symbol string, price double, _time timestamp'"
            )
        options = SourceOptions.of(self.options)
        return infer_columns(EventLog(options.path).schemas(options.starting_offset or 0))

    def reader(self, schema: StructType) -> LogReader:
        if is_broker(self.options):
            raise ConnectorError("a broker is read as a stream: spark.readStream")
        return LogReader(SourceOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        with _newer_spark():
            if is_broker(self.options):
                from tidegate.spark.brokers.stream_reader import BrokerStreamReader

                return BrokerStreamReader(BrokerOptions.of(self.options), schema)
            from tidegate.spark.log.log_streams import LogStreamReader

            return LogStreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        to_broker = self._check_append(overwrite)
        if to_broker:
            return BrokerWriter(BrokerOptions.of(self.options), schema)
        return LogWriter(SourceOptions.of(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        to_broker = self._check_append(overwrite)
        with _newer_spark():
            if to_broker:
                from tidegate.spark.brokers.stream_writer import BrokerStreamWriter

                return BrokerStreamWriter(BrokerOptions.of(self.options), schema)
            from tidegate.spark.log.log_streams import LogStreamWriter

            return LogStreamWriter(SourceOptions.of(self.options), schema)

    def _check_append(self, overwrite: bool) -> bool:
        """Whether to write to a broker; neither a broker nor a log can be overwritten."""
        to_broker = is_broker(self.options)
        if overwrite:
            what = "what a broker has delivered" if to_broker else "an event log"
            raise LogError(f"{what} is append-only; write with mode or outputMode 'append'")
        return to_broker


@contextmanager
def _newer_spark() -> Iterator[None]:
    """Say which Spark is needed if its classes cannot be imported."""
    try:
        yield
    except ImportError:
        raise LogError(
            "streams of event logs and brokers need Spark 4.2 or newer, and this is "
            f"{pyspark.__version__}"
        ) from None


@dataclass
class OffsetRange(InputPartition):
    """The events that one task reads."""

    begin: int
    end: int


def offset_ranges(begin: int, end: int) -> list[OffsetRange]:
    """The events from one offset up to another, divided for tasks."""
    return [
        OffsetRange(start, min(start + PARTITION_EVENTS_MAX, end))
        for start in range(begin, end, PARTITION_EVENTS_MAX)
    ]


def read_range(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    """The rows of a task."""
    assert isinstance(partition, OffsetRange)
    projection = Projection(schema, mismatch_to_null=options.mismatch_to_null)
    log = EventLog(options.path)
    return projection.apply(log.read_columns(partition.begin, partition.end))


def check_start(log: EventLog, start: int, end: int) -> None:
    """Check that a log has the offset at which to begin."""
    if start > end:
        raise LogError(f"startingOffset is {start}, but {log.path} ends at {end}")


class LogReader(DataSourceReader):
    """Reads the events that are in the log when the query is planned."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_columns(schema)
        self._options = options
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        start = self._options.starting_offset
        if start is None:
            raise LogError("startingOffset=latest is for streams; a batch would have no events")
        log = EventLog(self._options.path)
        end = log.end_offset()
        check_start(log, start, end)
        # At least one, because Spark would make a partition of its own, which `read` cannot take.
        return [*offset_ranges(start, end)] or [OffsetRange(start, start)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._schema, partition)


@dataclass
class StagedMessage(WriterCommitMessage):
    """The events that a task has staged, and the id of the query if it is a stream."""

    staged: StagedFolder
    query: str | None


class LogAppend:
    """Appends rows to a log: tasks stage them, then the driver publishes or discards them all."""

    def __init__(self, path: str, schema: StructType) -> None:
        check_columns(schema)
        self._log = EventLog(path)
        self._log.create()
        self._names = schema.fieldNames()

    def stage(self, batches: Iterator[pa.RecordBatch]) -> StagedMessage:
        """Write the rows of a task to disk, not yet as a part of the log."""
        self._log.create()
        names = self._names
        attributes = [name for name in names if name not in (OFFSET, TIME)]
        now = wall_clock()

        def columns() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                named = batch.rename_columns(names)
                times = named.column(TIME) if TIME in names else None
                yield batch_to_columns(named.select(attributes), times, now)

        return StagedMessage(self._log.stage(columns()), query_of_task())

    def publish(self, messages: CommitMessages, producer: str | None, batch: int | None) -> None:
        """Append the staged rows of all tasks, unless the log has this batch of the producer."""
        self._log.publish(_staged(messages), producer=producer, batch=batch)

    def discard(self, messages: CommitMessages) -> None:
        """Remove the staged rows of all tasks."""
        self._log.discard(_staged(messages))


def _staged(messages: CommitMessages) -> list[StagedFolder]:
    return [each.staged for each in messages if isinstance(each, StagedMessage)]


class LogWriter(DataSourceArrowWriter):
    """Appends a DataFrame as a whole."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._append = LogAppend(options.path, schema)
        self._options = options

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> StagedMessage:
        return self._append.stage(iterator)

    def commit(self, messages: CommitMessages) -> None:
        self._append.publish(messages, self._options.producer, self._options.batch)

    def abort(self, messages: CommitMessages) -> None:
        self._append.discard(messages)
