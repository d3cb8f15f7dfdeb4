"""The data source ``tidegate`` of Spark: DataFrames and streams from and into a log of events.

Reading: ``spark.read`` and ``spark.readStream`` with ``.format("tidegate")`` and the options

=====================  ===========================================================================
``path``               the folder of the log (see event_log.py); required
``startingOffset``     ``earliest``, ``latest`` (of a stream) or a number; where a checkpoint says
                       where to go on, that counts. Default ``earliest``
``maxEventsPerBatch``  how many events a micro-batch takes at most; all that are there by default
``onMismatch``         ``error``, or ``null`` to read a value that its column cannot hold as null
=====================  ===========================================================================

Columns are attributes, as projection.py says. Without a schema there are columns for all
attributes that the log has when the query is made, besides ``_offset`` and ``_time``.

Writing: each row becomes an event, published at its ``_time`` if it has one, else now; ``_offset``
is left out, because the log counts anew. A write is in the log as a whole or not at all, and each
micro-batch of a stream is there exactly once: its producer is the id of the query, which Spark
keeps in the checkpoint. For a batch write, as in ``foreachBatch``, the options ``producer`` and
``batch`` do the same.

Tasks write their events to disk next to the log, and the driver gives all of them their place in it
at once. So every machine of the cluster must reach the path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidegate.errors import LogError
from tidegate.matching.batches import wall_clock
from tidegate.spark.log.event_columns import columns_from
from tidegate.spark.log.event_log import EventLog, Staged
from tidegate.spark.log.projection import OFFSET, TIME, Projection, check_columns, infer_columns
from tidegate.spark.log.segments import OFFSET_MAX

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITION_EVENTS_MAX = 50_000
"""Each task reads at most so many events."""

_QUERY_ID = "sql.streaming.queryId"


def register(spark: SparkSession) -> None:
    """Make ``format("tidegate")`` known to a session."""
    spark.dataSource.register(TidegateDataSource)


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a read or write, checked."""

    path: str
    starting_offset: int | None
    """None: the latest."""
    events_per_batch_max: int | None
    mismatch_to_null: bool
    producer: str | None
    batch: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Take the options as Spark has them; raises LogError for a wrong one.

        >>> SourceOptions.of({"path": "events", "startingOffset": "7"}).starting_offset
        7
        """
        if "url" in options:
            raise LogError(
                "option 'url' is for brokers, which are to come; set 'path' to a log of events"
            )
        if not options.get("path"):
            raise LogError("option 'path' is missing; set it to the folder of a log of events")
        mismatch = options.get("onMismatch", "error").lower()
        if mismatch not in ("error", "null"):
            raise LogError(f"option 'onMismatch' is {mismatch!r:.120}; take 'error' or 'null'")
        return cls(
            path=options["path"],
            starting_offset=_starting_offset(options.get("startingOffset", "earliest")),
            events_per_batch_max=_integer(options, "maxEventsPerBatch", least=1),
            mismatch_to_null=mismatch == "null",
            producer=options.get("producer"),
            batch=_integer(options, "batch", least=0),
        )


def _starting_offset(text: str) -> int | None:
    words = {"earliest": 0, "latest": None}
    if text.lower() in words:
        return words[text.lower()]
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
    return text.isascii() and text.isdigit() and int(text[:20]) <= OFFSET_MAX and len(text) < 20


class TidegateDataSource(DataSource):
    """A log of events as a source and a sink of Spark."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(...)``."""
        return "tidegate"

    def schema(self) -> StructType:
        options = SourceOptions.of(self.options)
        return infer_columns(EventLog(options.path).schemas(options.starting_offset or 0))

    def reader(self, schema: StructType) -> LogReader:
        return LogReader(SourceOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        return LogStreamReader(SourceOptions.of(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> LogWriter:
        if overwrite:
            raise LogError("a log of events only grows; write with mode('append')")
        return LogWriter(SourceOptions.of(self.options), schema)

    def streamWriter(  # noqa: N802 - Spark's name
        self, schema: StructType, overwrite: bool
    ) -> LogStreamWriter:
        if overwrite:
            raise LogError("a log of events only grows; write with outputMode('append')")
        return LogStreamWriter(SourceOptions.of(self.options), schema)


@dataclass
class OffsetRange(InputPartition):
    """The events that one task reads."""

    begin: int
    end: int


def _ranges(begin: int, end: int) -> list[OffsetRange]:
    return [
        OffsetRange(start, min(start + PARTITION_EVENTS_MAX, end))
        for start in range(begin, end, PARTITION_EVENTS_MAX)
    ]


def _read(
    options: SourceOptions, schema: StructType, partition: InputPartition
) -> Iterator[pa.RecordBatch]:
    assert isinstance(partition, OffsetRange)
    projection = Projection(schema, mismatch_to_null=options.mismatch_to_null)
    log = EventLog(options.path)
    return projection.apply(log.read_columns(partition.begin, partition.end))


def _check_start(log: EventLog, start: int, end: int) -> None:
    if start > end:
        raise LogError(f"startingOffset is {start}, but {log.path} ends at {end}")


class LogReader(DataSourceReader):
    """Reads what is in the log when the query is planned."""

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
        _check_start(log, start, end)
        # Spark makes one of its own if there is none.
        return [*_ranges(start, end)] or [OffsetRange(start, start)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as it grows. A position in the stream is ``{"offset": n}``."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_columns(schema)
        self._options = options
        self._schema = schema
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        log = EventLog(self._options.path)
        end = log.end_offset()
        start = self._options.starting_offset
        if start is None:
            return {"offset": end}
        _check_start(log, start, end)
        return {"offset": start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        most = self._options.events_per_batch_max
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: dict[str, int], limit: ReadLimit
    ) -> dict[str, int]:
        begin = start["offset"]
        end = EventLog(self._options.path).end_offset()
        if begin > end:
            raise LogError(
                f"the stream is at offset {begin}, but {self._options.path} ends at {end}; "
                "it is not the log that the checkpoint was made with"
            )
        if self._last is not None:
            end = max(begin, min(end, self._last))
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        return {"offset": end}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"offset": EventLog(self._options.path).end_offset()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._last = EventLog(self._options.path).end_offset()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _ranges(start["offset"], end["offset"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._options, self._schema, partition)


Messages = Sequence[WriterCommitMessage | None]
"""What the tasks of a write say when they are done; None where one has failed."""


@dataclass
class StagedEvents(WriterCommitMessage):
    """What a task has written, and for which query if it is of a stream."""

    staged: Staged
    query: str | None


class Append:
    """Rows on their way into a log: tasks stage them, the driver publishes or discards them all."""

    def __init__(self, path: str, schema: StructType) -> None:
        check_columns(schema)
        self._log = EventLog(path)
        self._log.create()
        self._names = schema.fieldNames()

    def stage(self, batches: Iterator[pa.RecordBatch]) -> StagedEvents:
        """Write the rows of a task to disk, without a place in the log."""
        self._log.create()
        names = self._names
        attributes = [name for name in names if name not in (OFFSET, TIME)]
        now = wall_clock()

        def columns() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                named = batch.rename_columns(names)
                times = named.column(TIME) if TIME in names else None
                yield columns_from(named.select(attributes), times, now)

        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty(_QUERY_ID)
        return StagedEvents(self._log.stage(columns()), query)

    def publish(self, messages: Messages, producer: str | None, batch: int | None) -> None:
        """Give what the tasks have staged its place in the log, once for a producer's batch."""
        self._log.publish(_staged(messages), producer=producer, batch=batch)

    def discard(self, messages: Messages) -> None:
        """Remove what the tasks have staged."""
        self._log.discard(_staged(messages))


def _staged(messages: Messages) -> list[Staged]:
    return [each.staged for each in messages if isinstance(each, StagedEvents)]


class LogWriter(DataSourceArrowWriter):
    """Appends a DataFrame as a whole."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._append = Append(options.path, schema)
        self._options = options

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> StagedEvents:
        return self._append.stage(iterator)

    def commit(self, messages: Messages) -> None:
        self._append.publish(messages, self._options.producer, self._options.batch)

    def abort(self, messages: Messages) -> None:
        self._append.discard(messages)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Appends each micro-batch as a whole, and once however often it is tried."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.producer is not None or options.batch is not None:
            raise LogError("the options 'producer' and 'batch' are for batch writes")
        self._append = Append(options.path, schema)

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> StagedEvents:
        return self._append.stage(iterator)

    def commit(
        self,
        messages: Messages,
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        queries = {each.query for each in messages if isinstance(each, StagedEvents)}
        if not queries:
            return  # no task had anything to write
        if len(queries) != 1 or None in queries:
            raise LogError("Spark does not say which query this is; events could come twice")
        self._append.publish(messages, queries.pop(), batchId)

    def abort(
        self,
        messages: Messages,
        batchId: int,  # noqa: ARG002, N803 - Spark's name
    ) -> None:
        self._append.discard(messages)
