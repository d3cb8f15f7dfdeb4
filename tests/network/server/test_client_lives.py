"""A session without a connection lives on for a while, a durable one for good."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed
from tidegate.routing.messages import Client


def test_only_durable_clients_outlive_the_grace(tmp_path: Path) -> None:
    async def main() -> None:
        limits = ClientLimits(grace_s=0.0)
        async with running(BrokerSettings("a", port=0, data=tmp_path, limits=limits)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            bob = await WireClient.connect(server.port, "bob")
            for each in (ann, bob):
                await each.request(wire.Subscribe, "x >= 0", name="a")
                await each.close()
            while Client("bob") in server.sessions:
                await asyncio.sleep(0.01)
            assert list(server.sessions) == [Client("ann")]
            assert server.store is not None
            assert server.store.queue_names("client") == ["ann"]

    asyncio.run(main())


def test_departed_client_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(wire.Subscribe, "x >= 0", name="a")
            await ann.request(wire.Subscribe, "y >= 0")
            await ann.request(wire.Depart)
            assert server.store is not None
            assert server.store.queue_names("client") == []
            assert [kind for kind, *_ in server.store.state()] == ["begun"]
            await ann.close()

    asyncio.run(main())


def test_queue_on_disk_has_a_bound(tmp_path: Path) -> None:
    async def main() -> None:
        limits = ClientLimits(durable_queue_events_max=10)
        async with running(BrokerSettings("a", port=0, data=tmp_path, limits=limits)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(wire.Subscribe, "x >= 0", name="a")
            await ann.close()
            bob = await WireClient.connect(server.port, "bob")
            bob.publish(*({"x": x} for x in range(50)), confirm=True)
            store, session = server.store, server.sessions[Client("ann")]
            assert store is not None
            assert session.queue is not None
            await bob.next(Confirmed)
            while store.length(session.queue) > 10:
                await asyncio.sleep(0.01)
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
            assert (await ann.next(wire.Missed)).count == 40
            assert [each["x"] for each in bodies(await ann.deliveries(10))] == [*range(40, 50)]
            ann.abort()
            again = await WireClient.connect(server.port, "ann", is_durable=True, session=3)
            await again.deliveries(10)
            assert not [each for each in again.received if isinstance(each, wire.Missed)]
            for each in (ann, again, bob):
                await each.close()

    asyncio.run(main())
