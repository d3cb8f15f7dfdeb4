"""Durable clients read what they have missed from the store, in order with what is new."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from support.wire_client import Row, WireClient, running
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import Ack, Confirmed, Credit
from tidegate.network.wire.handshake import Goodbye

LOOPBACK = BrokerSettings("a", port=0)


def test_slow_durable_client_gets_everything_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.network.server.deliveries.client_output.READ_MAX", 7)
    monkeypatch.setattr("tidegate.network.server.admission.DURABLE_QUEUE_MAX", 20)

    async def main() -> None:
        async with running(replace(LOOPBACK, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True, credit_events=3)
            await ann.request(wire.Subscribe, "x >= 0", name="a", version=1)
            bob = await WireClient.connect(server.port, "bob")
            found: list[Row] = []
            credit = 3
            for start in range(0, 200, 10):
                bob.publish(*({"x": x} for x in range(start, start + 10)), confirm=True)
                await bob.next(Confirmed)
                found += await ann.deliveries(credit - len(found))
                ann.send(Ack(found[-1][2]))
                credit += 8
                ann.send(Credit(credit, 1 << 40))
            ann.send(Credit(1000, 1 << 40))
            found += await ann.deliveries(200 - len(found))
            assert [attributes["x"] for attributes, _, _ in found] == list(range(200))
            positions = [position for _, _, position in found]
            assert positions == sorted(set(positions))
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_client_that_takes_nothing_is_told_what_it_has_missed() -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, limits=ClientLimits(queue_events_max=10))
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann", credit_events=1)
            out = await WireClient.connect(
                server.port, "out", credit_events=1, slow_policy="disconnect"
            )
            for each in (ann, out):
                await each.request(wire.Subscribe, "x >= 0")
            bob = await WireClient.connect(server.port, "bob")
            bob.publish(*({"x": x} for x in range(100)))
            assert (await ann.next(wire.Missed)).count == 89
            ann.send(Credit(100, 1 << 40))
            found = await ann.deliveries(11)
            assert [attributes["x"] for attributes, _, _ in found] == [0, *range(90, 100)]
            assert (await out.next(Goodbye)).problem.code == "overloaded"
            await out.closed()
            await ann.close()
            await bob.close()

    asyncio.run(main())
