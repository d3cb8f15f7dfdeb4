"""Publishers wait for a subscriber that asked to block, within a bound; others do not."""

from __future__ import annotations

import asyncio
from typing import Any

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Credit


async def blocking_client(port: int, **fields: Any) -> WireClient:
    """A client that takes nothing yet."""
    client = await WireClient.connect(
        port, "slow", slow_policy="block", queue_max=10, credit_events=0, **fields
    )
    await client.request(wire.Subscribe, "x >= 0")
    return client


def test_publishers_wait_until_the_subscriber_takes_its_deliveries() -> None:
    async def main() -> None:
        limits = ClientLimits(block_s=600)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            slow = await blocking_client(server.port)
            bob = await WireClient.connect(server.port, "bob")
            other = await WireClient.connect(server.port, "other")
            await other.request(wire.Subscribe, "y > 0")
            bob.publish(*({"x": x} for x in range(20)))
            while not server.counters.held_back:
                await asyncio.sleep(0.01)
            for x in range(20, 40):
                bob.publish({"x": x})
            eve = await WireClient.connect(server.port, "eve")
            eve.publish({"y": 1})  # is not held back
            await other.deliveries(1)
            assert server.counters.published == 21
            slow.send(Credit(1_000, 1 << 40))
            assert [each["x"] for each in bodies(await slow.deliveries(40))] == [*range(40)]
            assert server.counters.missed == {}
            for each in (slow, bob, other, eve):
                await each.close()

    asyncio.run(main())


def test_after_a_while_the_oldest_are_dropped() -> None:
    async def main() -> None:
        limits = ClientLimits(block_s=0.01)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            slow = await blocking_client(server.port)
            bob = await WireClient.connect(server.port, "bob")
            for begin in (0, 20):
                bob.publish(*({"x": x} for x in range(begin, begin + 20)))
            assert (await slow.next(wire.Missed)).count > 0
            while server.counters.missed["block"] < 30:
                await asyncio.sleep(0.01)
            slow.send(Credit(1_000, 1 << 40))
            assert [each["x"] for each in bodies(await slow.deliveries(10))] == [*range(30, 40)]
            await slow.close()
            await bob.close()

    asyncio.run(main())


def test_nobody_waits_for_a_client_that_is_away() -> None:
    async def main() -> None:
        limits = ClientLimits(block_s=600)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            slow = await blocking_client(server.port)
            bob = await WireClient.connect(server.port, "bob")
            bob.publish(*({"x": x} for x in range(20)))
            while not server.counters.held_back:
                await asyncio.sleep(0.01)
            bob.publish(*({"x": x} for x in range(20)))
            slow.abort()
            while server.counters.published < 40:
                await asyncio.sleep(0.01)
            await bob.close()

    asyncio.run(main())


def test_a_broker_that_drains_takes_what_was_held_back() -> None:
    async def main() -> None:
        limits = ClientLimits(block_s=600)
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            slow = await blocking_client(server.port)
            bob = await WireClient.connect(server.port, "bob")
            bob.publish(*({"x": x} for x in range(20)))
            while not server.counters.held_back:
                await asyncio.sleep(0.01)
            received = server.counters.received_bytes
            bob.publish(*({"x": x} for x in range(20)))
            while server.counters.received_bytes == received:
                await asyncio.sleep(0.01)
        assert server.counters.published == 40
        for each in (slow, bob):
            await each.close()

    asyncio.run(main())
