"""Events of clients: numbered, taken once, confirmed or refused."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.language.events import Event
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Confirmed, NotPublished
from tidegate.network.wire.handshake import Welcome

LOOPBACK = BrokerSettings("a", port=0)


def numbered(first: int, *values: int, confirm: bool = True) -> Publish:
    return Publish(first, EventBlock.of([Event({"x": x}) for x in values]), confirm)


def test_number_is_taken_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann")
            await ann.request(wire.Subscribe, "x > 0")
            ann.send(numbered(1, 1, 2, 3))
            ann.send(numbered(2, 2, 3, 4, 5))  # partly again
            ann.send(numbered(1, 1, 2))  # again
            ann.send(numbered(9, 9, confirm=False))  # gaps are allowed
            ann.send(numbered(9, 9, confirm=False))
            ann.send(numbered(12, 12))
            assert bodies(await ann.deliveries(7)) == [{"x": x} for x in (1, 2, 3, 4, 5, 9, 12)]
            while (await ann.next(Confirmed)).number < 12:
                pass
            other = await WireClient.connect(server.port, "ann", session=2, epoch=1)
            other.send(numbered(1, 1))  # of another epoch
            assert (await other.next(Confirmed)).number == 1
            await other.close()

    asyncio.run(main())


def test_refused_event_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, data=tmp_path, routing="advertisement")
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            await ann.request(wire.Subscribe, "x > 0")
            await bob.request(wire.Advertise, "x < 5")
            bob.send(numbered(1, 1, 2))
            bob.send(numbered(3, 7, 4, 9, confirm=False))
            refused = [await bob.next(NotPublished) for _ in range(2)]
            assert [each.number for each in refused] == [3, 5]
            assert "has not advertised such an event" in refused[0].problem.reason
            assert bodies(await ann.deliveries(3)) == [{"x": 1}, {"x": 2}, {"x": 4}]
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_refused_event_that_comes_again_is_refused_again(tmp_path: Path) -> None:
    """The connection may break before the client hears of the refusal."""

    async def main() -> None:
        settings = replace(LOOPBACK, data=tmp_path, routing="advertisement")
        async with running(settings) as server:
            bob = await WireClient.connect(server.port, "bob")
            await bob.request(wire.Advertise, "x < 5")
            bob.send(numbered(1, 1, 7, 2, 9))
            first = [await bob.next(NotPublished) for _ in range(2)]
            while (await bob.next(Confirmed)).number < 4:
                pass
            bob.send(numbered(1, 1, 7, 2, 9))  # all of it
            assert [await bob.next(NotPublished) for _ in range(2)] == first
            assert (await bob.next(Confirmed)).number == 4
            bob.send(numbered(4, 9, 3))  # the end of it, and more
            assert await bob.next(NotPublished) == first[1]
            while (await bob.next(Confirmed)).number < 5:
                pass
            await bob.close()

    asyncio.run(main())


def test_refusals_outlive_the_broker(tmp_path: Path) -> None:
    """It may be killed after the commit and before the client hears of the refusal."""

    async def main() -> None:
        settings = replace(LOOPBACK, data=tmp_path, routing="advertisement")
        async with running(settings) as server:
            bob = await WireClient.connect(server.port, "bob", epoch=1)
            await bob.request(wire.Advertise, "x < 5")
            bob.send(numbered(1, 1, 7, 2, 9))
            while (await bob.next(Confirmed)).number < 4:
                pass
        async with running(settings) as server:
            bob = await WireClient.connect(server.port, "bob", epoch=1)
            bob.send(numbered(1, 1, 7, 2, 9))
            assert [(await bob.next(NotPublished)).number for _ in range(2)] == [2, 4]
            assert (await bob.next(Confirmed)).number == 4
            await bob.close()

    asyncio.run(main())


@pytest.mark.parametrize("epoch", [0, 1])
def test_publisher_that_starts_again_goes_on_after_its_last_number(
    tmp_path: Path, epoch: int
) -> None:
    """The broker has run on meanwhile."""

    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann")
            await ann.request(wire.Subscribe, "x > 0")
            for session in (1, 2):
                bob = await WireClient.connect(
                    server.port, "bob", session=session, epoch=epoch, wait=False
                )
                welcome = await bob.next(Welcome)
                assert welcome.published == 3 * (session - 1)
                bob.send(numbered(1, 1, 2, 3))
                assert (await bob.next(Confirmed)).number == 3
                await bob.close()
            assert bodies(await ann.deliveries(3)) == [{"x": 1}, {"x": 2}, {"x": 3}]
            await ann.request(wire.Suspend)  # answered after all that has come before
            assert not any(isinstance(each, Deliver) for each in ann.received)
            await ann.close()

    asyncio.run(main())


def test_full_store_refuses_confirmed_events_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            assert server.store is not None
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(wire.Subscribe, "x > 0", name="a")
            server.store.is_full = True
            ann.wire.send(numbered(1, 1))
            ann.wire.send(numbered(2, 2, confirm=False))
            ann.flush()
            refused = await ann.next(NotPublished)
            assert refused.number == 1
            assert "store of the broker is full" in refused.problem.reason
            assert bodies(await ann.deliveries(1)) == [{"x": 2}]
            server.store.is_full = True
            assert isinstance(await ann.request(wire.Subscribe, "x > 1", name="b"), wire.Refused)
            server.store.is_full = False
            ann.send(numbered(3, 3))
            assert bodies(await ann.deliveries(1)) == [{"x": 3}]
            await ann.close()

    asyncio.run(main())


def test_disk_that_fills_up_during_a_turn(tmp_path: Path) -> None:
    """The transaction fails; its events are refused and not delivered."""

    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            assert server.store is not None
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            bob = await WireClient.connect(server.port, "bob")
            await ann.request(wire.Subscribe, "x > 0", name="a")
            pages = server.store._connection.execute("PRAGMA page_count").fetchone()[0]
            server.store._connection.execute(f"PRAGMA max_page_count={pages}")
            big = EventBlock.of([Event({"x": n, "text": "y" * 5000}) for n in range(1, 20)])
            bob.send(Publish(1, big, True))
            refused = [await bob.next(NotPublished) for _ in range(19)]
            assert "full" in refused[0].problem.reason
            server.store._connection.execute("PRAGMA max_page_count=1000000")
            bob.send(numbered(20, 77))
            assert bodies(await ann.deliveries(1)) == [{"x": 77}]
            await ann.close()
            await bob.close()

    asyncio.run(main())
