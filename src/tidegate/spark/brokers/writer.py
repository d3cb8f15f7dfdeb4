"""Rows as events that are published at a broker, each micro-batch once.

Theory of operation. Tasks encode their rows; the driver publishes those of all tasks, with numbers
that follow from the rows alone: a publisher's epoch stands for the query, and an event's number is
made of the number of the micro-batch and of the event's place in it. The place is that in the order
of times and contents, so it does not matter how the rows were divided among tasks. A micro-batch
that is written again has the same numbers, and the broker takes each number of a publisher and
epoch once, in the transaction that stores the event.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from tidegate.errors import ConnectorError
from tidegate.language.events import Event
from tidegate.matching.batches import wall_clock
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.commit_messages import CommitMessages, query_of_task
from tidegate.spark.log.event_columns import batch_to_columns, columns_to_events
from tidegate.spark.log.projection import OFFSET, TIME, check_columns

BATCH_BYTES_MAX = 256 * 2**20
"""The largest size of the events of a micro-batch, which pass the driver."""
BATCH_EVENTS_MAX = 2**32 - 1

EncodedRow = tuple[int, int, bytes]
"""The number of a row's shape, its time in microseconds, its values."""


@dataclass
class EncodedRows(WriterCommitMessage):
    """The rows of a task as events, and the id of the query if it is a stream."""

    shapes: list[tuple[str, ...]] = field(default_factory=list)
    """Names of attributes that events have in common."""
    rows: list[EncodedRow] = field(default_factory=list)
    query: str | None = None
    size: int = 0
    """The bytes of the values."""


def encode_rows(batches: Iterable[pa.RecordBatch], schema: StructType) -> EncodedRows:
    """Encode the rows of a task. A row without a time is published when it comes to the broker."""
    from tidegate.network.wire.event_block import encode_event

    names = schema.fieldNames()
    attributes = [name for name in names if name not in (OFFSET, TIME)]
    encoded = EncodedRows(query=query_of_task())
    numbers: dict[tuple[str, ...], int] = {}
    for batch in batches:
        named = batch.rename_columns(names)
        times = named.column(TIME) if TIME in names else None
        is_timed = None if times is None else times.is_valid().to_pylist()
        columns = batch_to_columns(named.select(attributes), times, wall_clock())
        for index, event in enumerate(columns_to_events(columns)):
            timed = event if is_timed is not None and is_timed[index] else Event(event.attributes)
            shape, time_us, body = encode_event(timed)
            number = numbers.setdefault(shape.names, len(numbers))
            encoded.rows.append((number, time_us, body))
            encoded.size += len(body)
        _check_size(encoded.size, len(encoded.rows))
    encoded.shapes = list(numbers)
    return encoded


def publish(messages: CommitMessages, options: BrokerOptions, producer: str, batch: int) -> None:
    """Publish the rows of all tasks; those that the broker has of this batch have no effect."""
    from tidegate.network.wire.event_block import EncodedEvent
    from tidegate.network.wire.event_shapes import EventShape

    staged = [each for each in messages if isinstance(each, EncodedRows)]
    rows = sorted(
        (time_us, each.shapes[shape], body) for each in staged for shape, time_us, body in each.rows
    )
    if not rows:
        return
    _check_size(sum(each.size for each in staged), len(rows))
    events = [
        EncodedEvent(EventShape.of(names, options.space), time_us, body)
        for time_us, names, body in rows
    ]
    identity = options.identity or f"spark-{producer}"
    with options.connect(identity, epoch=epoch_of(producer)) as client:
        client.publish_numbered(events, batch * 2**32 + 1)


def epoch_of(producer: str) -> int:
    """The epoch of a producer: the same each time, and different for others."""
    digest = hashlib.sha256(producer.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def _check_size(size: int, events: int) -> None:
    if size > BATCH_BYTES_MAX or events > BATCH_EVENTS_MAX:
        raise ConnectorError(
            f"a micro-batch has {events:,} events of {size:,} bytes; at most {BATCH_BYTES_MAX:,} "
            "bytes are published at once: let the source give fewer rows at a time"
        )


class BrokerWriter(DataSourceArrowWriter):
    """Publishes the rows of a DataFrame, as in ``foreachBatch``."""

    def __init__(self, options: BrokerOptions, schema: StructType) -> None:
        check_columns(schema)
        self._options = options
        self._schema = schema

    def write(  # type: ignore[override] # Spark's own class does it too
        self, iterator: Iterator[pa.RecordBatch]
    ) -> EncodedRows:
        return encode_rows(iterator, self._schema)

    def commit(self, messages: CommitMessages) -> None:
        # Without a producer the write is one of its own, and nobody will repeat it.
        producer = self._options.producer or uuid.uuid4().hex
        publish(messages, self._options, producer, self._options.batch or 0)

    def abort(self, messages: CommitMessages) -> None:
        """Nothing is published before `commit`."""
