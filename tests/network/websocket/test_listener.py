"""Real WebSocket clients at the listener of a broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

import tidegate
from support.wire_client import running
from tidegate.errors import NetworkError
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.websocket.listener import FIRST_BYTES_MAX, WebSocketListener
from tidegate.network.websocket.settings import WebSocketSettings
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.handshake import Hello, Welcome


@asynccontextmanager
async def listening(
    limits: ClientLimits | None = None, **fields: Any
) -> AsyncIterator[tuple[BrokerServer, str]]:
    settings = BrokerSettings("a", port=0, limits=limits or ClientLimits())
    async with running(settings) as server:
        listener = WebSocketListener(server, WebSocketSettings(port=0, **fields))
        await listener.start()
        try:
            yield server, f"ws://127.0.0.1:{listener.port}"
        finally:
            listener.close()


def test_clients_of_both_transports_meet() -> None:
    async def main() -> None:
        async with (
            listening() as (server, url),
            tidegate.connect(url, credit_events=100) as ann,
            tidegate.connect(f"tidegate://127.0.0.1:{server.port}") as bob,
        ):
            sub = await ann.subscribe("x >= :low", name="n", low=0)
            await bob.publish_many([{"x": x, "text": "y" * 1_000} for x in range(5_000)])
            for x in range(5_000):
                event = await sub.next(60)
                assert event is not None
                assert event["x"] == x
            await sub.update(low=7)
            back = await bob.subscribe("z > 0")
            await ann.publish({"z": 1})
            assert (await back.next(60))["z"] == 1  # type: ignore[index]

    asyncio.run(main())


def test_frames_may_be_cut_anywhere() -> None:
    async def main() -> None:
        async with listening() as (_, url), connect(url) as socket:
            wire = Connection.connecting(Hello("ann", 1))
            for byte in b"".join(wire.take_output()):
                await socket.send(bytes([byte]))
            message = await socket.recv()
            assert isinstance(message, bytes)
            assert isinstance(wire.receive(message)[0], Welcome)

    asyncio.run(main())


def test_pages_of_other_origins_are_refused() -> None:
    async def main() -> None:
        async with listening(origins=("https://a.example",)) as (_, url):
            async with connect(url, origin="https://a.example"):  # type: ignore[arg-type]
                pass
            with pytest.raises(InvalidStatus) as caught:
                await connect(url, origin="https://b.example")  # type: ignore[arg-type]
            assert caught.value.response.status_code == 403

    asyncio.run(main())


@pytest.mark.parametrize(
    ("message", "code"), [("text", 1003), (b"\0" * (FIRST_BYTES_MAX + 1), 1009)]
)
def test_texts_and_long_messages_end_the_connection(message: str | bytes, code: int) -> None:
    async def main() -> None:
        async with listening() as (server, url), connect(url) as socket:
            await socket.send(message)
            with pytest.raises(ConnectionClosed) as caught:
                await socket.recv()
            assert caught.value.rcvd is not None
            assert caught.value.rcvd.code == code
            while server.connections:
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_garbage_gets_a_goodbye() -> None:
    async def main() -> None:
        async with listening() as (_, url), connect(url) as socket:
            await socket.send(b"\xff" * 20)
            goodbye = await socket.recv()
            assert isinstance(goodbye, bytes)
            assert goodbye[4] == 3
            with pytest.raises(ConnectionClosed):
                await socket.recv()

    asyncio.run(main())


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\0garbage\r\n\r\n"])
def test_who_speaks_no_websocket_is_closed(data: bytes) -> None:
    async def main() -> None:
        async with listening(ClientLimits(handshake_s=0.1)) as (server, url):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[-1]))
            writer.write(data)
            await asyncio.wait_for(reader.read(), 60)
            writer.close()
            while server.connections:
                await asyncio.sleep(0.01)

    asyncio.run(main())


def test_address_in_use() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            with pytest.raises(NetworkError, match="cannot listen for WebSockets"):
                await WebSocketListener(server, WebSocketSettings(port=server.port)).start()

    asyncio.run(main())
