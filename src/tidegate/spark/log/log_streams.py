"""Event logs as a source and a sink of streams, which needs Spark 4.2 or newer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidegate.errors import LogError
from tidegate.spark.commit_messages import CommitMessages, query_of
from tidegate.spark.log.datasource import (
    LogAppend,
    SourceOptions,
    StagedMessage,
    check_start,
    offset_ranges,
    read_range,
)
from tidegate.spark.log.event_log import EventLog
from tidegate.spark.log.projection import check_columns


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the log as it grows. A position in the stream is ``{"offset": n}``."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_columns(schema)
        self._options = options
        self._schema = schema
        self._final_offset: int | None = None
        """Where a query with the trigger availableNow ends; None for other triggers."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        log = EventLog(self._options.path)
        end = log.end_offset()
        start = self._options.starting_offset
        if start is None:
            return {"offset": end}
        check_start(log, start, end)
        return {"offset": start}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        events_max = self._options.events_per_batch_max
        return ReadAllAvailable() if events_max is None else ReadMaxRows(events_max)

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
        # With availableNow a query ends at the offset that was the last when it started.
        if self._final_offset is not None:
            end = max(begin, min(end, self._final_offset))
        if isinstance(limit, ReadMaxRows):
            end = min(end, begin + limit.max_rows)
        return {"offset": end}

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"offset": EventLog(self._options.path).end_offset()}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._final_offset = EventLog(self._options.path).end_offset()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return offset_ranges(start["offset"], end["offset"])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._schema, partition)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Appends each micro-batch as a whole, and once, however often it is attempted."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        if options.producer is not None or options.batch is not None:
            raise LogError("the options 'producer' and 'batch' are for batch writes")
        self._append = LogAppend(options.path, schema)

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> StagedMessage:
        return self._append.stage(iterator)

    def commit(
        self,
        messages: CommitMessages,
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        staged = [each for each in messages if isinstance(each, StagedMessage)]
        if staged:  # else no task had rows to write
            self._append.publish(messages, query_of(each.query for each in staged), batchId)

    def abort(
        self,
        messages: CommitMessages,
        batchId: int,  # noqa: ARG002, N803 - Spark's name
    ) -> None:
        self._append.discard(messages)
