"""Events between a client and its broker: what it publishes, and what is delivered to it.

    Publish                                    Deliver
    first_number  u64                          head, count, stamps   see `publications`; more: nil
    flags         u8   bit 0: confirm          positions  count u64  0 for a client not durable
    block         see `event_block`            match_counts  count u32
                                               matches    u32        the sum of the counts
                                               handles    matches u32
                                               versions   matches i64
                                               block

The events of a `Publish` are numbered on from the first one. The matches of a delivery are the
subscriptions of the client that the event matches, by handle and version, those of one event after
those of another; handle 0 stands for all that have no name.

`DeliverSequence` has the handle of a pattern as ``more`` and no further columns: the events of one
match.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

import numpy as np
from msgspec.msgpack import Decoder

from tidegate.errors import ProtocolError
from tidegate.matching.arrays import I64
from tidegate.network.wire.columns import Layout, Part, encode_columns, encode_count
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.event_shapes import EventShape, ReceivedEventShapes
from tidegate.network.wire.publications import PublicationBlock, PublicationReader
from tidegate.network.wire.requests import Handle
from tidegate.network.wire.values import MALFORMED
from tidegate.routing import messages as m

MATCHES_MAX = 1 << 22
"""The matches in one frame."""

_PUBLISH = Struct("<QB")
_PER_EVENT: Layout = [("positions", "<u8"), ("match_counts", "<u4")]
_PER_MATCH: Layout = [("handles", "<u4"), ("versions", "<i8")]


@dataclass(frozen=True, slots=True, eq=False)
class Publish:
    """A client publishes events, which are numbered in its epoch."""

    first_number: int
    events: EventBlock
    confirm: bool = False

    def __len__(self) -> int:
        return len(self.events)

    @property
    def shapes(self) -> tuple[EventShape, ...]:
        """The distinct shapes of the events."""
        return self.events.shapes

    def part(self, begin: int, end: int) -> Publish:
        """The events from index ``begin`` to before ``end``."""
        events = self.events.select(np.arange(begin, end))
        return Publish(self.first_number + begin, events, self.confirm)

    def encode(self, shape_numbers: Sequence[int]) -> list[Part]:
        """The parts of its bytes."""
        head = _PUBLISH.pack(self.first_number, self.confirm)
        return [head, *self.events.encode(shape_numbers)]

    @classmethod
    def decode(cls, data: memoryview, received: ReceivedEventShapes) -> Publish:
        """The message that these bytes are; raises ProtocolError if they are none."""
        if len(data) < _PUBLISH.size:
            raise ProtocolError("a publication is cut off")
        first_number, flags = _PUBLISH.unpack_from(data)
        if flags > 1:
            raise ProtocolError(f"the flags of a publication are 0 or 1, not {flags}")
        events = EventBlock.decode(data[_PUBLISH.size :], received)
        if first_number + len(events) >= 2**63:
            raise ProtocolError("the number of a publication is larger than 2**63 - 1")
        return cls(first_number, events, bool(flags))


@dataclass(frozen=True, slots=True, eq=False)
class Deliver:
    """A broker gives its client events, each with the subscriptions that it matches."""

    publications: PublicationBlock
    positions: I64
    """Of a durable client: each delivery has a higher position than the one before."""
    match_counts: I64
    handles: I64
    versions: I64

    def __len__(self) -> int:
        return len(self.publications)

    @property
    def shapes(self) -> tuple[EventShape, ...]:
        """The distinct shapes of the events."""
        return self.publications.events.shapes

    def part(self, begin: int, end: int) -> Deliver:
        """The deliveries from index ``begin`` to before ``end``."""
        first, last = int(self.match_counts[:begin].sum()), int(self.match_counts[:end].sum())
        return Deliver(
            self.publications.part(begin, end),
            self.positions[begin:end],
            self.match_counts[begin:end],
            self.handles[first:last],
            self.versions[first:last],
        )

    @classmethod
    def of(
        cls,
        deliveries: Sequence[m.Deliver],
        handle_of: dict[str, int],
        positions: Sequence[int] | None = None,
    ) -> Deliver:
        """The deliveries of a broker, with the handles of the names of subscriptions."""
        matches = [
            [
                *((handle_of[each.name], each.version) for each in delivery.matches),
                *([(0, 0)] if delivery.unnamed else []),
            ]
            for delivery in deliveries
        ]
        flat = [pair for each in matches for pair in each]
        return cls(
            PublicationBlock.of([each.publication for each in deliveries]),
            np.array([0] * len(deliveries) if positions is None else positions, np.int64),
            np.array(list(map(len, matches)), np.int64),
            np.array([handle for handle, _ in flat], np.int64),
            np.array([version for _, version in flat], np.int64),
        )

    def encode(self, shape_numbers: Sequence[int]) -> list[Part]:
        """The parts of its bytes."""
        columns = [
            *encode_columns(_PER_EVENT, [self.positions, self.match_counts]),
            encode_count(len(self.handles)),
            *encode_columns(_PER_MATCH, [self.handles, self.versions]),
        ]
        return self.publications.encode(shape_numbers, None, columns)

    @classmethod
    def decode(cls, data: memoryview, received: ReceivedEventShapes) -> Deliver:
        """The message that these bytes are; raises ProtocolError if they are none."""
        publications = PublicationReader(data, "a delivery")
        reader = publications.reader
        positions, match_counts = reader.columns(_PER_EVENT, publications.count)
        count = reader.count(MATCHES_MAX)
        if int(match_counts.sum()) != count:
            raise ProtocolError(
                f"a delivery has {count} matches, not the {int(match_counts.sum())} that its "
                "events have together"
            )
        handles, versions = reader.columns(_PER_MATCH, count)
        publications.check_no_more()
        return cls(publications.block(received), positions, match_counts, handles, versions)


@dataclass(frozen=True, slots=True, eq=False)
class DeliverSequence:
    """A broker gives its client the events that together match a pattern."""

    handle: int
    publications: PublicationBlock

    def __len__(self) -> int:
        return len(self.publications)

    @property
    def shapes(self) -> tuple[EventShape, ...]:
        """The distinct shapes of the events."""
        return self.publications.events.shapes

    def encode(self, shape_numbers: Sequence[int]) -> list[Part]:
        """The parts of its bytes."""
        return self.publications.encode(shape_numbers, self.handle, [])

    @classmethod
    def decode(cls, data: memoryview, received: ReceivedEventShapes) -> DeliverSequence:
        """The message that these bytes are; raises ProtocolError if they are none."""
        publications = PublicationReader(data, "a sequence")
        try:
            handle = _handle.decode(publications.more)
        except MALFORMED as error:
            raise ProtocolError(f"a sequence has no handle: {error}") from None
        return cls(handle, publications.block(received))


_handle = Decoder(Handle)
