"""The door of a listener with TLS: counts who comes, and says goodbye to who speaks no TLS.

asyncio's own TLS listener shows a connection only when its handshake is through; until then it
would be counted by nobody, and nothing would be said of those that fail.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from tidegate.errors import ProtocolError
from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.problems import Problem

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer

_log = logging.getLogger(__name__)

_HANDSHAKE_RECORD = b"\x16"
"""The first byte of TLS; that of Tidegate is the high byte of a length, and 0."""


def new_door(server: BrokerServer) -> Callable[[], asyncio.Protocol]:
    """What makes the protocol of a new connection of a listener, with TLS or without."""
    tls = server.settings.tls
    if tls is None:
        return lambda: ServedConnection(server)
    context = tls.server_context()
    return lambda: TlsDoor(server, context)


class TlsDoor(asyncio.Protocol):
    """A connection until TLS is agreed on."""

    def __init__(self, server: BrokerServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._transport: asyncio.Transport | None = None
        self.address = "unknown"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.address = address_of(transport)
        self._server.doors.add(self)
        problem = self._server.entrance.enter(self, self.address)
        if problem is not None:
            self._refused(str(problem))
            self._transport.abort()
            return
        self._transport.pause_reading()
        self._task = self._server.loop.create_task(self._open(self._transport))

    def data_received(self, data: bytes) -> None:  # noqa: ARG002 - asyncio's signature
        """Say goodbye to a peer without TLS; its bytes are read, or the goodbye would be lost."""
        if self._transport is not None and not self._transport.is_closing():
            wire = Connection.accepting()
            wire.goodbye(Problem.of(ProtocolError("this address speaks TLS: use tidegates://")))
            self._transport.writelines(wire.take_output())
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._left()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _open(self, transport: asyncio.Transport) -> None:
        handshake_s = self._server.settings.limits.handshake_s
        connection = ServedConnection(self._server)
        try:
            async with asyncio.timeout(handshake_s):
                is_tls = await self._speaks_tls(transport)
                if not is_tls:
                    self._refused("speaks no TLS")
                    transport.resume_reading()
                    return
                opened = await self._server.loop.start_tls(
                    transport, connection, self._context, server_side=True,
                    ssl_handshake_timeout=handshake_s,
                )  # fmt: skip
        except (OSError, TimeoutError) as error:
            self._refused(_reason(error))
            transport.abort()
        else:
            self._left()  # the connection is counted from now on
            if opened is not None:
                connection.connection_made(opened)
        finally:
            if transport.get_protocol() is not self:
                self._left()

    async def _speaks_tls(self, transport: asyncio.Transport) -> bool:
        """Whether the first byte of the peer is one of TLS; it is looked at, and not taken."""
        loop, came = self._server.loop, asyncio.Event()
        # A duplicate, because the event loop watches the socket of the transport itself.
        file = os.dup(transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=file) as peeked:
            loop.add_reader(file, came.set)
            try:
                await came.wait()
                with suppress(ConnectionError):
                    return peeked.recv(1, socket.MSG_PEEK) == _HANDSHAKE_RECORD
                return False
            finally:
                loop.remove_reader(file)

    def _left(self) -> None:
        self._server.doors.discard(self)
        self._server.entrance.leave(self)

    def _refused(self, reason: str) -> None:
        self._server.counters.refused_connections += 1
        _log.warning("%s was refused: %s", self.address, reason)


def address_of(transport: asyncio.BaseTransport) -> str:
    """Where a peer has connected from, as text."""
    peer = transport.get_extra_info("peername")
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else str(peer)


def _reason(error: OSError | TimeoutError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    return str(error) or "its TLS handshake did not come in time"
