"""A client without objects for events: it counts what comes, as fast as bytes can be read.

`tidegate.connect` makes an object of each event, which costs the client more than the broker's work
on it. A benchmark of the broker needs clients that cost less than it does, as those in compiled
languages do.
"""

from __future__ import annotations

import random
import select
import socket
from collections import deque
from struct import Struct
from typing import Any

import numpy as np

from tidegate.errors import NetworkError
from tidegate.matching.arrays import I64
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.frames import FrameType
from tidegate.network.wire.handshake import Goodbye, Hello, Welcome

_PLENTY = 1 << 60
_HEARTBEAT_MS = 600_000
_LENGTH = Struct(">I")
_COUNT = Struct("<I")
_PER_EVENT_BYTES = 4 + 8 + 4 + 1
"""The columns of stamps, publishers and flags."""
_POSITION_BYTES = 8 + 4
_MATCH_BYTES = 4 + 8


class RawClient:
    """One connection to a broker, in blocking mode while it is set up."""

    def __init__(self, port: int, identity: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = Hello(
            identity, random.getrandbits(62), credit_events=_PLENTY, credit_bytes=_PLENTY,
            heartbeat_ms=_HEARTBEAT_MS,
        )  # fmt: skip
        self.wire = Connection.connecting(hello)
        self._waiting: deque[Any] = deque()
        self.requests = 0
        self.flush()
        self.welcome: Welcome = self.wait_for(Welcome)

    def flush(self) -> None:
        """Write what was sent."""
        self.socket.sendall(b"".join(self.wire.take_output()))

    def wait_for(self, kind: type[Any]) -> Any:
        """The next message of a kind; others before it are dropped."""
        while not isinstance(message := self.next_message(), kind):
            pass
        return message

    def next_message(self) -> Any:
        """The next message; raises NetworkError for a goodbye."""
        while not self._waiting:
            data = self.socket.recv(1 << 20)
            if not data:
                raise NetworkError("the broker has closed the connection")
            self._waiting.extend(self.wire.receive(data))
        message = self._waiting.popleft()
        if isinstance(message, Goodbye):
            raise NetworkError(f"the broker ends the connection: {message.problem.reason}")
        return message

    def messages_now(self) -> list[Any]:
        """What has come, without waiting."""
        found = list(self._waiting)
        self._waiting.clear()
        while select.select([self.socket], [], [], 0)[0]:
            data = self.socket.recv(1 << 20)
            if not data:
                raise NetworkError("the broker has closed the connection")
            found += self.wire.receive(data)
        return found

    def next_request(self) -> int:
        """The number of the next request."""
        self.requests += 1
        return self.requests


class Received:
    """What one connection has received, frame by frame, without decoding events."""

    def __init__(self) -> None:
        self._partial = b""
        self.deliveries = 0
        self.matches = 0
        self.missed = 0
        self.answers = 0
        self.times_us: list[I64] | None = None
        """Publication times of the deliveries, if they are wanted."""
        self.pairs: list[tuple[I64, I64]] | None = None
        """Numbers of events and handles, one for each match, if they are wanted."""

    def feed(self, data: bytes) -> list[bytes]:
        """Count what is complete with this data; returns the frames that are no deliveries."""
        if self._partial:
            data = self._partial + data
        others = []
        at, end = 0, len(data)
        while end - at >= 5:
            length: int = _LENGTH.unpack_from(data, at)[0]
            if end - at < 4 + length:
                break
            kind = data[at + 4]
            if kind == FrameType.DELIVER:
                self._deliver(data, at + 5)
            elif kind == FrameType.DONE:
                self.answers += 1
            else:
                others.append(data[at : at + 4 + length])
            at += 4 + length
        self._partial = data[at:]
        return others

    def _deliver(self, data: bytes, at: int) -> None:
        at += 4 + _COUNT.unpack_from(data, at)[0]
        count: int = _COUNT.unpack_from(data, at)[0]
        columns = at + 4
        at = columns + count * (_PER_EVENT_BYTES + _POSITION_BYTES)
        matches: int = _COUNT.unpack_from(data, at)[0]
        self.deliveries += count
        self.matches += matches
        if self.times_us is not None:
            at_times = at + 4 + matches * _MATCH_BYTES + 4 + 4 * count
            self.times_us.append(np.frombuffer(data, "<i8", count, at_times))
        if self.pairs is not None:
            numbers = np.frombuffer(data, "<u8", count, columns + 4 * count)
            counts = np.frombuffer(data, "<u4", count, at - 4 * count)
            handles = np.frombuffer(data, "<u4", matches, at + 4)
            self.pairs.append(
                (np.repeat(numbers, counts).astype(np.int64), handles.astype(np.int64))
            )
