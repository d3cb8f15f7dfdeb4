"""Many connections, and clients that come and go: others are served, nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import resource
import tracemalloc
from random import Random

import pytest

from support.fuzzing import Victim
from support.wire_client import WireClient, running
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire

DESCRIPTORS_SPARE = 200
CLIENTS = 60


async def idle_connections(count: int) -> None:
    """Connect so many clients, half of which never say who they are, and serve another one."""
    limits = ClientLimits(connections_max=count + 10, handshake_s=600)
    async with running(BrokerSettings("a", port=0, limits=limits)) as server:
        victim = Victim(server)
        await victim.start()
        named, unnamed = [], []
        for number in range(count // 2):
            named.append(await WireClient.connect(server.port, f"c{number}"))
            unnamed.append(await asyncio.open_connection("127.0.0.1", server.port))
        assert len(server.connections) == len(named) + len(unnamed) + 1
        assert await victim.suffer(b"") is None
        await named[-1].request(wire.Subscribe, "ping > 0")
        assert await victim.suffer(b"") is None
        assert len(await named[-1].deliveries(2)) == 2
        for _, writer in unnamed:
            writer.transport.abort()
        for each in named:
            await each.close()
        while len(server.connections) > 1:
            await asyncio.sleep(0.01)
        await victim.stop()


def test_five_hundred_idle_connections() -> None:
    asyncio.run(idle_connections(500))


@pytest.mark.soak
def test_ten_thousand_idle_connections() -> None:
    """As many as the process may have: each takes two descriptors, as both ends are here."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    asyncio.run(idle_connections(min(10_000, (soft - DESCRIPTORS_SPARE) // 2)))


def test_more_connections_than_allowed_are_told_so() -> None:
    async def main() -> None:
        limits = ClientLimits(connections_max=3)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            clients = [await WireClient.connect(server.port, f"c{at}") for at in range(3)]
            _, writer = fourth = await asyncio.open_connection("127.0.0.1", server.port)
            assert b"takes no more connections" in await fourth[0].read()
            writer.close()
            for each in clients:
                await each.close()

    asyncio.run(main())


# -- clients that come and go ----------------------------------------------------------------------


async def come_and_go(server: BrokerServer, chance: Random, count: int) -> None:
    """Clients connect, subscribe, update and publish; they depart, or are gone without a word."""
    for _ in range(count):
        client = await WireClient.connect(
            server.port, f"c{chance.getrandbits(40)}", session=chance.getrandbits(40)
        )
        done = await client.request(
            wire.Subscribe, "x < :n and kind = 'a'", name="low", version=1, parameters={"n": 3}
        )
        await client.request(wire.Update, done.handles[0], 2, {"n": chance.randint(0, 9)})
        await client.request(wire.Subscribe, f"y > {chance.randint(0, 99)}")
        client.publish({"x": 1, "kind": "a"}, {"y": 50})
        if chance.random() < 0.5:
            await client.request(wire.Depart)
            await client.close()
        else:
            await client.request(wire.Suspend)
            client.abort()
            await client.closed()
    while len(server.connections) or server.sessions:
        server.lives.expire(server.loop.time())
        await asyncio.sleep(0.001)
    await server.turns.idle()


async def growth(server: BrokerServer, chance: Random) -> int:
    """Bytes that are in use after some clients have come and gone, and were not before."""
    before = tracemalloc.get_traced_memory()[0]
    await come_and_go(server, chance, CLIENTS)
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def test_nothing_is_left_of_clients_that_are_gone() -> None:
    async def main() -> None:
        limits = ClientLimits(grace_s=0.0)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            chance = Random(1)
            await come_and_go(server, chance, CLIENTS)
            gc.collect()
            tracemalloc.start()
            try:
                await come_and_go(server, chance, 20)  # its own first allocations
                gc.collect()
                grown = [await growth(server, chance) for _ in range(3)]
            finally:
                tracemalloc.stop()
            # What is left of clients is left each time; a table of ours that doubles is not.
            assert min(grown) < CLIENTS * 1_000, f"{grown} bytes for {CLIENTS} clients"
            assert not server.flow._taken
            assert not server.published
            assert not len(server.broker.subscriptions.poset)

    asyncio.run(main())
