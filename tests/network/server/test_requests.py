"""Each request is answered, with handles or with what is wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import DeliverSequence

LOOPBACK = BrokerSettings("a", port=0)


def test_what_is_wrong_is_said() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            done = await bob.request(wire.Subscribe, "x > 0", name="positive", version=1)
            wrong: list[tuple[Any, str, str]] = [
                ((wire.Subscribe, "x <"), "filter", "x <"),
                ((wire.Update, 7, 1), "routing", ""),
                ((wire.Cancel, done.handles[0]), "routing", ""),  # that of somebody else
                ((wire.Cancel, 0), "routing", ""),
                ((wire.Cancel, 2**31 + 1), "routing", ""),
                ((wire.Unsubscribe, "x > 0"), "routing", ""),
            ]
            for request, code, text in wrong:
                refused = await ann.request(*request)
                assert isinstance(refused, wire.Refused), request
                assert (refused.problem.code, refused.problem.text) == (code, text)
            ann.number = 3  # numbers do not go back
            refused = await ann.request(wire.Suspend)
            assert "numbered in their order" in refused.problem.reason
            await ann.close()
            await bob.close()

    asyncio.run(main())


def test_confirmation_that_a_version_is_in_force() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
            done = await ann.request(wire.Subscribe, "x > :low", name="a", version=5, confirm=True)
            assert await ann.next(wire.InForce) == wire.InForce(done.handles[0], 5)
            await ann.request(wire.Update, done.handles[0], 6, {"low": 1}, confirm=True)
            assert await ann.next(wire.InForce) == wire.InForce(done.handles[0], 6)
            await ann.close()

    asyncio.run(main())


def test_pattern_has_a_handle() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
            done = await ann.request(wire.Subscribe, "x = 1 then x = 2")
            other = await ann.request(wire.Subscribe, "x = 5 then x = 6")
            for x in (1, 3, 2):
                ann.publish({"x": x})
            sequence = await ann.next(DeliverSequence)
            assert [sequence.handle] == done.handles
            assert [dict(each.attributes) for each in sequence.publications.events.events()] == [
                {"x": 1},
                {"x": 2},
            ]
            for handle in (done.handles[0], other.handles[0]):
                assert isinstance(await ann.request(wire.Cancel, handle), wire.Done)
            await ann.close()

    asyncio.run(main())


def test_suspended_client_gets_its_events_later() -> None:
    async def main() -> None:
        async with running(LOOPBACK) as server:
            ann = await WireClient.connect(server.port, "ann")
            done = await ann.request(wire.Subscribe, "x > 0", name="positive", version=2)
            await ann.request(wire.Subscribe, "x > 1")
            await ann.request(wire.Suspend)
            ann.publish({"x": 1}, {"x": 2})
            await ann.request(wire.Resume)
            match = (done.handles[0], 2)
            assert [(a, m) for a, m, _ in await ann.deliveries(2)] == [
                ({"x": 1}, [match]),
                ({"x": 2}, [match, (0, 0)]),
            ]
            await ann.close()

    asyncio.run(main())


def test_requests_of_a_durable_client_survive(tmp_path: Path) -> None:
    async def main() -> None:
        settings = replace(LOOPBACK, data=tmp_path)
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            await ann.request(
                wire.Subscribe, "x > :low", name="a", parameters={"low": 3}, version=1
            )
            done = await ann.request(wire.Subscribe, "y > 0", name="b", version=2)
            await ann.request(wire.Subscribe, "z > 5", name="c", version=3)
            await ann.request(wire.Update, done.handles[0], 4, {}, "y > 7")
            await ann.request(wire.Subscribe, "u = 1")
            await ann.request(wire.Subscribe, "u = 2")
            await ann.request(wire.Subscribe, "w = 1 then w = 2")
            await ann.request(wire.Advertise, "v > 3")
            await ann.request(wire.Advertise, "v < 0")
            await ann.request(wire.Unadvertise, "v < 1")
            await ann.request(wire.Unsubscribe, "z > 0")  # by covering
            await ann.request(wire.Unsubscribe, "u = 2")
            await ann.close()
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
            held = (await ann.next(wire.Held)).subscriptions
            assert [(each.name, each.filter, each.version) for each in held] == [
                ("a", "x > :low", 1),
                ("b", "y > 7", 4),
            ]
            assert held[0].parameters == {"low": 3}
            advertised = server.broker.advertisements.items_of(next(iter(server.sessions)))
            assert [str(each) for each in advertised] == ["v > 3"]
            ann.publish(
                {"x": 3}, {"x": 4}, {"y": 7}, {"z": 9}, {"u": 2}, {"u": 1}, {"w": 1}, {"w": 2}
            )
            assert bodies(await ann.deliveries(2)) == [{"x": 4}, {"u": 1}]
            assert len(await ann.next(DeliverSequence)) == 2
            await ann.close()

    asyncio.run(main())
