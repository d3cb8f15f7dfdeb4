from __future__ import annotations

import asyncio
import ssl
from typing import Any

import pytest
from websockets.asyncio.server import serve

from tidegate.errors import ConnectionLostError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.transport import open_transport


class Heard:
    """A receiver that keeps what comes."""

    def __init__(self) -> None:
        self.data = b""
        self.is_lost = asyncio.Event()

    def data_came(self, data: bytes) -> None:
        self.data += data

    def transport_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - of the protocol
        self.is_lost.set()

    def can_write_again(self) -> None:
        """Of the protocol."""


def test_bytes_over_tcp() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        heard = Heard()
        address = BrokerAddress("tidegate", "127.0.0.1", server.sockets[0].getsockname()[1])
        transport = await open_transport(address, None, heard)
        assert transport.can_write
        transport.write([b"ab", memoryview(b"cd")])
        await heard.is_lost.wait()
        assert heard.data == b"abcd"
        server.close()

    asyncio.run(main())


def test_bytes_over_websocket() -> None:
    async def echo(socket: Any) -> None:
        async for message in socket:
            await socket.send(message[::-1])

    async def main() -> None:
        async with serve(echo, "127.0.0.1", 0) as server:
            heard = Heard()
            port = next(iter(server.sockets)).getsockname()[1]
            transport = await open_transport(BrokerAddress("ws", "127.0.0.1", port), None, heard)
            transport.write([b"ab", b"cd"])
            while not heard.data:
                await asyncio.sleep(0.005)
            assert heard.data == b"dcba"
            transport.close()
            await heard.is_lost.wait()

    asyncio.run(main())


def test_a_websocket_that_sends_text_is_given_up() -> None:
    async def talk(socket: Any) -> None:
        await socket.send("hello")
        await socket.wait_closed()

    async def main() -> None:
        async with serve(talk, "127.0.0.1", 0) as server:
            heard = Heard()
            port = next(iter(server.sockets)).getsockname()[1]
            transport = await open_transport(BrokerAddress("ws", "127.0.0.1", port), None, heard)
            await heard.is_lost.wait()
            assert heard.data == b""
            transport.abort()

    asyncio.run(main())


def test_failures_to_connect_are_typed() -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLostError, match="Connection refused"):
            await open_transport(BrokerAddress("tidegate", "127.0.0.1", 9), None, Heard())
        with pytest.raises(ConnectionLostError, match="cannot be reached"):
            await open_transport(BrokerAddress("ws", "127.0.0.1", 9), None, Heard())

        async def no_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.close()

        server = await asyncio.start_server(no_tls, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        tls = ssl.create_default_context()
        with pytest.raises(ConnectionLostError):
            await open_transport(BrokerAddress("tidegates", "127.0.0.1", port), tls, Heard())
        server.close()

    asyncio.run(main())
