"""A connection, without I/O: bytes that came go in and messages come out, and the reverse.

Rules.

(1) Nothing but the handshake is accepted before it is through, and nothing after `Goodbye`.
(2) What a peer sends is checked completely before it comes out: types, ranges, sizes, and that this
    side of the connection may send it. The first violation ends the connection: `Broken` comes out,
    `Goodbye` is ready to be written, and further input is ignored.
(3) Shapes are mapped here. Messages that come out or go in know nothing of their numbers, so a
    message can be sent on several connections, or again on the next one.

    connection = Connection.accepting()
    for message in connection.receive(data): ...
    connection.send(requests.Done(7, [1]))
    writer.writelines(connection.take_output())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec
from msgspec.msgpack import Decoder, Encoder

from tidegate.errors import EventError, NetworkError, ProtocolError
from tidegate.language.shapes import Shape
from tidegate.network.wire import requests
from tidegate.network.wire.columns import Part
from tidegate.network.wire.deliveries import Deliver, DeliverSequence, Publish
from tidegate.network.wire.event_block import EVENTS_MAX
from tidegate.network.wire.event_shapes import (
    EventShape,
    ReceivedEventShapes,
    SentEventShapes,
)
from tidegate.network.wire.filter_shapes import ReceivedFilterShapes, SentFilterShapes
from tidegate.network.wire.flow import Ack, Confirmed, Credit, Heartbeat, LinkAck, NotPublished
from tidegate.network.wire.frames import HEADER_BYTES, FrameReader, FrameType, frame_header
from tidegate.network.wire.handshake import HANDSHAKE_BYTES_MAX, VERSION, Goodbye, Hello, Welcome
from tidegate.network.wire.links import (
    ANOTHER_FOLLOWS,
    GOES_ON,
    PIECE_HEADER,
    Linked,
    LinkMessage,
    Notifications,
    PieceJoiner,
    decode_payload,
    encode_message,
)
from tidegate.network.wire.peer_conversion import PeerReader, PeerWriter
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.values import MALFORMED

_STRUCTS: Mapping[FrameType, type[msgspec.Struct]] = {
    FrameType.HELLO: Hello,
    FrameType.WELCOME: Welcome,
    FrameType.GOODBYE: Goodbye,
    FrameType.HEARTBEAT: Heartbeat,
    FrameType.CREDIT: Credit,
    FrameType.SUBSCRIBE: requests.Subscribe,
    FrameType.SUBSCRIBE_ROWS: requests.SubscribeRows,
    FrameType.UPDATE: requests.Update,
    FrameType.CANCEL: requests.Cancel,
    FrameType.UNSUBSCRIBE: requests.Unsubscribe,
    FrameType.ADVERTISE: requests.Advertise,
    FrameType.UNADVERTISE: requests.Unadvertise,
    FrameType.SUSPEND: requests.Suspend,
    FrameType.RESUME: requests.Resume,
    FrameType.DEPART: requests.Depart,
    FrameType.ACK: Ack,
    FrameType.DONE: requests.Done,
    FrameType.REFUSED: requests.Refused,
    FrameType.IN_FORCE: requests.InForce,
    FrameType.HELD: requests.Held,
    FrameType.CONFIRMED: Confirmed,
    FrameType.NOT_PUBLISHED: NotPublished,
    FrameType.MISSED: requests.Missed,
    FrameType.LINK_ACK: LinkAck,
}
"""The frames whose body is one MessagePack array."""


class _Receives(Enum):
    """The frames that a side takes when the handshake is through."""

    FROM_CLIENT = frozenset(
        [
            *(FrameType(number) for number in range(FrameType.SUBSCRIBE, FrameType.ACK + 1)),
            FrameType.FILTER_SHAPE,
        ]
    )
    FROM_BROKER = frozenset(
        FrameType(number) for number in range(FrameType.DONE, FrameType.MISSED + 1)
    )
    FROM_NEIGHBOUR = frozenset([FrameType.LINK_ACK, FrameType.LINK_MESSAGE, FrameType.FILTER_SHAPE])


_ALWAYS = frozenset(
    [FrameType.GOODBYE, FrameType.HEARTBEAT, FrameType.CREDIT, FrameType.EVENT_SHAPE]
)
_COLUMNS: Mapping[FrameType, type[Publish | Deliver | DeliverSequence]] = {
    FrameType.PUBLISH: Publish,
    FrameType.DELIVER: Deliver,
    FrameType.DELIVER_SEQUENCE: DeliverSequence,
}
_TYPE_OF = {each: type for type, each in [*_STRUCTS.items(), *_COLUMNS.items()]}
_DECODERS: Mapping[FrameType, Decoder[Any]] = {
    type: Decoder(each) for type, each in _STRUCTS.items()
}
_encoder = Encoder()


@dataclass(frozen=True, slots=True)
class Broken:
    """The peer has broken the protocol; nothing more comes out of the connection."""

    error: ProtocolError


Message = (
    Hello | Welcome | Goodbye | Credit | requests.Request | requests.Answer | Publish | Ack
    | Confirmed | NotPublished | Deliver | DeliverSequence | Linked | LinkAck | Broken
)  # fmt: skip
"""What comes out of a connection."""


class Connection:
    """One end of a connection."""

    def __init__(self, *, frame_bytes_max: int) -> None:
        self._own_frame_bytes_max = frame_bytes_max
        self._peer_frame_bytes_max = HANDSHAKE_BYTES_MAX
        self._reader = FrameReader(HANDSHAKE_BYTES_MAX)
        self._expected = frozenset([FrameType.HELLO])
        self._output: list[Part] = []
        self._received_events = ReceivedEventShapes()
        self._sent_events = SentEventShapes()
        self.received_filters = ReceivedFilterShapes()
        """For `filter_shapes.subscribe_messages`."""
        self._sent_filters = SentFilterShapes()
        self._peer_writer = PeerWriter(self._sent_filters)
        self._peer_reader = PeerReader(self.received_filters)
        self._pieces = PieceJoiner()
        self.hello: Hello | None = None
        self.is_open = False
        """Whether the handshake is through and nobody has said goodbye."""
        self.is_closed = False
        """Whether one side has said goodbye; what is left of the output can still be written."""

    @classmethod
    def connecting(cls, hello: Hello) -> Connection:
        """The end of a client, or of a broker that links to a neighbour."""
        connection = cls(frame_bytes_max=hello.frame_bytes_max)
        connection.hello = hello
        connection._expected = frozenset([FrameType.WELCOME, FrameType.GOODBYE])
        connection._write(FrameType.HELLO, [_encoder.encode(hello)])
        return connection

    @classmethod
    def accepting(cls) -> Connection:
        """The end of a broker that somebody connects to; `Hello` comes out first."""
        return cls(frame_bytes_max=HANDSHAKE_BYTES_MAX)

    # -- output -------------------------------------------------------------------------------

    def welcome(self, welcome: Welcome) -> None:
        """Admit the initiator, whose `Hello` has come out."""
        assert self.hello is not None  # it has come out
        self._write(FrameType.WELCOME, [_encoder.encode(welcome)])
        is_client = self.hello.role == "client"
        self._own_frame_bytes_max = welcome.frame_bytes_max
        receives = _Receives.FROM_CLIENT if is_client else _Receives.FROM_NEIGHBOUR
        self._open(receives, self.hello.frame_bytes_max)

    def goodbye(self, problem: Problem, retry_ms: int | None = None) -> None:
        """Say why this end closes the connection; nothing can be sent afterwards."""
        if not self.is_closed:
            self._write(FrameType.GOODBYE, [_encoder.encode(Goodbye(problem, retry_ms))])
            self._close()

    def send(self, message: msgspec.Struct | Publish | Deliver | DeliverSequence) -> None:
        """Add a message to the output; a block that is too large for one frame is split.

        Raises EventError for an event that is larger than the peer takes, and NetworkError if the
        connection is not open.
        """
        self._check_open()
        if isinstance(message, Publish | Deliver | DeliverSequence):
            self._send_block(message)
        else:
            self._write(_TYPE_OF[type(message)], [_encoder.encode(message)])

    def shape_numbers(self, shapes: Sequence[EventShape], frame_bytes: int) -> list[int] | None:
        """The numbers of shapes for a frame that is written elsewhere, and then given to
        `send_frame`; None if the peer does not take a frame of this size."""
        self._check_open()
        if frame_bytes - HEADER_BYTES + 1 > self._peer_frame_bytes_max:
            return None
        return self._define(shapes)

    def send_frame(self, frame: memoryview) -> None:
        """Add a whole frame to the output."""
        self._check_open()
        self._output.append(frame)

    def send_link(self, number: int, message: LinkMessage) -> None:
        """Add a message to a neighbour to the output, whatever its size."""
        self._check_open()
        if isinstance(message, Notifications):
            self._send_notifications(number, message, 0)
            return
        wire = self._peer_writer.write(message)
        for definition in self._peer_writer.definitions:
            self._write(FrameType.FILTER_SHAPE, [definition])
        self._write_pieces(number, encode_message(wire, self._peer_writer.publications), 0)

    def filter_shape(self, shape: Shape) -> int | None:
        """The number of a shape for `SubscribeRows`, defined if it was not yet.

        None if the text of each filter must be sent in place of rows.
        """
        definitions: list[bytes] = []
        self._sent_filters.begin_message()
        number = self._sent_filters.number(shape, definitions)
        for definition in definitions:
            self._write(FrameType.FILTER_SHAPE, [definition])
        return number

    def take_output(self) -> list[Part]:
        """The bytes to be written, in pieces; they are gone from the connection."""
        output, self._output = self._output, []
        return output

    @property
    def has_output(self) -> bool:
        """Whether there are bytes to be written."""
        return bool(self._output)

    def _check_open(self) -> None:
        if not self.is_open:
            raise NetworkError("the connection is not open")

    def _send_block(self, message: Publish | Deliver | DeliverSequence) -> None:
        shapes = message.shapes
        numbers = None if len(message) > EVENTS_MAX else self._define(shapes)
        if numbers is not None:
            parts = message.encode(numbers)
            if 1 + sum(map(len, parts)) <= self._peer_frame_bytes_max:
                self._write(_TYPE_OF[type(message)], parts)
                return
        if len(message) < 2 or isinstance(message, DeliverSequence):
            raise EventError(
                f"an event is too large: the peer takes frames of {self._peer_frame_bytes_max} "
                "bytes"
            )
        middle = len(message) // 2
        self._send_block(message.part(0, middle))
        self._send_block(message.part(middle, len(message)))

    def _define(self, shapes: Sequence[EventShape]) -> list[int] | None:
        """The numbers of shapes, which are defined if they were not yet; None if too many."""
        found = self._sent_events.numbers(shapes)
        if found is None:
            return None
        numbers, definitions = found
        for definition in definitions:
            self._write(FrameType.EVENT_SHAPE, [definition])
        return numbers

    def _send_notifications(self, number: int, message: Notifications, flags: int) -> None:
        """Add notifications in one payload; in several if their shapes do not fit in one table."""
        numbers = None if len(message) > EVENTS_MAX else self._define(message.shapes)
        if numbers is None:
            middle = len(message) // 2
            self._send_notifications(number, message.part(0, middle), ANOTHER_FOLLOWS)
            self._send_notifications(number, message.part(middle, len(message)), flags)
        else:
            self._write_pieces(number, message.encode(numbers), flags)

    def _write_pieces(self, number: int, payload: list[Part], flags: int) -> None:
        """Add a payload, in as many frames as the peer's limit takes."""
        size_max = self._peer_frame_bytes_max - PIECE_HEADER.size - 1
        if sum(map(len, payload)) > size_max:
            joined = memoryview(b"".join(payload))
            while len(joined) > size_max:
                head = PIECE_HEADER.pack(number, flags | GOES_ON)
                self._write(FrameType.LINK_MESSAGE, [head, joined[:size_max]])
                joined = joined[size_max:]
            payload = [joined]
        self._write(FrameType.LINK_MESSAGE, [PIECE_HEADER.pack(number, flags), *payload])

    def _write(self, type: FrameType, parts: Sequence[Part]) -> None:
        size = sum(map(len, parts))
        if size + 1 > self._peer_frame_bytes_max:
            raise NetworkError(
                f"{type.name} has {size} bytes; the peer takes {self._peer_frame_bytes_max}"
            )
        self._output.append(frame_header(type, size))
        self._output += parts

    # -- input --------------------------------------------------------------------------------

    def receive(self, data: bytes | bytearray | memoryview) -> list[Message]:
        """The messages that are complete with this data, in order; the last may be `Broken`."""
        messages: list[Message] = []
        if self.is_closed:
            return messages
        try:
            for frame in self._reader.read(data):
                if frame.type not in self._expected:
                    raise ProtocolError(f"{frame.type.name} is not expected here")
                message = self._decode(frame.type, frame.body)
                if message is not None:
                    messages.append(message)
                if isinstance(message, Goodbye):
                    break
        except ProtocolError as error:
            self.goodbye(Problem.of(error))
            messages.append(Broken(error))
        return messages

    def _decode(self, type: FrameType, body: memoryview) -> Message | None:
        """The message of a frame; None if it is for the connection itself."""
        match type:
            case FrameType.EVENT_SHAPE:
                self._received_events.define(body)
                return None
            case FrameType.FILTER_SHAPE:
                self.received_filters.define(body)
                return None
            case FrameType.LINK_MESSAGE:
                return self._linked(body)
            case FrameType.PUBLISH | FrameType.DELIVER | FrameType.DELIVER_SEQUENCE:
                return _COLUMNS[type].decode(body, self._received_events)
        try:
            message = _DECODERS[type].decode(body)
        except MALFORMED as error:
            raise ProtocolError(f"{type.name} is malformed: {error}") from None
        match message:
            case Heartbeat():
                return None
            case Hello():
                self._hello_came(message)
            case Welcome():
                self._welcome_came(message)
            case Goodbye():
                self._close()
        return message  # type: ignore[no-any-return]

    def _linked(self, body: memoryview) -> Linked | None:
        """The link message that is complete with the body of a frame."""
        payload = self._pieces.add(body)
        if payload is None:
            return None
        number, data, is_last = payload
        message = decode_payload(data, self._received_events, self._peer_reader)
        return Linked(number, message, is_last)

    def _hello_came(self, hello: Hello) -> None:
        low, high = hello.versions
        if not low <= VERSION <= high:
            raise ProtocolError(
                f"version {VERSION} of the protocol is spoken here, not {low} to {high}"
            )
        self.hello = hello
        self._expected = frozenset()  # until this end has sent `Welcome`

    def _welcome_came(self, welcome: Welcome) -> None:
        assert self.hello is not None  # this end has sent it
        low, high = self.hello.versions
        if not low <= welcome.version <= high:
            raise ProtocolError(
                f"the broker has chosen version {welcome.version}, not one of {low} to {high}"
            )
        is_client = self.hello.role == "client"
        receives = _Receives.FROM_BROKER if is_client else _Receives.FROM_NEIGHBOUR
        self._open(receives, welcome.frame_bytes_max)

    def _open(self, receives: _Receives, peer_frame_bytes_max: int) -> None:
        self._expected = receives.value | _ALWAYS
        self._reader.frame_bytes_max = self._own_frame_bytes_max
        self._peer_frame_bytes_max = peer_frame_bytes_max
        self.is_open = True

    def _close(self) -> None:
        self.is_open, self.is_closed = False, True
        self._expected = frozenset()
