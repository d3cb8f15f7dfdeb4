"""Connections: garbage, silence, and peers that are gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from support.wire_client import WireClient, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.handshake import Goodbye, Hello

LOOPBACK = BrokerSettings("a", port=0)


async def answer_to(port: int, data: bytes) -> list[object]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return list(Connection.connecting(Hello("x", 1)).receive(received))


def test_garbage_is_answered_with_goodbye() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            for garbage in (
                b"GET / HTTP/1.1\r\n\r\n",
                b"\0\0\0\x01\x16",
                b"\0\0\0\x02\x01\xc1",
            ):
                (goodbye,) = await answer_to(server.port, garbage)
                assert isinstance(goodbye, Goodbye)
                assert goodbye.problem.code == "protocol"
            ann = await WireClient.connect(server.port, "ann")  # others are served
            ann.write(b"\0\0\0\x03\x12\xc1\xc1")
            assert (await ann.next(Goodbye)).problem.code == "protocol"
            await ann.closed()

    asyncio.run(main())


def test_connection_without_handshake_is_closed() -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, limits=ClientLimits(handshake_s=0.0))
        async with running(settings) as server:
            (goodbye,) = await answer_to(server.port, b"\0\0")
            assert isinstance(goodbye, Goodbye)
            assert "no handshake" in goodbye.problem.reason

    asyncio.run(main())


def test_silent_peer_is_taken_for_gone() -> None:
    async def main() -> None:
        async with running(replace(LOOPBACK, limits=ClientLimits(heartbeat_ms=100))) as server:
            ann = await WireClient.connect(server.port, "ann", heartbeat_ms=100)
            await ann.closed()  # it sends no heartbeats
            bob = await WireClient.connect(server.port, "bob", heartbeat_ms=600_000)
            assert isinstance(await bob.request(wire.Suspend), wire.Refused)
            await bob.close()

    asyncio.run(main())


def test_too_many_connections_are_refused() -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, limits=ClientLimits(connections_max=1))
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann")
            (goodbye,) = await answer_to(server.port, b"")
            assert isinstance(goodbye, Goodbye)
            assert goodbye.problem.code == "limit"
            await ann.close()

    asyncio.run(main())
