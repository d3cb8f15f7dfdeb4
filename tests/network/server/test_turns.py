"""Turns: what arrives together is handled together, in the order of each sender."""

from __future__ import annotations

import asyncio
from pathlib import Path

from support.wire_client import WireClient, bodies, running
from tidegate.language.events import Event
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Confirmed


def test_requests_and_events_of_one_sender_keep_their_order() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            ann = await WireClient.connect(server.port, "ann")
            done = await ann.request(wire.Subscribe, "x = :x", name="a", version=1)
            before = server.turns.count
            for x in range(100):  # all of it in one write
                ann.wire.send(wire.Update(2 + x, done.handles[0], 2 + x, {"x": x}))
                block = EventBlock.of([Event({"x": x - 1}), Event({"x": x}), Event({"x": x + 1})])
                ann.wire.send(Publish(1 + 3 * x, block))
            ann.flush()
            found = await ann.deliveries(100)
            assert bodies(found) == [{"x": x} for x in range(100)]
            assert [matches[0][1] for _, matches, _ in found] == list(range(2, 102))
            assert server.turns.count - before < 20
            await ann.close()

    asyncio.run(main())


def test_nothing_leaves_before_its_commit(tmp_path: Path) -> None:
    """Whatever a client has seen confirmed, the store has at that moment."""

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as server:
            assert server.store is not None
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(wire.Subscribe, "x > 0", name="a", version=1)
            queue = server.store.queue("client", "ann")
            for number in range(1, 30):
                ann.publish({"x": number}, confirm=True)
                await ann.next(Confirmed)
                assert server.store.length(queue) == number
                assert server.store.positions("publisher")["ann"] == (0, number)
            assert len(await ann.deliveries(29)) == 29
            await ann.close()

    asyncio.run(main())
