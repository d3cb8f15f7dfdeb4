"""A session without a connection lives on for a while, a durable one for good."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.wire_client import WireClient, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
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
