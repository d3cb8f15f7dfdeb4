"""A listener for WebSockets: the binary messages of each, put together, are the stream of frames.

Theory of operation. The protocol of a WebSocket is that of `websockets` without its I/O. A
connection of the broker (`ServedConnection`) sees a transport as any other: what it writes becomes
one binary message, and its pauses are those of the socket. So a browser has the same limits,
time-outs and slow policies as everybody else.

A page of any origin can make a browser connect. Only those of the origins in the settings are
admitted, before anything else is read.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from tidegate.errors import NetworkError
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.websocket.settings import WebSocketSettings

_log = logging.getLogger(__name__)

FIRST_BYTES_MAX, MESSAGE_BYTES_MAX = 1 << 17, 1 << 25
"""The largest message before and after the handshake of Tidegate. Frames have a limit of their own,
but a message is put together before they are looked at."""
SUBPROTOCOL = "tidegate"
CLOSING_S = 2.0
"""How long the other side may take to close a WebSocket."""


class WebSocketListener:
    """Listens for WebSockets of one broker."""

    def __init__(self, server: BrokerServer, settings: WebSocketSettings) -> None:
        self._server = server
        self._settings = settings

    async def start(self) -> None:
        """Listen; raises NetworkError if that is impossible."""
        settings = self._settings
        try:
            self._listener = await self._server.loop.create_server(
                lambda: _Socket(self._server, settings),
                settings.host,
                settings.port,
                ssl=settings.tls,
                backlog=1024,
            )
        except OSError as error:
            raise NetworkError(
                f"cannot listen for WebSockets at {settings.host}:{settings.port}: "
                f"{error.strerror or error}"
            ) from None
        scheme = "ws" if settings.tls is None else "wss"
        _log.info("WebSockets at %s://%s:%d", scheme, settings.host, self.port)

    @property
    def port(self) -> int:
        """The port at which it listens."""
        return int(self._listener.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Take no more connections; those that are there belong to the broker."""
        self._listener.close()


class _Socket(asyncio.Protocol):
    """One WebSocket, between a TCP transport and a connection of the broker."""

    def __init__(self, server: BrokerServer, settings: WebSocketSettings) -> None:
        self._settings = settings
        self._protocol = ServerProtocol(
            subprotocols=[SUBPROTOCOL],  # type: ignore[list-item] # a NewType of str
            select_subprotocol=_subprotocol,
            max_size=FIRST_BYTES_MAX,
            logger=_log,
        )
        self._served = ServedConnection(server)
        self._tcp: asyncio.Transport

    # -- from the socket ----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._tcp = cast(asyncio.Transport, transport)
        # The broker sees it now, so that its time-out before the handshake includes that of HTTP.
        self._served.connection_made(_Transport(self, self._tcp))

    def data_received(self, data: bytes) -> None:
        if self._served.wire.is_open:
            self._protocol.max_message_size = MESSAGE_BYTES_MAX
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer(event)
            elif isinstance(event, Frame):
                self._frame_came(event)
        self.flush()

    def eof_received(self) -> None:
        self._protocol.receive_eof()
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._served.connection_lost(exc)

    def pause_writing(self) -> None:
        self._served.pause_writing()

    def resume_writing(self) -> None:
        self._served.resume_writing()

    def _answer(self, request: Request) -> None:
        origin = request.headers.get("Origin")
        if not self._settings.admits(origin):
            _log.warning(
                "a page of %r may not connect from %s", origin, self._served.address,
                extra={"event": "origin_refused", "address": self._served.address},
            )  # fmt: skip
            response = self._protocol.reject(403, f"the origin {origin!r:.200} may not connect\n")
        else:
            response = self._protocol.accept(request)
        self._protocol.send_response(response)

    def _frame_came(self, frame: Frame) -> None:
        match frame.opcode:
            case Opcode.BINARY | Opcode.CONT:
                self._served.data_received(bytes(frame.data))
            case Opcode.TEXT:
                self._protocol.fail(1003, "Tidegate speaks binary messages")

    # -- from the broker ----------------------------------------------------------------------

    def send(self, data: bytes) -> None:
        """Send bytes of the stream as one message."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_binary(data)
            self.flush()

    def close(self) -> None:
        """Close the WebSocket, and the connection below when the other side agrees."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(1000)
            self.flush()
            asyncio.get_running_loop().call_later(CLOSING_S, self._tcp.abort)
        else:
            self._tcp.close()

    def flush(self) -> None:
        """Write what the protocol has to say."""
        for data in self._protocol.data_to_send():
            if data:
                self._tcp.write(data)
            else:
                self._tcp.close()  # the end of the protocol's output
        if self._protocol.close_expected():
            asyncio.get_running_loop().call_later(CLOSING_S, self._tcp.abort)


class _Transport(asyncio.Transport):
    """A WebSocket as the transport of a connection of the broker."""

    def __init__(self, socket: _Socket, tcp: asyncio.Transport) -> None:
        super().__init__()
        self._socket = socket
        self._tcp = tcp

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tcp.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._tcp.set_write_buffer_limits(high, low)

    def writelines(self, list_of_data: Any) -> None:
        self._socket.send(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        self._tcp.resume_reading()

    def close(self) -> None:
        self._socket.close()

    def abort(self) -> None:
        self._tcp.abort()


def _subprotocol(_protocol: ServerProtocol, offered: Any) -> Any:
    """A page may name the protocol; programs mostly name none."""
    return SUBPROTOCOL if SUBPROTOCOL in offered else None
