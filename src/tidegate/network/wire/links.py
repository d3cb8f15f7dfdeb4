"""Messages on the link between two brokers, numbered so that none is lost when a connection breaks.

    number   u64   little endian; of each message one more than of the one before
    flags    u8    bit 0: the payload goes on in the next frame
                   bit 1: another payload of this number follows
    piece          of the payload

    payload of notifications             payload of any other message
    kind      u8   1                     kind      u8   2
    head, count, stamps                  head           see `peer_messages`
    route_of  count u32                  publications   of the message, if it has any
    block

The head of notifications has the distinct routes as its third part: [tree, targets, examination] as
in `Notify`. The publications of another message have event shapes of their own, numbered from 0:
the third part of their head is the list of them, [space, names] each.

A payload may be larger than a frame, because a message is one step for the receiver, however many
filters are in it. Notifications are cut into several payloads only where their shapes do not fit
into one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any

from msgspec.msgpack import Decoder

from tidegate.errors import EventError, ProtocolError
from tidegate.matching.arrays import I64
from tidegate.network.wire import peer_messages as w
from tidegate.network.wire.columns import (
    ColumnReader,
    Layout,
    Part,
    encode_columns,
    encode_head,
)
from tidegate.network.wire.event_shapes import (
    EventShape,
    ListedEventShapes,
    ReceivedEventShapes,
)
from tidegate.network.wire.peer_conversion import PeerReader, examination_of, wire_examination
from tidegate.network.wire.publications import PublicationBlock, PublicationReader, check_indices
from tidegate.network.wire.values import MALFORMED, Name, SpaceName
from tidegate.routing import messages as m

PAYLOAD_BYTES_MAX = 1 << 28
"""A payload of several frames; a table of a million filters takes about a quarter of it."""
PIECE_HEADER = Struct("<QB")
GOES_ON, ANOTHER_FOLLOWS = 1, 2

_NOTIFICATIONS, _MESSAGE = 1, 2
_LAYOUT: Layout = [("route_of", "<u4")]


@dataclass(frozen=True, slots=True)
class Route:
    """What `routing.messages.Notify` has beside the publication."""

    tree: str | None = None
    targets: frozenset[str] | None = None
    examination: m.Examination | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Notifications:
    """Events that a broker passes on to a neighbour, in columns."""

    publications: PublicationBlock
    routes: Sequence[Route]
    """The distinct routes."""
    route_of: I64

    def __len__(self) -> int:
        return len(self.publications)

    @property
    def shapes(self) -> tuple[EventShape, ...]:
        """The distinct shapes of the events."""
        return self.publications.events.shapes

    def part(self, begin: int, end: int) -> Notifications:
        """The events from index ``begin`` to before ``end``."""
        publications = self.publications.part(begin, end)
        return Notifications(publications, self.routes, self.route_of[begin:end])

    def message(self, index: int) -> m.Notify:
        """One event as a routing message."""
        route = self.routes[self.route_of[index]]
        publication = self.publications.publication(index)
        return m.Notify(publication, route.tree, route.targets, route.examination)

    def encode(self, shape_numbers: Sequence[int]) -> list[Part]:
        """The parts of its payload."""
        routes = [
            [
                each.tree,
                None if each.targets is None else sorted(each.targets),
                wire_examination(each.examination),
            ]
            for each in self.routes
        ]
        columns = encode_columns(_LAYOUT, [self.route_of])
        return [bytes((_NOTIFICATIONS,)), *self.publications.encode(shape_numbers, routes, columns)]


LinkMessage = m.PeerMessage | m.Refused | Notifications


@dataclass(frozen=True, slots=True)
class Linked:
    """A message of a neighbour. It is acknowledged when the last with its number was handled."""

    number: int
    message: LinkMessage
    is_last: bool = True


def encode_message(message: w.WireMessage, publications: Sequence[m.Publication]) -> list[Part]:
    """The parts of the payload of a message, with the events that follow it."""
    parts: list[Part] = [bytes((_MESSAGE,)), encode_head(message)]
    if not publications:
        return parts
    block = PublicationBlock.of(publications)
    shapes = [(each.space, each.names) for each in block.events.shapes]
    return parts + block.encode(range(len(shapes)), shapes, [])


def decode_payload(
    data: memoryview, received: ReceivedEventShapes, reader: PeerReader
) -> LinkMessage:
    """The message of a payload; raises ProtocolError if it is none."""
    kind = data[0] if len(data) else 0
    if kind == _NOTIFICATIONS:
        return _notifications(data[1:], received)
    if kind != _MESSAGE:
        raise ProtocolError(f"there is no link message of kind {kind}")
    columns = ColumnReader(data[1:], "a link message")
    message = columns.head(_message)
    publications: tuple[m.Publication, ...] = ()
    if len(columns.rest()):
        block = PublicationReader(columns.rest(), "a link message")
        publications = block.block(_own_shapes(block.more)).publications()
    return reader.read(message, iter(publications))


def _own_shapes(more: bytes) -> ListedEventShapes:
    try:
        return ListedEventShapes(
            [EventShape.of(names, space) for space, names in _shapes.decode(more)]
        )
    except (*MALFORMED, EventError) as error:
        raise ProtocolError(f"the event shapes of a link message: {error}") from None


def _notifications(data: memoryview, received: ReceivedEventShapes) -> Notifications:
    reader = PublicationReader(data, "notifications")
    try:
        wire = _routes.decode(reader.more)
    except MALFORMED as error:
        raise ProtocolError(f"the routes of notifications are malformed: {error}") from None
    routes = [
        Route(
            tree,
            None if targets is None else frozenset(targets),
            examination_of(examination),
        )
        for tree, targets, examination in wire
    ]
    [route_of] = reader.reader.columns(_LAYOUT, reader.count)
    check_indices(route_of, len(routes), "notifications: routes")
    return Notifications(reader.block(received), routes, route_of)


class PieceJoiner:
    """Puts the payloads of link messages together."""

    def __init__(self, payload_bytes_max: int = PAYLOAD_BYTES_MAX) -> None:
        self._payload_bytes_max = payload_bytes_max
        self._number: int | None = None
        """The number of the message of which more is to come."""
        self._pieces = bytearray()

    def add(self, body: memoryview) -> tuple[int, memoryview, bool] | None:
        """Take the body of a frame; returns number, payload, and whether it is the last of the
        number, or None if the payload goes on."""
        if len(body) < PIECE_HEADER.size:
            raise ProtocolError("a link message is cut off")
        number, flags = PIECE_HEADER.unpack_from(body)
        piece = body[PIECE_HEADER.size :]
        if flags > GOES_ON | ANOTHER_FOLLOWS or number >= 2**63:
            raise ProtocolError("the number or the flags of a link message are out of range")
        if self._number not in (None, number):
            raise ProtocolError(f"link message {self._number} goes on, but {number} came")
        if len(self._pieces) + len(piece) > self._payload_bytes_max:
            raise ProtocolError(f"a link message has more than {self._payload_bytes_max} bytes")
        self._number = number if flags else None
        if flags & GOES_ON:
            self._pieces += piece
            return None
        if self._pieces:
            self._pieces += piece
            piece, self._pieces = memoryview(self._pieces), bytearray()
        return number, piece, not flags & ANOTHER_FOLLOWS


_shapes = Decoder(list[tuple[SpaceName | None, tuple[str, ...]]])
_message: Any = Decoder(w.WireMessage)
_routes = Decoder(list[tuple[Name | None, list[Name] | None, w.WireExamination | None]])
