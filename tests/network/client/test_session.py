"""The session of a client: heartbeats, silence, several brokers."""

from __future__ import annotations

import asyncio

import pytest

from support.wire_client import running
from tidegate.errors import AccessError, ConnectionLostError
from tidegate.network.client.connect import connect
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.problems import Problem

A = BrokerSettings("a", port=0)


class SilentBroker(asyncio.Protocol):
    """Welcomes a client and never says anything again; or says goodbye."""

    def __init__(self, goodbye: Problem | None = None, retry_ms: int | None = None) -> None:
        self.wire = Connection.accepting()
        self.goodbye, self.retry_ms = goodbye, retry_ms

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self.wire.receive(data):
            if isinstance(message, Hello):
                if self.goodbye is None:
                    self.wire.welcome(Welcome("silent", 1, heartbeat_ms=100))
                else:
                    self.wire.goodbye(self.goodbye, self.retry_ms)
                self.transport.writelines(self.wire.take_output())  # type: ignore[attr-defined]


async def listen(
    goodbye: Problem | None = None, retry_ms: int | None = None
) -> tuple[asyncio.Server, str]:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SilentBroker(goodbye, retry_ms), "127.0.0.1", 0)
    return server, f"tidegate://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_silent_broker_is_left_for_another_one() -> None:
    async def main() -> None:
        silent, url = await listen()
        async with running(A) as server:
            other = f"tidegate://127.0.0.1:{server.port}"
            async with connect([url, other], heartbeat=0.1, timeout=30) as client:
                silent.close()
                while client.broker != "a":
                    await asyncio.sleep(0.01)
                await client.publish({"x": 1})

    asyncio.run(main())


def test_a_client_that_must_not_reconnect_ends() -> None:
    async def main() -> None:
        silent, url = await listen()
        async with connect(url, heartbeat=0.1, reconnect=False) as client:
            while client.is_connected:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            with pytest.raises(ConnectionLostError, match=r"nothing came for 0\.3 s"):
                await client.publish({"x": 1})
        silent.close()

    asyncio.run(main())


def test_a_refusal_is_raised_at_once() -> None:
    async def main() -> None:
        server, url = await listen(goodbye=Problem("access", "no such token"))
        with pytest.raises(AccessError, match="no such token"):
            async with connect(url, timeout=30):
                pass
        server.close()

    asyncio.run(main())


def test_a_broker_may_ask_to_come_back_later() -> None:
    async def main() -> None:
        draining, url = await listen(goodbye=Problem("network", "draining"), retry_ms=50)
        async with running(A) as server:
            urls = [url, f"tidegate://127.0.0.1:{server.port}"]
            async with connect(urls, timeout=30) as client:
                assert client.broker == "a"
        draining.close()

    asyncio.run(main())


def test_who_closes_can_be_cancelled() -> None:
    """Ctrl-C at this moment was swallowed, and the program went on."""

    async def main() -> None:
        async with running(A) as server:
            client = await connect(f"tidegate://127.0.0.1:{server.port}", identity="ann")
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0)  # it waits for the task of the session now
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await client.close()

    asyncio.run(main())
