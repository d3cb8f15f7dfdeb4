"""The rows of a store and their checksums.

A checksum covers the key of a row too: a row that has come under another key is recognized. CRC-32
finds every error of up to 32 bits in a row, which is what disks and memory do; it is no protection
against somebody who may write the file.
"""

from __future__ import annotations

import struct
from typing import NamedTuple
from zlib import crc32

_EVENT_KEY = struct.Struct("<qqq")
_QUEUE_KEY = struct.Struct("<qq")
_NUMBER = struct.Struct("<q")


class EventRow(NamedTuple):
    """An event: the number of its shape, its publication time, a header and its values.

    The store does not look into header and body; the wire protocol defines them.
    """

    position: int
    shape: int
    time_us: int
    header: bytes
    body: bytes
    checksum: int

    @property
    def expected_checksum(self) -> int:
        return event_checksum(self.position, self.shape, self.time_us, self.header, self.body)


class QueueRow(NamedTuple):
    """An event that a queue holds, and what goes with it to this receiver."""

    queue: int
    position: int
    detail: bytes
    checksum: int

    @property
    def expected_checksum(self) -> int:
        return queue_row_checksum(self.queue, self.position, self.detail)


class PositionRow(NamedTuple):
    """How far the numbered events of a publisher or broker have been taken."""

    kind: str
    name: str
    epoch: int
    number: int
    checksum: int

    @property
    def expected_checksum(self) -> int:
        return position_checksum(self.kind, self.name, self.epoch, self.number)


class StateRow(NamedTuple):
    """A piece of the state of the broker."""

    kind: str
    owner: str
    key: bytes
    value: bytes
    checksum: int

    @property
    def expected_checksum(self) -> int:
        return state_checksum(self.kind, self.owner, self.key, self.value)


class ShapeRow(NamedTuple):
    """The attributes of the events of one shape, in the order of their values."""

    number: int
    description: bytes
    checksum: int

    @property
    def expected_checksum(self) -> int:
        return shape_checksum(self.number, self.description)


def event_checksum(position: int, shape: int, time_us: int, header: bytes, body: bytes) -> int:
    """The checksum of an event."""
    return crc32(body, crc32(header, crc32(_EVENT_KEY.pack(position, shape, time_us))))


def queue_row_checksum(queue: int, position: int, detail: bytes) -> int:
    """The checksum of a row of a queue."""
    return crc32(detail, crc32(_QUEUE_KEY.pack(queue, position)))


def position_checksum(kind: str, name: str, epoch: int, number: int) -> int:
    """The checksum of a position."""
    return crc32(_QUEUE_KEY.pack(epoch, number), crc32(f"{kind}\0{name}".encode()))


def state_checksum(kind: str, owner: str, key: bytes, value: bytes) -> int:
    """The checksum of a piece of state; the length of the key separates it from the value."""
    head = f"{kind}\0{owner}".encode() + _NUMBER.pack(len(key))
    return crc32(value, crc32(key, crc32(head)))


def shape_checksum(number: int, description: bytes) -> int:
    """The checksum of a shape."""
    return crc32(description, crc32(_NUMBER.pack(number)))
