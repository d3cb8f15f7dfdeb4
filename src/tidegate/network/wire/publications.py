"""Publications as columns: events with their stamps and publishers, as brokers pass them on.

head        [[[broker, begun_us], ...], [publisher, ...], more]
count       u32
origin_of   count u32  the index of the stamp's broker in the head
numbers     count u64  the number of the stamp
publisher_of count u32
flags       count u8   bit 0: the publisher waits for a confirmation
...         columns of the message that the publications are in
block       see `event_block`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from tidegate.errors import ProtocolError
from tidegate.matching.arrays import I64
from tidegate.network.wire.columns import (
    ColumnReader,
    Layout,
    Part,
    encode_columns,
    encode_count,
    encode_head,
)
from tidegate.network.wire.event_block import EVENTS_MAX, EventBlock
from tidegate.network.wire.event_shapes import ListedEventShapes, ReceivedEventShapes
from tidegate.network.wire.values import Int64, Name
from tidegate.routing import messages as m

IS_CONFIRMED = 1
"""The flag of an event that is stored at each broker before it is acknowledged."""
_KNOWN_FLAGS = IS_CONFIRMED

Origin = tuple[Name, Int64]
"""A broker and when it was started: what the stamps of its events share."""

_LAYOUT: Layout = [
    ("origin_of", "<u4"),
    ("numbers", "<u8"),
    ("publisher_of", "<u4"),
    ("flags", "<u1"),
]


class Head(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """The head of a frame of publications; a message may add a part of its own."""

    origins: list[Origin]
    publishers: list[Name]
    more: msgspec.Raw


@dataclass(frozen=True, slots=True, eq=False)
class PublicationBlock:
    """Some publications in order, in columns."""

    events: EventBlock
    origins: Sequence[tuple[str, int]]
    """The distinct brokers of the stamps, each with the time of its start."""
    origin_of: I64
    numbers: I64
    publishers: Sequence[str]
    publisher_of: I64
    flags: I64

    @classmethod
    def of(cls, publications: Sequence[m.Publication], flags: int = 0) -> PublicationBlock:
        """The block of these publications, all with the same flags."""
        origins: dict[tuple[str, int], int] = {}
        publishers: dict[str, int] = {}
        spaces: dict[str | None, list[int]] = {}
        for index, each in enumerate(publications):
            spaces.setdefault(each.space, []).append(index)
        order = [index for indices in spaces.values() for index in indices]
        blocks = [
            EventBlock.of([publications[index].event for index in indices], space)
            for space, indices in spaces.items()
        ]
        stamps = [each.stamp for each in publications]
        origin_of = [
            origins.setdefault((each.broker, each.begun_us), len(origins)) for each in stamps
        ]
        publisher_of = [
            publishers.setdefault(each.publisher, len(publishers)) for each in publications
        ]
        events = EventBlock.joined(blocks)
        if len(blocks) > 1:
            events = events.select(np.argsort(np.array(order, np.int64)))
        return cls(
            events,
            list(origins),
            np.array(origin_of, np.int64),
            np.array([each.number for each in stamps], np.int64),
            list(publishers),
            np.array(publisher_of, np.int64),
            np.full(len(stamps), flags, np.int64),
        )

    def __len__(self) -> int:
        return len(self.events)

    def stamp(self, index: int) -> m.Stamp:
        """The stamp of one publication."""
        broker, begun_us = self.origins[self.origin_of[index]]
        return m.Stamp(broker, begun_us, int(self.numbers[index]))

    def publication(self, index: int) -> m.Publication:
        """One publication."""
        events = self.events
        return m.Publication(
            events.event(index),
            self.stamp(index),
            self.publishers[self.publisher_of[index]],
            events.shapes[events.shape_of[index]].space,
        )

    def publications(self) -> tuple[m.Publication, ...]:
        """All publications."""
        return tuple(map(self.publication, range(len(self))))

    def part(self, begin: int, end: int) -> PublicationBlock:
        """The publications from index ``begin`` to before ``end``."""
        return self.select(np.arange(begin, end))

    def select(self, indices: I64) -> PublicationBlock:
        """Some of the publications, in the order of their indices."""
        return replace(
            self,
            events=self.events.select(indices),
            origin_of=self.origin_of[indices],
            numbers=self.numbers[indices],
            publisher_of=self.publisher_of[indices],
            flags=self.flags[indices],
        )

    def encode(
        self, shape_numbers: Sequence[int], more: object, columns: Sequence[Part]
    ) -> list[Part]:
        """The parts of its bytes, with the head and the columns of the message that it is in."""
        own = [self.origin_of, self.numbers, self.publisher_of, self.flags]
        return [
            encode_head([self.origins, self.publishers, more]),
            encode_count(len(self)),
            *encode_columns(_LAYOUT, own),
            *columns,
            *self.events.encode(shape_numbers),
        ]


class PublicationReader:
    """Reads the bytes of publications; the columns of the message come between its two methods."""

    def __init__(self, data: memoryview, what: str) -> None:
        self.reader = ColumnReader(data, what)
        self._what = what
        self._head = self.reader.head(_decoder)
        self.more = self._head.more
        """The part of the head that belongs to the message, still encoded."""
        self.count = self.reader.count(EVENTS_MAX)
        self._columns = self.reader.columns(_LAYOUT, self.count)

    def check_no_more(self) -> None:
        """Raise unless the message has no part of its own in the head."""
        if bytes(self.more) != _NIL:
            raise ProtocolError(f"{self._what}: the third part of the head is not nil")

    def block(self, received: ReceivedEventShapes | ListedEventShapes) -> PublicationBlock:
        """The publications, when all other columns are read."""
        events = EventBlock.decode(self.reader.rest(), received)
        if len(events) != self.count:
            raise ProtocolError(f"{self._what}: {self.count} stamps, but {len(events)} events")
        origin_of, numbers, publisher_of, flags = self._columns
        origins, publishers = self._head.origins, self._head.publishers
        check_indices(origin_of, len(origins), f"{self._what}: brokers of stamps")
        check_indices(publisher_of, len(publishers), f"{self._what}: publishers")
        if np.any(flags & ~_KNOWN_FLAGS):
            raise ProtocolError(f"{self._what}: an event has a flag that has no meaning")
        return PublicationBlock(
            events, origins, origin_of, numbers, publishers, publisher_of, flags
        )


def check_indices(indices: I64, count: int, what: str) -> None:
    """Raise unless all indices are below a count; as unsigned columns they are not negative."""
    if len(indices) and int(indices.max()) >= count:
        raise ProtocolError(f"{what}: index {int(indices.max())} of {count}")


_NIL = b"\xc0"
_decoder: Any = msgspec.msgpack.Decoder(Head)
