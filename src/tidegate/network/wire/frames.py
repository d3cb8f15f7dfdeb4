"""Frames: how a stream of bytes is cut into typed pieces, with a bound on each.

    length   u32, big endian   bytes of what follows: the type and the body
    type     u8
    body     length - 1 bytes

The length is checked when its four bytes are there, before anything is kept: a peer cannot make
this side hold more than one frame of the allowed size and one chunk of input.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from tidegate.errors import ProtocolError


class FrameType(IntEnum):
    """The types of frames; the names are those of the messages."""

    # both ways
    HELLO = 0x01
    WELCOME = 0x02
    GOODBYE = 0x03
    HEARTBEAT = 0x04
    CREDIT = 0x05
    EVENT_SHAPE = 0x06
    FILTER_SHAPE = 0x07
    # client to broker
    SUBSCRIBE = 0x10
    SUBSCRIBE_ROWS = 0x11
    UPDATE = 0x12
    CANCEL = 0x13
    UNSUBSCRIBE = 0x14
    ADVERTISE = 0x15
    UNADVERTISE = 0x16
    SUSPEND = 0x17
    RESUME = 0x18
    DEPART = 0x19
    PUBLISH = 0x1A
    ACK = 0x1B
    # broker to client
    DONE = 0x20
    REFUSED = 0x21
    IN_FORCE = 0x22
    HELD = 0x23
    CONFIRMED = 0x24
    NOT_PUBLISHED = 0x25
    DELIVER = 0x26
    DELIVER_SEQUENCE = 0x27
    MISSED = 0x28
    # broker to broker
    LINK_ACK = 0x40
    LINK_MESSAGE = 0x41


class Frame(NamedTuple):
    """One frame of the stream."""

    type: FrameType
    body: memoryview


_LENGTH = Struct(">I")
HEADER_BYTES = 5
"""The length and the type."""

_TYPES = {int(each): each for each in FrameType}


def frame_header(type: FrameType, body_bytes: int) -> bytes:
    """The first bytes of a frame whose body has so many bytes.

    >>> frame_header(FrameType.HEARTBEAT, 0).hex()
    '0000000104'
    """
    return _LENGTH.pack(body_bytes + 1) + bytes((type,))


_TLS = 0x1603
"""The first two bytes of a connection that begins with TLS."""


class FrameReader:
    """Cuts the bytes of a stream into frames.

    >>> reader = FrameReader(frame_bytes_max=100)
    >>> list(reader.read(bytes.fromhex("00000001")))
    []
    >>> [frame.type.name for frame in reader.read(bytes.fromhex("04 0000000104"))]
    ['HEARTBEAT', 'HEARTBEAT']
    """

    def __init__(self, frame_bytes_max: int) -> None:
        self.frame_bytes_max = frame_bytes_max
        """The limit on `length`; it may be raised between two frames."""
        self._partial = bytearray()

    @property
    def waiting_bytes(self) -> int:
        """Bytes of a frame of which the rest has not come yet."""
        return len(self._partial)

    def read(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        """The frames that are complete with this data; take them all before the next call.

        A body is a view of the data if the whole frame came in it, so ``data`` must not be changed
        afterwards.
        """
        view = memoryview(data)
        position = 0
        while position < len(view) or self._partial:
            if self._partial:
                position += self._complete(view[position:])
                frame = self._frame_at(memoryview(self._partial), 0)
                if frame is None:
                    break
                # A new one: the frame is a view of the old one, which lives as long as its views.
                self._partial = bytearray()
            else:
                frame = self._frame_at(view, position)
                if frame is None:
                    self._partial += view[position:]
                    break
                position += HEADER_BYTES + len(frame.body)
            yield frame

    def _complete(self, view: memoryview) -> int:
        """Move bytes that belong to the partial frame to it; returns how many."""
        taken = 0
        if len(self._partial) < HEADER_BYTES:
            taken = min(HEADER_BYTES - len(self._partial), len(view))
            self._partial += view[:taken]
        if len(self._partial) >= _LENGTH.size:
            missing = _LENGTH.size + self._length(self._partial, 0) - len(self._partial)
            more = view[taken : taken + max(0, missing)]
            self._partial += more
            taken += len(more)
        return taken

    def _frame_at(self, view: memoryview, position: int) -> Frame | None:
        """The frame that begins at a position; None if its rest has not come yet."""
        if len(view) - position < _LENGTH.size:
            return None
        length = self._length(view, position)
        begin = position + HEADER_BYTES
        end = position + _LENGTH.size + length
        if len(view) >= begin:
            type = _TYPES.get(view[begin - 1])
            if type is None:
                raise ProtocolError(f"there is no frame of type {view[begin - 1]:#04x}")
            if len(view) >= end:
                return Frame(type, view[begin:end])
        return None

    def _length(self, view: memoryview | bytearray, position: int) -> int:
        length: int = _LENGTH.unpack_from(view, position)[0]
        if not 1 <= length <= self.frame_bytes_max:
            other = "TLS, and this side does not" if length >> 16 == _TLS else "another protocol"
            raise ProtocolError(
                f"a frame has from 1 to {self.frame_bytes_max} bytes, not {length}; is the peer "
                f"speaking {other}?"
            )
        return length
