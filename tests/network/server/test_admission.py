"""Who connects, with which session, and what becomes of the one before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.handshake import Goodbye, Welcome
from tidegate.routing.messages import Client

LOOPBACK = BrokerSettings("a", port=0)


async def until_lost(server: object, identity: str) -> None:
    while server.sessions[Client(identity)].connection is not None:  # type: ignore[attr-defined]
        await asyncio.sleep(0)


def test_session_is_resumed_within_the_grace() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann", session=7)
            await ann.request(wire.Subscribe, "x > 0")
            await ann.request(wire.Subscribe, "malformed <")
            ann.abort()
            await until_lost(server, "ann")
            bob = await WireClient.connect(server.port, "bob")
            bob.publish({"x": 1})
            await bob.request(wire.Depart)  # answered after the event was handled
            ann = await WireClient.connect(server.port, "ann", session=7, wait=False, answered=1)
            welcome = await ann.next(Welcome)
            assert (welcome.is_resumed, welcome.handled) == (True, 2)
            assert (await ann.next(wire.Refused)).number == 2  # it may have been lost
            assert bodies(await ann.deliveries(1)) == [{"x": 1}]
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_session_ends_after_the_grace() -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, limits=ClientLimits(grace_s=0.0))
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann", session=7)
            await ann.request(wire.Subscribe, "x > 0", name="positive")
            await ann.close()
            while Client("ann") in server.sessions:
                await asyncio.sleep(0.01)
            assert server.broker.named.subscriptions_of(Client("ann")) == []
            ann = await WireClient.connect(server.port, "ann", session=7, wait=False)
            assert not (await ann.next(Welcome)).is_resumed
            await ann.close()

    asyncio.run(main())


def test_another_process_takes_an_identity_over() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            old = await WireClient.connect(server.port, "ann", session=1)
            await old.request(wire.Subscribe, "x > 0", name="positive")
            new = await WireClient.connect(server.port, "ann", session=2, wait=False)
            assert not (await new.next(Welcome)).is_resumed
            goodbye = await old.next(Goodbye)
            assert (goodbye.problem.code, goodbye.retry_ms) == ("access", None)
            await old.closed()
            assert server.broker.named.subscriptions_of(Client("ann")) == []
            assert isinstance(
                await new.request(wire.Subscribe, "x > 1", name="positive"), wire.Done
            )
            await new.close()

    asyncio.run(main())


def test_durable_identity_is_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(wire.Subscribe, "x > 0", name="positive")
            other = await WireClient.connect(server.port, "ann", session=2, wait=False)
            assert "durable client" in (await other.next(Goodbye)).problem.reason
            await other.closed()
            await ann.request(wire.Depart)
            await ann.close()
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            assert not server.sessions
            ann = await WireClient.connect(server.port, "ann", session=2)
            await ann.close()

    asyncio.run(main())
