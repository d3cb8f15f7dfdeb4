"""Clients that stop reading: others are served, memory is bounded, what is missed is counted."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from support.wire_client import WireClient, rows, running
from tidegate.network.server.admission import DURABLE_QUEUE_MAX
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.flow import Ack, Confirmed
from tidegate.routing.messages import Client

QUEUE_MAX = 50
EVENTS, EVENT_BYTES = 600, 40_000
"""24 MB: more than sockets and buffers hold."""
SETTINGS = BrokerSettings("a", port=0, limits=ClientLimits(queue_events_max=QUEUE_MAX))
TEXT = "x" * EVENT_BYTES


def buffered_bytes(connection: ServedConnection | None) -> int:
    assert connection is not None
    assert connection._transport is not None
    return connection._transport.get_write_buffer_size()


async def publish_all(server: BrokerServer, reader: WireClient, *, confirm: bool) -> int:
    """Publish to a reader and one that has stalled; the most bytes that waited for the latter."""
    bob = await WireClient.connect(server.port, "bob")
    stalled, most, got = server.sessions[Client("stalled")], 0, 0
    for n in range(EVENTS):
        bob.publish({"n": n, "text": TEXT}, confirm=confirm)
        if n % 20 == 19:
            got += len(await reader.deliveries(20))
            most = max(most, buffered_bytes(stalled.connection))
            assert len(stalled.deliveries) <= DURABLE_QUEUE_MAX if confirm else QUEUE_MAX + 20
    assert got == EVENTS
    if confirm:
        while (await bob.next(Confirmed)).number < EVENTS:
            pass
    await bob.close()
    return most


def test_a_reader_that_stalls_misses_events_and_is_told_how_many() -> None:
    async def main() -> None:
        async with running(SETTINGS) as server:
            stalled = await WireClient.connect(server.port, "stalled")
            reader = await WireClient.connect(server.port, "reader")
            for each in (stalled, reader):
                await each.request(wire.Subscribe, "n >= 0")
            stalled._reader._transport.pause_reading()  # type: ignore[attr-defined]
            most = await publish_all(server, reader, confirm=False)
            assert most < 12_000_000
            stalled._reader._transport.resume_reading()  # type: ignore[attr-defined]
            numbers: list[int] = []
            missed = 0
            async with asyncio.timeout(60):
                while len(numbers) + missed < EVENTS:
                    for message in [
                        each for each in stalled.received if isinstance(each, Deliver | wire.Missed)
                    ]:
                        stalled.received.remove(message)
                        if isinstance(message, wire.Missed):
                            missed += message.count
                        else:
                            numbers += [each["n"] for each, _, _ in rows(message)]
                    await asyncio.sleep(0.001)
            assert numbers == sorted(set(numbers))
            assert missed > EVENTS / 4
            assert numbers[-1] == EVENTS - 1  # the oldest were dropped
            await stalled.close()
            await reader.close()

    asyncio.run(main())


@pytest.mark.slow
def test_a_durable_reader_that_stalls_misses_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(replace(SETTINGS, data=tmp_path)) as server:
            stalled = await WireClient.connect(server.port, "stalled", is_durable=True)
            reader = await WireClient.connect(server.port, "reader")
            await stalled.request(wire.Subscribe, "n >= 0", name="all", version=1)
            await reader.request(wire.Subscribe, "n >= 0")
            stalled._reader._transport.pause_reading()  # type: ignore[attr-defined]
            most = await publish_all(server, reader, confirm=True)
            assert most < 12_000_000
            stalled._reader._transport.resume_reading()  # type: ignore[attr-defined]
            numbers: list[int] = []
            while len(numbers) < EVENTS:
                for each, _, position in rows(await stalled.next(Deliver)):
                    numbers.append(each["n"])
                    stalled.send(Ack(position))
            assert numbers == list(range(EVENTS))
            assert not any(isinstance(each, wire.Missed) for each in stalled.received)
            await stalled.close()
            await reader.close()

    asyncio.run(main())
