"""Blocks of events: many events as columns and bodies, the way they cross a connection.

    count      u32        all integers are little endian from here on
    shape_of   count u32  the number of each event's shape on this connection
    times      count i64  microseconds since 1970; the least i64 for an event without a time
    sizes      count u32  the bytes of each body
    bodies                one after the other, each a MessagePack array of values in shape order

The bodies do not depend on the connection: a broker decodes them once, to match them, and copies
their bytes to every receiver.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from tidegate.errors import ProtocolError
from tidegate.language.events import Event
from tidegate.language.values import Value, from_us, to_us
from tidegate.matching.arrays import I64, NO_TIME
from tidegate.network.wire.body_columns import EVENTS_MIN, BodyColumns
from tidegate.network.wire.columns import (
    ColumnReader,
    Layout,
    Part,
    encode_columns,
    encode_count,
)
from tidegate.network.wire.event_shapes import (
    EventShape,
    ListedEventShapes,
    ReceivedEventShapes,
)
from tidegate.network.wire.values import decode_bodies, encode_body

EVENTS_MAX = 1 << 18
"""The events in one frame."""
_LAYOUT: Layout = [("shape_of", "<u4"), ("times", "<i8"), ("sizes", "<u4")]
_FIRST_US = to_us(datetime.min.replace(tzinfo=UTC))
_LAST_US = to_us(datetime.max.replace(tzinfo=UTC))


class EncodedEvent(NamedTuple):
    """One event, ready for a block."""

    shape: EventShape
    time_us: int
    body: bytes


@lru_cache(maxsize=4_096)
def _shape_of_names(names: tuple[str, ...], space: str | None) -> EventShape:
    return EventShape.of(sorted(names), space)


def encode_event(event: Event, space: str | None = None) -> EncodedEvent:
    """The event as it is in a block.

    >>> encode_event(Event.of({"b": 1, "a": True})).body.hex()
    '92c301'
    """
    attributes = event.attributes
    shape = _shape_of_names(tuple(attributes), space)
    time_us = int(NO_TIME) if event.time is None else to_us(event.time)
    return EncodedEvent(shape, time_us, encode_body([attributes[name] for name in shape.names]))


class EventBlock:
    """Some events in order, in columns.

    >>> block = EventBlock.of([Event.of({"symbol": "IBM", "price": 9.5})])
    >>> block.shapes, block.rows
    ((EventShape(price, symbol),), [[9.5, 'IBM']])
    """

    def __init__(
        self,
        shapes: tuple[EventShape, ...],
        shape_of: I64,
        times_us: I64,
        sizes: I64,
        bodies: bytes | memoryview,
    ) -> None:
        self.shapes = shapes
        """The distinct shapes of the events."""
        self.shape_of = shape_of
        """For each event the index of its shape in ``shapes``."""
        self.times_us = times_us
        """The publication time of each event in microseconds, `NO_TIME` for one without."""
        self.sizes = sizes
        """The bytes of each body."""
        self.bodies = bodies

    @classmethod
    def of(cls, events: Sequence[Event], space: str | None = None) -> EventBlock:
        """The block of these events, in one space."""
        return cls.of_encoded([encode_event(event, space) for event in events])

    @classmethod
    def of_encoded(cls, events: Sequence[EncodedEvent]) -> EventBlock:
        """The block of these events."""
        numbers: dict[EventShape, int] = {}
        shape_of = [numbers.setdefault(shape, len(numbers)) for shape, _, _ in events]
        bodies = [body for _, _, body in events]
        return cls(
            tuple(numbers),
            np.array(shape_of, np.int64),
            np.array([time_us for _, time_us, _ in events], np.int64),
            np.array(list(map(len, bodies)), np.int64),
            b"".join(bodies),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    @cached_property
    def starts(self) -> I64:
        """The offset of each body in ``bodies``, and after the last one their end."""
        starts = np.zeros(len(self.sizes) + 1, np.int64)
        np.cumsum(self.sizes, out=starts[1:])
        return starts

    @cached_property
    def rows(self) -> list[list[Value]]:
        """The values of each event, in the order of its shape."""
        return decode_bodies(self.body_views(range(len(self))))

    def columns(self) -> list[tuple[EventShape, I64 | None, BodyColumns]] | None:
        """The values in columns: for each shape its events (None for all) and their values.

        None if the events are few, or some of them are unusual; then there are ``rows``.
        """
        if len(self) < EVENTS_MIN or "rows" in self.__dict__:
            return None
        found: list[tuple[EventShape, I64 | None, BodyColumns]] = []
        for number, shape in enumerate(self.shapes):
            events = np.arange(len(self))
            if len(self.shapes) > 1:
                events = np.flatnonzero(self.shape_of == number)
            columns = BodyColumns.read(self.bodies, self.starts, events, len(shape.names))
            if columns is None:
                return None
            found.append((shape, events if len(self.shapes) > 1 else None, columns))
        return found

    def _check_bodies(self) -> None:
        """Raise ProtocolError unless each body has a value for each name of its shape."""
        if self.columns() is not None:
            return
        widths = np.array([len(each.names) for each in self.shapes], np.int64)[self.shape_of]
        if not np.array_equal(np.fromiter(map(len, self.rows), np.int64, len(self)), widths):
            raise ProtocolError("an event has another number of values than its shape has names")

    def body_views(self, indices: Iterable[int]) -> list[memoryview]:
        """The bodies of some events."""
        view, starts = memoryview(self.bodies), self.starts.tolist()
        return [view[starts[index] : starts[index + 1]] for index in indices]

    def event(self, index: int) -> Event:
        """One event."""
        names = self.shapes[self.shape_of[index]].names
        time_us = self.times_us[index]
        # NaN counts as absent, and is unequal to itself
        attributes = {
            name: value
            for name, value in zip(names, self.rows[index], strict=True)
            if value == value
        }
        return Event(attributes, None if time_us == NO_TIME else from_us(int(time_us)))

    def events(self) -> list[Event]:
        """All events."""
        return [self.event(index) for index in range(len(self))]

    def select(self, indices: I64) -> EventBlock:
        """Some of the events, in the order of their indices; their bodies are copied."""
        if len(indices) and _is_range(indices):
            begin, end = int(indices[0]), int(indices[-1]) + 1
            bodies = memoryview(self.bodies)[int(self.starts[begin]) : int(self.starts[end])]
        else:
            bodies = memoryview(b"".join(self.body_views(indices.tolist())))
        shape_of, shapes = self.shape_of[indices], self.shapes
        if len(shapes) > 1:
            used, shape_of = np.unique(shape_of, return_inverse=True)
            shapes = tuple(shapes[each] for each in used.tolist())
        return EventBlock(shapes, shape_of, self.times_us[indices], self.sizes[indices], bodies)

    def with_times(self, times_us: I64) -> EventBlock:
        """The same events with other publication times."""
        block = EventBlock(self.shapes, self.shape_of, times_us, self.sizes, self.bodies)
        if "rows" in self.__dict__:
            block.__dict__["rows"] = self.rows
        return block

    @classmethod
    def joined(cls, blocks: Sequence[EventBlock]) -> EventBlock:
        """The events of several blocks, one after the other."""
        if len(blocks) == 1:
            return blocks[0]
        numbers: dict[EventShape, int] = {}
        shape_of = [np.zeros(0, np.int64)]
        for block in blocks:
            into = [numbers.setdefault(each, len(numbers)) for each in block.shapes]
            shape_of.append(np.array(into, np.int64)[block.shape_of])
        empty = np.zeros(0, np.int64)
        return cls(
            tuple(numbers),
            np.concatenate(shape_of),
            np.concatenate([empty, *(block.times_us for block in blocks)]),
            np.concatenate([empty, *(block.sizes for block in blocks)]),
            b"".join(block.bodies for block in blocks),
        )

    # -- bytes --------------------------------------------------------------------------------

    def encode(self, shape_numbers: Sequence[int]) -> list[Part]:
        """The parts of its bytes; ``shape_numbers`` are those of ``shapes`` on the connection."""
        shape_of = np.array(shape_numbers, np.int64)[self.shape_of]
        columns = encode_columns(_LAYOUT, [shape_of, self.times_us, self.sizes])
        return [encode_count(len(self)), *columns, self.bodies]

    @classmethod
    def decode(
        cls, data: memoryview, received: ReceivedEventShapes | ListedEventShapes
    ) -> EventBlock:
        """The block that these bytes are, all of them; raises ProtocolError if they are none."""
        reader = ColumnReader(data, "a block of events")
        shape_of, times_us, sizes = reader.columns(_LAYOUT, reader.count(EVENTS_MAX))
        bodies = reader.rest()
        if int(sizes.sum()) != len(bodies):
            raise ProtocolError(
                f"the bodies of a block of events have {len(bodies)} bytes, not the "
                f"{int(sizes.sum())} that their sizes say"
            )
        known = times_us[times_us != NO_TIME]
        if len(known) and (known.min() < _FIRST_US or known.max() > _LAST_US):
            raise ProtocolError("the time of an event must lie in the years 1 to 9999 in UTC")
        used, shape_of = np.unique(shape_of, return_inverse=True)
        shapes = tuple(received[number] for number in used.tolist())
        block = cls(shapes, shape_of.astype(np.int64), times_us, sizes, bodies)
        block._check_bodies()
        return block


def _is_range(indices: I64) -> bool:
    """Whether indices are consecutive, so that their bodies are one piece."""
    span = int(indices[-1]) - int(indices[0])
    return span == len(indices) - 1 and bool(np.all(np.diff(indices) == 1))
