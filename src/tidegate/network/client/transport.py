"""Transports: the bytes of a connection over TCP, TLS or WebSocket."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol, cast

from tidegate.errors import ConnectionLostError, NetworkError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.wire.columns import Part

_WRITE_BUFFER_BYTES = 1 << 20


class Receiver(Protocol):
    """What a transport calls; all of it in the event loop."""

    def data_came(self, data: bytes) -> None:
        """Take bytes of the peer."""
        ...

    def transport_lost(self, error: Exception | None) -> None:
        """Note that nothing more will come."""
        ...

    def can_write_again(self) -> None:
        """Note that the transport takes more."""
        ...


class Transport(Protocol):
    """Writes bytes, and gives those of the peer to a receiver."""

    @property
    def can_write(self) -> bool:
        """Whether it takes more without growing its buffer."""
        ...

    def write(self, parts: Sequence[Part]) -> None:
        """Write bytes."""
        ...

    def close(self) -> None:
        """Write what is left, and close."""
        ...

    def abort(self) -> None:
        """Close at once."""
        ...


async def open_transport(
    address: BrokerAddress, tls: ssl.SSLContext | None, receiver: Receiver
) -> Transport:
    """Connect to a broker; raises ConnectionLostError."""
    try:
        if address.is_websocket:
            return await _open_websocket(address, tls, receiver)
        _, stream = await asyncio.get_running_loop().create_connection(
            lambda: _Stream(receiver), address.host, address.port, ssl=address.tls(tls)
        )
    except ssl.SSLCertVerificationError as error:
        # Trying again would be of no use, so this is no ConnectionLostError.
        raise NetworkError(
            f"the certificate of {address} is not trusted: {error.verify_message}"
        ) from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            raise NetworkError(
                f"{address} speaks no TLS; if it need not, use {address.without_tls}"
            ) from None
        raise ConnectionLostError(f"{address} cannot be reached: {error.reason}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise ConnectionLostError(f"{address} cannot be reached: {reason}") from None
    return stream


class _Stream(asyncio.Protocol):
    """A TCP connection, with TLS or without."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._transport: asyncio.Transport | None = None
        self.can_write = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        self._receiver.data_came(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._receiver.transport_lost(exc)

    def pause_writing(self) -> None:
        self.can_write = False

    def resume_writing(self) -> None:
        self.can_write = True
        self._receiver.can_write_again()

    def write(self, parts: Sequence[Part]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.writelines(parts)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


async def _open_websocket(
    address: BrokerAddress, tls: ssl.SSLContext | None, receiver: Receiver
) -> Transport:
    from websockets.asyncio.client import connect
    from websockets.exceptions import WebSocketException

    try:
        socket = await connect(
            str(address), ssl=address.tls(tls), compression=None, max_size=None, proxy=None
        )
    except WebSocketException as error:
        raise ConnectionLostError(f"{address} does not speak WebSocket: {error}") from None
    return _WebSocket(socket, receiver)


class _WebSocket:
    """A WebSocket whose binary messages, put together, are the bytes of the connection."""

    def __init__(self, socket: Any, receiver: Receiver) -> None:
        self._socket = socket
        self._receiver = receiver
        self._to_write: list[bytes] = []
        self._is_closing = False
        self._wake = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._read()), asyncio.ensure_future(self._write())]
        self.can_write = True

    def write(self, parts: Sequence[Part]) -> None:
        self._to_write.append(b"".join(parts))
        self.can_write = sum(map(len, self._to_write)) < _WRITE_BUFFER_BYTES
        self._wake.set()

    def close(self) -> None:
        self._is_closing = True
        self._wake.set()

    def abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._socket.transport.abort()

    async def _read(self) -> None:
        from websockets.exceptions import ConnectionClosed

        error: Exception | None = None
        try:
            while True:
                message = await self._socket.recv()
                if not isinstance(message, bytes):
                    raise NetworkError("the broker has sent a text, not bytes")
                self._receiver.data_came(message)
        except (ConnectionClosed, NetworkError) as caught:
            error = caught
        finally:
            self._tasks[1].cancel()
            self._receiver.transport_lost(error)

    async def _write(self) -> None:
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            while True:
                await self._wake.wait()
                self._wake.clear()
                waiting, self._to_write = self._to_write, []
                for data in waiting:
                    await self._socket.send(data)
                if self._is_closing and not self._to_write:
                    await self._socket.close()
                    return
                if not self.can_write and not self._to_write:
                    self.can_write = True
                    self._receiver.can_write_again()
