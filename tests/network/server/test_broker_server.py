"""A broker process serves its clients over sockets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.errors import NetworkError
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Ack, Confirmed, NotPublished
from tidegate.network.wire.handshake import Goodbye

LOOPBACK = BrokerSettings("a", port=0)


def stored(folder: Path) -> BrokerSettings:
    return BrokerSettings("a", port=0, data=folder)


def test_event_reaches_its_subscriber() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            done = await ann.request(
                wire.Subscribe, "price < :limit", name="cheap", parameters={"limit": 10}, version=1
            )
            (handle,) = done.handles
            await ann.request(wire.Subscribe, "symbol = 'IBM'")
            bob.publish({"price": 9.5}, {"price": 30}, {"price": 3, "symbol": "IBM"})
            assert [(a, m) for a, m, _ in await ann.deliveries(2)] == [
                ({"price": 9.5}, [(handle, 1)]),
                ({"price": 3, "symbol": "IBM"}, [(handle, 1), (0, 0)]),
            ]
            await ann.request(wire.Update, handle, 2, {"limit": 40})
            bob.publish({"price": 30})
            assert [m for _, m, _ in await ann.deliveries(1)] == [[(handle, 2)]]
            await ann.request(wire.Cancel, handle)
            bob.publish({"price": 1}, {"symbol": "IBM"})
            assert bodies(await ann.deliveries(1)) == [{"symbol": "IBM"}]
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_confirmed_event_waits_for_a_durable_client(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(stored(tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            assert (await ann.next(wire.Held)).subscriptions == []
            await ann.request(wire.Subscribe, "price < 10", name="cheap", version=3)
            await ann.close()
            bob = await WireClient.connect(server.port, "bob", epoch=5)
            last = bob.publish(*({"price": n} for n in range(20)), confirm=True)
            assert (await bob.next(Confirmed)).number == last
            await bob.close()
        async with running(stored(tmp_path)) as server:
            bob = await WireClient.connect(server.port, "bob", epoch=5)
            bob.publish(*({"price": n} for n in range(20)), confirm=True)  # the same once more
            bob.publish({"price": 5.5}, confirm=True)
            await bob.next(Confirmed)
            assert (await bob.next(Confirmed)).number == 21
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
            (held,) = (await ann.next(wire.Held)).subscriptions
            assert (held.name, held.filter, held.version) == ("cheap", "price < 10", 3)
            found = await ann.deliveries(11)
            assert bodies(found) == [*({"price": n} for n in range(10)), {"price": 5.5}]
            assert [matches for _, matches, _ in found] == [[(held.handle, 3)]] * 11
            ann.send(Ack(found[3][2]))
            await ann.request(wire.Update, held.handle, 4)  # handled after the Ack
            ann.abort()
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=3)
            assert bodies(await ann.deliveries(7)) == bodies(found[4:])
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_without_a_store_nothing_is_confirmed() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            bob = await WireClient.connect(server.port, "bob")
            bob.publish({"price": 1}, confirm=True)
            refused = await bob.next(NotPublished)
            assert refused.number == 1
            assert "has no store" in refused.problem.reason
            assert (await bob.next(Confirmed)).number == 1
            ann = await WireClient.connect(server.port, "ann", is_durable=True, wait=False)
            goodbye = await ann.next(Goodbye)
            assert "start it with --data" in goodbye.problem.reason
            await ann.closed()
            await bob.close()

    asyncio.run(main())


def test_port_in_use() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            with pytest.raises(NetworkError, match=f"cannot listen at 127.0.0.1:{server.port}"):
                await BrokerServer(BrokerSettings("b", port=server.port)).start()

    asyncio.run(main())


def test_clients_are_told_when_the_broker_drains() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
        assert (await ann.next(Goodbye)).retry_ms == 1_000
        await ann.closed()

    asyncio.run(main())
