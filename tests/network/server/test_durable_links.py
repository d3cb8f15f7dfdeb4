"""A broker that restarts knows its neighbours and their filters, and goes on with them."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings, PeerAddress
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed


def test_restarted_broker_has_what_its_neighbours_have_sent(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path / "a")) as a:
            peers = (PeerAddress("127.0.0.1", a.port),)
            ann = await WireClient.connect(a.port, "ann")
            await ann.request(wire.Subscribe, "x > :low", name="n", parameters={"low": 1})
            await ann.request(wire.Advertise, "y > 0")
            settings = BrokerSettings("b", port=0, data=tmp_path / "b", peers=peers)
            async with running(settings) as b:
                while not b.broker.subscriptions.nodes_of_peer("a"):
                    await asyncio.sleep(0.01)
                bob = await WireClient.connect(b.port, "bob", is_durable=True)
                await bob.request(wire.Subscribe, "y > 5", name="n", version=1, confirm=True)
                await bob.next(wire.InForce)
                bob.publish({"x": 2}, confirm=True)
                await bob.next(Confirmed)
                assert bodies(await ann.deliveries(1)) == [{"x": 2}]
                await bob.close()
            # While it is away its neighbour keeps the confirmed events for it.
            ann.publish({"y": 6}, {"y": 1}, {"y": 7}, confirm=True)
            await ann.next(Confirmed)
            ann.publish({"y": 8})  # not confirmed: nobody keeps it
            while not a.counters.dropped:
                await asyncio.sleep(0.01)
            lonely = BrokerSettings("b", port=0, data=tmp_path / "b")
            async with running(lonely) as b:  # from its own store, without a connection
                wanted = b.broker.subscriptions.nodes_of_peer("a")
                assert [str(node.item) for node in wanted] == ["x > 1"]
            async with running(settings) as b:
                bob = await WireClient.connect(b.port, "bob", is_durable=True, session=2)
                assert bodies(await bob.deliveries(2)) == [{"y": 6}, {"y": 7}]
                bob.publish({"x": 1}, {"x": 3}, confirm=True)
                assert bodies(await ann.deliveries(1)) == [{"x": 3}]
                await bob.close()
            await ann.close()

    asyncio.run(main())
