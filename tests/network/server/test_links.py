"""Brokers that are linked route events to each other's clients, over connections that break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.errors import SpaceError
from tidegate.language.spaces import Space
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed, NotPublished


@asynccontextmanager
async def line(
    *names: str, data: Path | None = None, **fields: Any
) -> AsyncIterator[list[BrokerServer]]:
    """Brokers each of which connects to the one before it, when all links are set up."""
    async with AsyncExitStack() as stack:
        servers: list[BrokerServer] = []
        for name in names:
            peers = tuple(PeerAddress("127.0.0.1", each.port) for each in servers[-1:])
            folder = None if data is None else data / name
            settings = BrokerSettings(name, port=0, peers=peers, data=folder)
            settings = replace(settings, **fields)
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


SPACES = (
    Space("trades", {"symbol": str, "price": float}),
    Space("weather", {"station": str, "price": float}),
)
"""An attribute of the same name in both."""


@pytest.mark.parametrize(
    ("routing", "architecture"),
    [("link-matching", "general"), ("subscription", "acyclic"), ("summaries", "acyclic")],
)
def test_spaces_side_by_side_over_three_brokers(routing: str, architecture: str) -> None:
    async def main() -> None:
        async with line(
            "a", "b", "c", routing=routing, architecture=architecture, spaces=SPACES
        ) as servers:
            bob = await WireClient.connect(servers[0].port, "bob")
            listeners = {}
            for space in ("trades", "weather", None):
                ann = await WireClient.connect(servers[2].port, f"ann {space}")
                done = await ann.request(
                    wire.Subscribe, "price > :low", name="a", parameters={"low": 1}, version=1,
                    confirm=True, space=space,
                )  # fmt: skip
                await ann.next(wire.InForce)
                listeners[space] = (ann, done.handles[0])
            for price in (2.0, 3.0):
                for space in listeners:
                    bob.publish({"price": price, "station": "S"}, space=space)
                bob.publish({"price": price}, space="trades")
            # `station` is an attribute of the weather, and of the default space, which has all
            expected = {
                "trades": [],
                "weather": [{"station": "S"}] * 2,
                None: [{"station": "S"}] * 2,
            }
            refused = [await bob.next(NotPublished) for _ in range(2)]
            assert "space 'trades' has no attribute 'station'" in refused[0].problem.reason
            for space, (ann, _) in listeners.items():
                found = bodies(await ann.deliveries(2))
                extra = [{name: each[name] for name in each if name != "price"} for each in found]
                assert [each["price"] for each in found] == [2.0, 3.0]
                assert [each for each in extra if each] == expected[space]
                await ann.close()
            await bob.close()

    asyncio.run(main())


def test_requests_that_do_not_fit_a_space_are_refused_over_the_socket() -> None:
    async def main() -> None:
        async with line("a", "b", routing="link-matching", spaces=SPACES) as servers:
            ann = await WireClient.connect(servers[1].port, "ann")
            fields = {"version": 1, "name": "x"}
            for text, space, reason in (
                ("prize < 3", "trades", "did you mean 'price'?"),
                ("price = 'x'", "trades", "price is a float in space 'trades'"),
                ("price = 1", "tradez", "did you mean 'trades'?"),
                ("tidegate.space = 'trades'", None, "is set by brokers"),
            ):
                refused = await ann.request(wire.Subscribe, text, space=space, **fields)
                assert isinstance(refused, wire.Refused)
                assert reason in str(refused.problem)
            # attributes that are added while it runs, in part already known
            with pytest.raises(SpaceError, match="'price'"):
                servers[1].extend_spaces([Space("trades", {"volume": int, "price": str})])
            refused = await ann.request(wire.Subscribe, "volume > 3", space="trades", **fields)
            assert isinstance(refused, wire.Refused)
            for server in servers:
                server.extend_spaces([Space("trades", {"volume": int}), Space("news", {"id": int})])
            await ann.request(
                wire.Subscribe, "volume > 3", name="v", version=1, confirm=True, space="trades"
            )
            await ann.next(wire.InForce)
            bob = await WireClient.connect(servers[0].port, "bob")
            bob.publish({"volume": 4, "price": 1.0}, space="trades")
            assert bodies(await ann.deliveries(1)) == [{"volume": 4, "price": 1.0}]
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_brokers_with_and_without_spaces_do_not_link_and_say_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, spaces=SPACES)) as a:
            peer = PeerAddress("127.0.0.1", a.port)
            async with running(BrokerSettings("b", port=0, peers=(peer,))) as b:
                while "a has refused a message of this broker" not in caplog.text:
                    await asyncio.sleep(0.01)
                assert "a message of b was refused: 'a' has spaces and 'b' has none" in caplog.text
                for server in (a, b):
                    assert not server.broker.domains.domain_of

    asyncio.run(main())


def test_a_store_keeps_the_spaces_of_its_durable_clients(tmp_path: Path) -> None:
    settings = BrokerSettings("a", port=0, data=tmp_path / "a", spaces=SPACES)

    async def main() -> None:
        async with running(settings) as server:
            server.extend_spaces([Space("trades", {"volume": int})])
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(
                wire.Subscribe, "volume > 3", name="v", version=1, confirm=True, space="trades"
            )
            await ann.next(wire.InForce)
            await ann.close()
        # started without the files, and with one that names a part of the attributes
        for spaces in ((), (Space("trades", {"symbol": str}),)):
            async with running(replace(settings, spaces=spaces)) as server:
                bob = await WireClient.connect(server.port, "bob")
                bob.publish({"volume": 4}, space="trades", confirm=True)
                await bob.next(Confirmed)
                ann = await WireClient.connect(server.port, "ann", is_durable=True)
                assert bodies(await ann.deliveries(1))[-1] == {"volume": 4}
                await ann.close()
                await bob.close()
        with pytest.raises(SpaceError, match="volume"):
            await BrokerServer(
                replace(settings, spaces=(Space("trades", {"volume": str}),))
            ).start()

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
