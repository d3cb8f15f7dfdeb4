"""The events of a broker as a source of streams, which needs Spark 4.2 or newer.

The driver has the connection, and puts the events of a micro-batch into the partitions that it
hands to the tasks. So executors need not reach the broker, and all that is read passes the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidegate.errors import ConnectorError
from tidegate.language.events import Event
from tidegate.matching.arrays import I64
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.queue import BrokerQueue
from tidegate.spark.log.event_columns import chunked, events_to_columns
from tidegate.spark.log.projection import Projection, check_columns

Place = dict[str, Any]
"""A place in the stream as Spark keeps it: ``identity`` of the client, and the ``position`` of the
last event in its queue."""

PARTITION_EVENTS_MAX = 10_000
"""The largest number of events that one task gets."""
_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The publication time of events without one; brokers give each event a time."""


@dataclass
class QueuedEvents(InputPartition):
    """Some events as an Arrow stream, with the position of each."""

    data: bytes
    positions: I64


class BrokerStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the queue of a durable client."""

    def __init__(self, options: BrokerOptions, schema: StructType) -> None:
        check_columns(schema)
        if options.identity is None:
            raise ConnectorError(
                "option 'identity' is missing; by it the broker keeps the place of the stream"
            )
        self._identity = options.identity
        self._options = options
        self._schema = schema
        self._opened: BrokerQueue | None = None
        self._final: int | None = None
        """Where a query with the trigger availableNow ends; None for other triggers."""

    @property
    def _queue(self) -> BrokerQueue:
        """The queue. Connecting waits until it is needed: tasks and the analysis of a query have
        readers too, and an identity has one connection."""
        if self._opened is None:
            self._opened = BrokerQueue(self._options)
        return self._opened

    def initialOffset(self) -> Place:  # noqa: N802 - Spark's name
        return self._place(0)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._options.events_per_batch_max)

    def latestOffset(self, start: Place, limit: ReadLimit) -> Place:  # noqa: N802
        most = None if isinstance(limit, ReadAllAvailable) else self._options.events_per_batch_max
        if isinstance(limit, ReadMaxRows):
            most = limit.max_rows
        position = self._position(start)
        return self._place(self._queue.end_after(position, most, self._final))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._final = self._queue.queued

    def partitions(self, start: Place, end: Place) -> Sequence[InputPartition]:
        after, until = self._position(start), self._position(end)
        received = self._queue.events(after, until)
        parts: list[InputPartition] = []
        for begin in range(0, len(received), PARTITION_EVENTS_MAX):
            chosen = received[begin : begin + PARTITION_EVENTS_MAX]
            events = [Event(each.attributes, each.time) for each in chosen]
            positions = np.array([each.position for each in chosen], np.int64)
            at = 0
            for chunk in chunked(events):
                data = _to_bytes(events_to_columns(chunk, _NO_TIME))
                parts.append(QueuedEvents(data, positions[at : at + len(chunk)]))
                at += len(chunk)
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, QueuedEvents)
        projection = Projection(self._schema, mismatch_to_null=self._options.mismatch_to_null)
        with pa.ipc.open_stream(partition.data) as stream:
            return projection.apply([(partition.positions, batch) for batch in stream])

    def commit(self, end: Place) -> None:
        position = self._position(end)  # checked before connecting
        self._queue.acknowledge(position)

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _place(self, position: int) -> Place:
        return {"identity": self._identity, "position": position}

    def _position(self, place: Place) -> int:
        identity = place.get("identity")
        if identity != self._identity:
            raise ConnectorError(
                f"the checkpoint was made with the identity {identity!r}, not {self._identity!r}; "
                "positions count in the queue of one client: use that identity, or a new checkpoint"
            )
        return int(place["position"])


def _to_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()
