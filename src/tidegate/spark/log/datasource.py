"""Spark's data source ``tidegate``: DataFrames and streams read from and written to an event log.

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

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tidegate.errors import LogError
from tidegate.matching.batches import wall_clock
from tidegate.spark.log.event_columns import batch_to_columns
from tidegate.spark.log.event_log import EventLog, StagedFolder
from tidegate.spark.log.projection import OFFSET, TIME, Projection, check_columns, infer_columns
from tidegate.spark.log.segments import OFFSET_MAX
from tidegate.spark.storage.locations import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.spark.log.log_streams import LogStreamReader, LogStreamWriter

PARTITION_EVENTS_MAX = 50_000
"""The largest number of events that one task reads."""

_QUERY_ID = "sql.streaming.queryId"


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
        if "url" in options:
            raise LogError(
                "option 'url' is for brokers, which are not supported yet; "
                "set 'path' to an event log"
            )
        if not options.get("path"):
            raise LogError("option 'path' is missing; set it to the folder of an event log")
        mismatch = options.get("onMismatch", "error").lower()
        if mismatch not in ("error", "null"):
            raise LogError(f"option 'onMismatch' is {mismatch!r:.120}; take 'error' or 'null'")
        return cls(
            path=str(local_path(options["path"], "an event log")),
            starting_offset=_starting_offset(options.get("startingOffset", "earliest")),
            events_per_batch_max=_integer(options, "maxEventsPerBatch", least=1),
            mismatch_to_null=mismatch == "null",
            producer=options.get("producer"),
            batch=_integer(options, "batch", least=0),
        )


def _starting_offset(text: str) -> int | None:
    names = {"earliest": 0, "latest": None}
    if text.lower() in names:
        return names[text.lower()]
    if _is_integer(text):
        return int(text)
    raise LogError(
        f"option 'startingOffset' is {text!r:.120}; take 'earliest', 'latest' or an offset"
    )


def _integer(options: Mapping[str, str], name: str, least: int) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if _is_integer(text) and int(text) >= least:
        return int(text)
    raise LogError(f"option {name!r} is {text!r:.120}; take an integer, from {least} on")


def _is_integer(text: str) -> bool:
    """Whether a text is an integer from 0 to ``OFFSET_MAX``; a long one is not converted at all."""
    return text.isascii() and text.isdigit() and int(text[:20]) <= OFFSET_MAX and len(text) < 20


class TidegateDataSource(DataSource):
    """An event log as a source and a sink of Spark."""

    @classmethod
    def name(cls) -> str:
        """The name to use in ``format(...)``."""
        return "tidegate"

    def schema(self) -> StructType:
        options = SourceOptions.of(self.options)
        return infer_columns(EventLog(options.path).schemas(options.starting_offset or 0))

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(SourceOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        with _newer_spark():
            from tidegate.spark.log.log_streams import LogStreamReader
        return LogStreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        if overwrite:
            raise LogError("an event log is append-only; write with mode('append')")
        return LogWriter(SourceOptions.of(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> LogStreamWriter:
        if overwrite:
            raise LogError("an event log is append-only; write with outputMode('append')")
        with _newer_spark():
            from tidegate.spark.log.log_streams import LogStreamWriter
        return LogStreamWriter(SourceOptions.of(self.options), schema)


@contextmanager
def _newer_spark() -> Iterator[None]:
    """Say which Spark is needed if its classes cannot be imported."""
    try:
        yield
    except ImportError:
        raise LogError(
            f"streams of event logs need Spark 4.2 or newer, and this is {pyspark.__version__}"
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


CommitMessages = Sequence[WriterCommitMessage | None]
"""The messages of the tasks of a write; None for a task that failed."""


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

        # Spark sets the property for the tasks of a stream, but does not pass the id to the writer.
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        return StagedMessage(self._log.stage(columns()), query)

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
