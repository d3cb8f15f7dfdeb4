"""A subscription gets what the store has kept, and then what comes, without gap and doubles."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import tidegate
from support.wire_client import PLENTY, WireClient, bodies, running
from tidegate.errors import AccessError, SubscriptionError
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.deliveries.replays import CHUNK_EVENTS
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.store.retention import Retention
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Confirmed, Credit

KEEP = Retention(keep=timedelta(hours=1))


def keeping(data: Path, keep: Retention = KEEP) -> BrokerSettings:
    return BrokerSettings("a", port=0, data=data, store=keep)


async def publish(client: WireClient, *numbers: int) -> None:
    """Publish events and wait until they are stored."""
    last = client.publish(*({"x": x} for x in numbers), confirm=True)
    while (await client.next(Confirmed)).number < last:
        pass


async def replay(client: WireClient, since_us: int, wanted: str = "x >= 0", **more: Any) -> Any:
    return await client.request(wire.Subscribe, wanted, "n", version=1, replay_us=since_us, **more)


def position(server: BrokerServer) -> int:
    assert server.store is not None
    return server.store.last_position


@pytest.mark.parametrize("is_durable", [False, True])
def test_replay_goes_over_into_what_comes(tmp_path: Path, is_durable: bool) -> None:
    count = 2 * CHUNK_EVENTS + 10

    async def main() -> None:
        async with running(keeping(tmp_path)) as server:
            bob = await WireClient.connect(server.port, "bob")
            await publish(bob, -1)
            begin = position(server) + 1
            await publish(bob, *range(count))
            ann = await WireClient.connect(
                server.port, "ann", is_durable=is_durable, credit_events=7
            )
            done = await replay(ann, begin, "x >= 0 and x != 5")
            await publish(bob, *range(count, count + 20))
            ann.send(Credit(CHUNK_EVENTS, PLENTY))
            found = await ann.deliveries(CHUNK_EVENTS)
            ann.send(Credit(PLENTY, PLENTY))
            found += await ann.deliveries(count + 20 - 1 - CHUNK_EVENTS)
            assert [each["x"] for each in bodies(found)] == [x for x in range(count + 20) if x != 5]
            assert {pairs[0] for _, pairs, _ in found} == {(done.handles[0], 1)}
            positions = [at for _, _, at in found]
            assert positions[: count - 1] == [0] * (count - 1)
            assert all(positions[count - 1 :]) == is_durable
            for each in (ann, bob):
                await each.close()

    asyncio.run(main())


def test_events_survive_a_restart_of_the_broker(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(keeping(tmp_path)) as server:
            bob = await WireClient.connect(server.port, "bob")
            await publish(bob, 1, 2)
            await bob.close()
        async with running(keeping(tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann")
            await replay(ann, 0)
            assert bodies(await ann.deliveries(2)) == [{"x": 1}, {"x": 2}]
            await ann.close()

    asyncio.run(main())


def test_update_counts_for_what_is_replayed_after_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(keeping(tmp_path)) as server:
            bob = await WireClient.connect(server.port, "bob")
            await publish(bob, *range(3 * CHUNK_EVENTS))
            ann = await WireClient.connect(server.port, "ann", credit_events=1)
            done = await replay(ann, 0, "x >= :low", parameters={"low": 0})
            await ann.deliveries(1)
            await ann.request(wire.Update, done.handles[0], 2, {"low": 3 * CHUNK_EVENTS - 5})
            ann.send(Credit(PLENTY, PLENTY))
            found = await ann.deliveries(CHUNK_EVENTS - 1 + 5)
            assert [each["x"] for each in bodies(found)][-5:] == [
                *range(3 * CHUNK_EVENTS - 5, 3 * CHUNK_EVENTS)
            ]
            await ann.request(wire.Cancel, done.handles[0])
            for each in (ann, bob):
                await each.close()

    asyncio.run(main())


def test_subscription_that_is_cancelled_ends_its_replay(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(keeping(tmp_path)) as server:
            bob = await WireClient.connect(server.port, "bob")
            await publish(bob, *range(10))
            ann = await WireClient.connect(server.port, "ann", credit_events=0)
            done = await replay(ann, 0)
            await ann.request(wire.Cancel, done.handles[0])
            await ann.request(wire.Subscribe, "x < 0", name="m")
            ann.send(Credit(PLENTY, PLENTY))
            await publish(bob, -7)
            assert bodies(await ann.deliveries(1)) == [{"x": -7}]
            for each in (ann, bob):
                await each.close()

    asyncio.run(main())


def test_brokers_that_keep_nothing_refuse(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(keeping(tmp_path, Retention())) as server:
            ann = await WireClient.connect(server.port, "ann")
            assert "keeps no events" in (await replay(ann, 0)).problem.reason
            unnamed = await ann.request(wire.Subscribe, "x > 0", replay_us=0)
            assert "with a name" in unnamed.problem.reason
            await ann.close()
        async with running(BrokerSettings("a", port=0)) as server:
            ann = await WireClient.connect(server.port, "ann")
            assert "has no store" in (await replay(ann, 0)).problem.reason
            await ann.close()

    asyncio.run(main())


def test_the_client_asks_by_a_time(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(keeping(tmp_path)) as server:
            url = f"tidegate://127.0.0.1:{server.port}"
            async with (
                tidegate.connect(url) as bob,
                tidegate.connect(url, identity="ann", durable=True) as ann,
            ):
                await bob.publish_many([{"x": x} for x in range(50)], confirm=True)
                begin = datetime.now(UTC) - timedelta(minutes=5)
                sub = await ann.subscribe("x >= 40", name="n", since=begin)
                await bob.publish({"x": 50}, confirm=True)
                for x in range(40, 51):
                    event = await sub.next(60)
                    assert event is not None
                    assert event["x"] == x
                late = await ann.subscribe("x >= 40", name="late", since=datetime.now(UTC))
                await bob.publish({"x": 51}, confirm=True)
                assert (await late.next(60))["x"] == 51  # type: ignore[index]
            async with tidegate.connect(url, identity="ann", durable=True) as ann:
                with pytest.raises(SubscriptionError, match="replays to a new one only"):
                    await ann.subscribe("x >= 40", name="n", since=begin)
        async with (
            running(BrokerSettings("b", port=0)) as server,
            tidegate.connect(f"tidegate://127.0.0.1:{server.port}") as ann,
        ):
            with pytest.raises(AccessError, match="has no store"):
                await ann.subscribe("x >= 40", since=begin)

    asyncio.run(main())
