"""Disks that are full or damaged, under a broker: typed errors, and nothing lost in silence."""

from __future__ import annotations

import asyncio
import resource
from pathlib import Path

import pytest

from support.forked_processes import ForkedProcess, fork_server
from support.linked_brokers import free_ports
from support.wire_client import WireClient, bodies, rows, running
from tidegate.errors import StoreDamagedError, TidegateError
from tidegate.network.client.connect import connect
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.flow import Confirmed

TEXT = "x" * 20_000
EVENTS = 30
NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.slow
def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    """The broker may write no file beyond a size, then any size again; then it is killed."""

    async def main(broker: ForkedProcess, url: str) -> None:
        confirmed: list[int] = []
        async with connect(url, identity="ann", durable=True, timeout=60) as ann:
            await ann.subscribe("n >= 0", name="all")
        async with connect(url, identity="bob", epoch=1, timeout=60) as bob:
            refused: list[str] = []
            for n in range(EVENTS):
                if n == EVENTS // 3:
                    size = max(each.stat().st_size for each in (tmp_path / "a").iterdir())
                    broker.limit(resource.RLIMIT_FSIZE, size + 10 * len(TEXT))
                if n == 2 * EVENTS // 3:
                    broker.limit(resource.RLIMIT_FSIZE, NO_LIMIT)
                try:
                    await bob.publish({"n": n, "text": TEXT}, confirm=True)
                    confirmed.append(n)
                except TidegateError as error:
                    refused.append(str(error))
            assert refused
            assert all("full" in each for each in refused)
            assert confirmed[-1] == EVENTS - 1  # it goes on when there is room
        broker.kill()
        broker.start()
        async with connect(url, identity="ann", durable=True, timeout=60) as ann:
            wanted = await ann.subscribe("n >= 0", name="all")
            found: list[int] = []
            while found[-1:] != [EVENTS - 1]:
                event = await wanted.next(60)
                assert event is not None
                found.append(event["n"])
            assert found == confirmed

    with fork_server() as forks:
        [port] = free_ports(1)
        arguments = {"name": "a", "port": port, "data": str(tmp_path / "a"), "peers": []}
        broker = ForkedProcess(forks, "broker", tmp_path / "log", arguments)
        broker.start()
        try:
            asyncio.run(main(broker, f"tidegate://127.0.0.1:{port}"))
        finally:
            broker.kill()


# -- a damaged store -------------------------------------------------------------------------------


async def stored(data: Path, count: int) -> None:
    """Leave events for a durable client in a store."""
    async with running(BrokerSettings("a", port=0, data=data)) as server:
        ann = await WireClient.connect(server.port, "ann", is_durable=True)
        await ann.request(wire.Subscribe, "n >= 0", name="all", version=1)
        await ann.close()
        bob = await WireClient.connect(server.port, "bob")
        events = [{"n": n, "text": f"body {n} of the events"} for n in range(count)]
        bob.publish(*events, confirm=True)
        while (await bob.next(Confirmed)).number < count:
            pass
        await bob.close()


def flip(data: Path, text: bytes) -> None:
    """Flip a bit of a text in the database."""
    file = data / "store.db"
    content = bytearray(file.read_bytes())
    content[content.index(text)] ^= 1
    file.write_bytes(content)


async def received(data: Path, count: int) -> tuple[list[int], int]:
    """What a durable client gets from a broker with this store, and how much it is told to miss."""
    async with running(BrokerSettings("a", port=0, data=data)) as server:
        ann = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
        found: list[int] = []
        missed = 0
        async with asyncio.timeout(60):
            while len(found) + missed < count:
                await asyncio.sleep(0.001)
                for message in list(ann.received):
                    if isinstance(message, Deliver):
                        ann.received.remove(message)
                        found += [each["n"] for each, _, _ in rows(message)]
                    elif isinstance(message, wire.Missed):
                        ann.received.remove(message)
                        missed += message.count
        await ann.close()
        return found, missed


def test_an_event_that_is_damaged_between_two_starts_is_missed_and_not_delivered(
    tmp_path: Path,
) -> None:
    asyncio.run(stored(tmp_path, 30))
    flip(tmp_path, b"body 17 of")
    found, missed = asyncio.run(received(tmp_path, 30))
    assert missed == 1
    assert found == [n for n in range(30) if n != 17]


def test_a_store_that_is_cut_short_stops_the_broker_with_an_error(tmp_path: Path) -> None:
    asyncio.run(stored(tmp_path, 300))
    file = tmp_path / "store.db"
    with file.open("r+b") as opened:
        opened.truncate(file.stat().st_size // 2)
    with pytest.raises(StoreDamagedError, match="repair"):
        asyncio.run(received(tmp_path, 300))


def test_damage_under_a_broker_that_runs_is_never_delivered(tmp_path: Path) -> None:
    """What it has in memory is right; what it reads from the disk is checked."""

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
            found: list[int] = []
            while len(found) < 30:
                found += [each["n"] for each in bodies(await ann.deliveries(1))]
            await ann.close()
            assert found == list(range(30))
            flip(tmp_path, b"body 17 of")
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=3)
            again: list[dict[str, object]] = []
            async with asyncio.timeout(60):
                while len(again) < 29:
                    again += bodies(await ann.deliveries(1))
            assert all(each["text"] == f"body {each['n']} of the events" for each in again)
            await ann.close()

    asyncio.run(stored(tmp_path, 30))
    asyncio.run(main())
