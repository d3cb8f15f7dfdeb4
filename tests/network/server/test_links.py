"""Brokers that are linked route events to each other's clients, over connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed


@asynccontextmanager
async def line(
    *names: str, data: Path | None = None, **fields: str
) -> AsyncIterator[list[BrokerServer]]:
    """Brokers each of which connects to the one before it, when all links are set up."""
    async with AsyncExitStack() as stack:
        servers: list[BrokerServer] = []
        for name in names:
            peers = tuple(PeerAddress("127.0.0.1", each.port) for each in servers[-1:])
            folder = None if data is None else data / name
            settings = BrokerSettings(name, port=0, peers=peers, data=folder)
            settings = replace(settings, **fields)  # type: ignore[arg-type]
            servers.append(await stack.enter_async_context(running(settings)))
        await linked(servers)
        yield servers


async def linked(servers: list[BrokerServer]) -> None:
    """Wait until all brokers know of all links."""
    for server in servers:
        domain = server.broker.domains.by_name["main"]
        while len(domain.announcements()) < len(servers):
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("routing", "architecture"),
    [
        ("subscription", "acyclic"),
        ("subscription", "general"),
        ("subscription", "hierarchical"),
        ("advertisement", "acyclic"),
        ("link-matching", "general"),
        ("match-first", "acyclic"),
        ("flooding", "acyclic"),
        ("summaries", "acyclic"),
    ],
)
def test_events_cross_three_brokers(routing: str, architecture: str) -> None:
    async def main() -> None:
        async with line("a", "b", "c", routing=routing, architecture=architecture) as servers:
            ann = await WireClient.connect(servers[2].port, "ann")
            bob = await WireClient.connect(servers[0].port, "bob")
            await bob.request(wire.Advertise, "x >= 0")
            done = await ann.request(
                wire.Subscribe, "x > :low", name="a", parameters={"low": 2}, version=1, confirm=True
            )
            assert await ann.next(wire.InForce) == wire.InForce(done.handles[0], 1)
            bob.publish(*({"x": x} for x in range(6)))
            assert bodies(await ann.deliveries(3)) == [{"x": 3}, {"x": 4}, {"x": 5}]
            await ann.request(wire.Update, done.handles[0], 2, {"low": 4}, confirm=True)
            assert await ann.next(wire.InForce) == wire.InForce(done.handles[0], 2)
            bob.publish(*({"x": x} for x in range(6)))
            found = await ann.deliveries(1)
            assert [(a, m) for a, m, _ in found] == [({"x": 5}, [(done.handles[0], 2)])]
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_broken_connections_lose_nothing_that_is_confirmed(tmp_path: Path) -> None:
    async def main() -> None:
        async with line("a", "b", "c", data=tmp_path) as servers:
            ann = await WireClient.connect(servers[2].port, "ann", is_durable=True)
            bob = await WireClient.connect(servers[0].port, "bob")
            await ann.request(wire.Subscribe, "x >= 0", name="a", version=1, confirm=True)
            await ann.next(wire.InForce)
            for x in range(40):
                bob.publish({"x": x}, confirm=True)
                if x % 7 == 3:
                    for server in servers[:2]:
                        for link in server.links.by_peer.values():
                            if link.connection is not None:
                                link.connection.abort()
            while (await bob.next(Confirmed)).number < 40:
                pass
            assert [each["x"] for each in bodies(await ann.deliveries(40))] == list(range(40))
            store = servers[0].store
            assert store is not None
            while store.length(store.queue("link", "b")):  # until all is acknowledged
                await asyncio.sleep(0.01)
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_client_moves_to_another_broker() -> None:
    async def main() -> None:
        async with line("a", "b") as servers:
            ann = await WireClient.connect(servers[0].port, "ann")
            bob = await WireClient.connect(servers[1].port, "bob")
            await ann.request(wire.Subscribe, "x > 0", name="n", version=4, confirm=True)
            await ann.next(wire.InForce)
            await ann.request(wire.Suspend)
            bob.publish({"x": 1}, {"x": 2})
            await bob.request(wire.Depart)
            there = await WireClient.connect(servers[1].port, "ann")
            await there.request(wire.Resume, "a", 1)
            there.publish({"x": 3})
            assert [each["x"] for each in bodies(await there.deliveries(3))] == [1, 2, 3]
            for each in (ann, bob, there):
                await each.close()

    asyncio.run(main())


def test_broker_that_starts_anew_is_linked_anew() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as a:
            ann = await WireClient.connect(a.port, "ann")
            await ann.request(wire.Subscribe, "x > 0")
            peers = (PeerAddress("127.0.0.1", a.port),)
            for x in (1, 2):
                async with running(BrokerSettings("b", port=0, peers=peers)) as b:
                    while "a" not in b.broker.domains.domain_of:
                        await asyncio.sleep(0.01)
                    bob = await WireClient.connect(b.port, "bob")
                    while not b.broker.subscriptions.nodes_of_peer("a"):
                        await asyncio.sleep(0.01)
                    bob.publish({"x": x})
                    assert bodies(await ann.deliveries(1)) == [{"x": x}]
                    await bob.close()
            await ann.close()

    asyncio.run(main())
