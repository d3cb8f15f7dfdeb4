"""Connections between brokers, and between brokers and clients, that fail: nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random, SystemRandom

import pytest

from support import history as h
from support.history_checker import Finding, findings
from support.history_clients import END, publish, subscribe
from support.linked_brokers import until_linked
from support.tcp_proxy import TO_CLIENT, TO_SERVER, TcpProxy, proxy
from support.wire_client import WireClient, bodies, running
from tidegate.network.client.connect import connect
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, ClientLimits, PeerAddress
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed, NotPublished

EVENTS = 120
FAULTS = 12
LINE, RING = {"a": "", "b": "a", "c": "b"}, {"a": "", "b": "a", "c": "ab"}
LIMITS = ClientLimits(heartbeat_ms=300)
"""So that silence is noticed soon."""


class Network:
    """Brokers in this process, with a proxy on each link and for each client."""

    def __init__(self) -> None:
        self.servers: dict[str, BrokerServer] = {}
        self.proxies: list[TcpProxy] = []

    def inject(self, chance: Random) -> None:
        """Let one connection fail, or mend it."""
        victim = chance.choice(self.proxies)
        chance.choice(
            (
                victim.cut,
                victim.reset,
                victim.hold,
                lambda: victim.hold(TO_CLIENT),
                lambda: victim.halve(chance.choice((TO_SERVER, TO_CLIENT))),
                lambda: setattr(victim, "delay_s", chance.random() / 20),
                victim.mend,
            )
        )()

    def mend(self) -> None:
        for each in self.proxies:
            each.mend()


@asynccontextmanager
async def network(data: Path, links: dict[str, str], architecture: str) -> AsyncIterator[Network]:
    async with AsyncExitStack() as stack:
        made = Network()
        for name, peers in links.items():
            addresses = []
            for peer in peers:
                between = await stack.enter_async_context(proxy(made.servers[peer].port))
                made.proxies.append(between)
                addresses.append(PeerAddress("127.0.0.1", between.port))
            settings = BrokerSettings(
                name, port=0, data=data / name, peers=tuple(addresses), architecture=architecture,
                limits=LIMITS,
            )  # fmt: skip
            made.servers[name] = await stack.enter_async_context(running(settings))
        for name, peers in links.items():
            for peer in peers:
                ports = made.servers[name].port, made.servers[peer].port
                await until_linked(*ports)
                await until_linked(*reversed(ports))
        yield made


async def history_of(data: Path, links: dict[str, str], architecture: str, seed: int) -> Network:
    """Publish, update and receive while connections fail; the logs are in ``data``."""
    async with network(data, links, architecture) as made, AsyncExitStack() as stack:
        chance = Random(f"{seed} faults")
        urls = []
        for server in (made.servers["a"], made.servers["c"], made.servers["c"], made.servers["a"]):
            between = await stack.enter_async_context(proxy(server.port))
            made.proxies.append(between)
            urls.append(f"tidegate://127.0.0.1:{between.port}")
        subscribing = [
            asyncio.create_task(
                subscribe(urls[2 + at], f"sub{at}", str(data / f"sub{at}.history"), seed, names, 2)
            )
            for at, names in enumerate((["all", "evolving"], ["low", "near"]))
        ]
        logs = [data / f"sub{at}.history" for at in range(2)]
        while not all(log.exists() and has_subscribed(log) for log in logs):
            await asyncio.sleep(0.01)
        publishing = [
            asyncio.create_task(
                publish(
                    urls[at], f"pub{at}", str(data / f"pub{at}.history"), seed, EVENTS, 5, 0.005
                )
            )
            for at in range(2)
        ]
        for _ in range(FAULTS):
            made.inject(chance)
            await asyncio.sleep(chance.random() / 10)
        made.mend()
        async with asyncio.timeout(120):
            await asyncio.gather(*publishing, *subscribing)
    return made


def has_subscribed(log: Path) -> bool:
    return any(isinstance(each, h.InForce) and each.name == END for each in h.read(log))


def judged(data: Path) -> list[Finding]:
    return findings(h.merged(h.read(each) for each in sorted(data.glob("*.history"))))


@pytest.mark.slow
@pytest.mark.parametrize(("links", "architecture"), [(LINE, "acyclic"), (RING, "general")])
def test_connections_that_fail(tmp_path: Path, links: dict[str, str], architecture: str) -> None:
    asyncio.run(history_of(tmp_path, links, architecture, seed=1))
    assert judged(tmp_path) == []


@pytest.mark.soak
def test_connections_that_fail_for_long(tmp_path: Path) -> None:
    for run in range(200):
        seed, folder = SystemRandom().getrandbits(32), tmp_path / str(run)
        folder.mkdir()
        links, architecture = ((LINE, "acyclic"), (RING, "general"))[run % 2]
        asyncio.run(history_of(folder, links, architecture, seed))
        assert judged(folder) == [], f"seed {seed}, {architecture}"


def test_the_word_that_a_version_is_in_force_is_lost_before_the_answer() -> None:
    """The client has not begun to wait for it, as it still waits for the answer to its request."""

    async def main() -> None:
        async with (
            running(BrokerSettings("a", port=0, limits=LIMITS)) as server,
            proxy(server.port) as between,
            connect(f"tidegate://127.0.0.1:{between.port}", identity="ann") as client,
        ):
            first = await client.subscribe("x < :limit", name="low", limit=1)
            between.hold(TO_CLIENT)
            asked = [
                asyncio.create_task(first.update(limit=2)),
                asyncio.create_task(client.subscribe("x > 1", name="high")),
            ]
            session = next(iter(server.sessions.values()))
            while session.handled < 3:
                await asyncio.sleep(0.01)
            await server.turns.idle()
            between.reset()
            between.release()
            async with asyncio.timeout(60):
                await asyncio.gather(*asked)

    asyncio.run(main())


def test_a_neighbour_that_is_away_for_too_long_does_not_end_the_broker(tmp_path: Path) -> None:
    """What waits for it is bounded: first publishers are refused, then the link begins anew."""

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path / "a")) as here:
            peers = (PeerAddress("127.0.0.1", here.port),)
            settings = BrokerSettings("b", port=0, peers=peers, data=tmp_path / "b")
            async with running(settings) as there:
                await until_linked(here.port, there.port)
                ann = await WireClient.connect(there.port, "ann", is_durable=True)
                await ann.request(wire.Subscribe, "x > 0", name="n", version=1, confirm=True)
                await ann.next(wire.InForce)
                await ann.close()
            link = here.links.by_peer["b"]
            while link.connection is not None:
                await asyncio.sleep(0.01)
            epoch = link.session.epoch
            link.session._kept_max = len(link.session) + 20
            bob = await WireClient.connect(here.port, "bob", epoch=1)
            for number in range(1, 31):
                bob.publish({"x": number}, confirm=True)
                while (await bob.next(Confirmed)).number < number:
                    pass
            refused = [each.number for each in bob.received if isinstance(each, NotPublished)]
            assert refused == list(range(refused[0], 31))
            assert 10 < refused[0] < 31
            for number in range(40):  # changes of clients that cannot be refused
                await bob.request(wire.Subscribe, f"y = {number}")
            assert link.session.epoch > epoch
            async with running(settings) as there:
                ann = await WireClient.connect(there.port, "ann", is_durable=True, session=2)
                found = [each["x"] for each in bodies(await ann.deliveries(refused[0] - 1))]
                assert found == list(range(1, refused[0]))
                await ann.close()
            await bob.close()

    asyncio.run(main())
