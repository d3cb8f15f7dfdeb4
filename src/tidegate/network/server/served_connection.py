"""A connection of a broker: bytes in, messages to the next turn, bytes out."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from tidegate.errors import EventError, NetworkError, TidegateError
from tidegate.network.server.access.authentication import names_of_transport
from tidegate.network.wire.connection import Connection, Message
from tidegate.network.wire.flow import Heartbeat
from tidegate.network.wire.links import LinkMessage
from tidegate.network.wire.problems import Problem

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.links import Link
    from tidegate.network.server.sessions import ClientSession

_UNHANDLED_BYTES_MAX = 1 << 23
"""Reading pauses when so many bytes wait for a turn."""
_UNWRITTEN_BYTES_MAX = 1 << 22
"""Deliveries wait in their queue while the socket has so many bytes to write."""


class ServedConnection(asyncio.Protocol):
    """One connection; its peer is not known before the handshake."""

    def __init__(self, server: BrokerServer, wire: Connection | None = None) -> None:
        """``wire`` is given for a connection that this broker makes."""
        self._server = server
        self._transport: asyncio.Transport | None = None
        self.wire = wire or Connection.accepting()
        self.arrived: deque[Message] = deque()
        """Messages for the next turn."""
        self.session: ClientSession | None = None
        self.link: Link | None = None
        """The link that the connection is of; it has one from `Hello` or `Welcome` on."""
        self.lost = asyncio.Event()
        """Set when the connection is closed."""
        self.address = "unknown"
        self.certificate_names: frozenset[str] = frozenset()
        """The names in the peer's certificate, which is trusted; none without one."""
        self.paused_s = 0.0
        """How long the next turn has to wait with what has arrived, because it was too much."""
        self.is_local = False
        """Whether it comes from this process itself, which has asked who it is for."""
        self._early: list[bytes] = []
        self.is_lost = False
        self.can_write = True
        """Whether the socket takes more."""
        self.last_heard = self.last_written = server.loop.time()
        self.heartbeat_s = 0.0
        """What this side promises; 0 before the handshake."""
        self.silence_max_s = 0.0
        """After so much silence the peer is taken for gone."""
        self._unhandled = 0

    # -- asyncio ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_UNWRITTEN_BYTES_MAX)
        peer = transport.get_extra_info("peername")
        self.address = f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)
        self.certificate_names = names_of_transport(transport)
        self._server.connection_made(self)
        early, self._early = self._early, []
        for data in early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:  # came with the last bytes of the handshake of TLS
            self._early.append(data)
            return
        self.last_heard = self._server.loop.time()
        self._unhandled += len(data)
        self._server.counters.received_bytes += len(data)
        self.arrived.extend(self.wire.receive(data))
        if self._unhandled > _UNHANDLED_BYTES_MAX and self._transport is not None:
            self._transport.pause_reading()
        if self.arrived:
            self._server.turns.wake(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.is_lost = True
        self.lost.set()
        self._server.connection_lost(self)

    def pause_writing(self) -> None:
        self.can_write = False

    def resume_writing(self) -> None:
        self.can_write = True
        if self.session is not None:
            self._server.output.touch(self.session)
            self._server.turns.wake()

    # -- turns --------------------------------------------------------------------------------

    def handled(self) -> None:
        """Note that a turn has taken all that arrived."""
        if self._unhandled > _UNHANDLED_BYTES_MAX and self._transport and not self.is_lost:
            self._transport.resume_reading()
            self.last_heard = self._server.loop.time()  # what it has said meanwhile was not read
        self._unhandled = 0

    def stop_reading(self) -> None:
        """Take no more bytes, because the broker drains."""
        if self._transport is not None and not self.is_lost:
            self._unhandled = 0  # so that nothing resumes it
            self._transport.pause_reading()

    def send(self, message: Any) -> None:
        """Send a message at the end of the turn, unless the connection has ended."""
        if not self.wire.is_open:
            return
        try:
            self.wire.send(message)
        except EventError as error:
            # An event that the peer's frames cannot hold: the peer must know that it has a gap.
            self.end(error)
        except NetworkError as error:
            self.end(error)

    def send_link(self, number: int, message: LinkMessage) -> None:
        """Send a neighbour a message of its link, unless the connection has ended."""
        if not self.wire.is_open:
            return
        try:
            self.wire.send_link(number, message)
        except NetworkError as error:
            self.end(error)

    def end(self, error: TidegateError, retry_ms: int | None = None) -> None:
        """Say goodbye and close, after what was sent so far."""
        self.wire.goodbye(Problem.of(error), retry_ms)
        self.write_out()

    def write_out(self) -> None:
        """Write what the turn has sent, and close after a goodbye."""
        transport = self._transport
        if transport is None or self.is_lost:
            return
        if self.wire.has_output:
            output = self.wire.take_output()
            self._server.counters.sent_bytes += sum(map(len, output))
            transport.writelines(output)
            self.last_written = self._server.loop.time()
        if self.wire.is_closed:
            transport.close()

    def abort(self) -> None:
        """Close at once; what was not written is lost."""
        if self._transport is not None:
            self._transport.abort()

    def beat(self, now: float) -> bool:
        """Send a heartbeat if one is due; returns whether the peer is still there."""
        if self.heartbeat_s and now - self.last_written >= self.heartbeat_s / 2:
            self.send(Heartbeat())
            self.write_out()
        is_read = self._unhandled <= _UNHANDLED_BYTES_MAX
        return not (self.silence_max_s and is_read) or now - self.last_heard < self.silence_max_s
