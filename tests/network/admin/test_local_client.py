from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.errors import OverloadedError
from tidegate.language.events import Event
from tidegate.network.admin.local_client import LocalClient
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire import requests as wire


def events(*numbers: int) -> list[Event]:
    return [Event.of({"x": x}) for x in numbers]


@pytest.mark.parametrize("confirm", [False, True])
def test_events_are_published_in_order(tmp_path: Path, confirm: bool) -> None:
    async def main() -> None:
        limits = ClientLimits(publish_events_max=100)  # so that it waits for credit
        async with running(BrokerSettings("a", port=0, data=tmp_path, limits=limits)) as server:
            ann = await WireClient.connect(server.port, "ann")
            await ann.request(wire.Subscribe, "x >= 0")
            client = LocalClient(server, "http")
            both = [client.publish(events(*range(begin, begin + 2_500)), confirm=confirm)
                    for begin in (0, 2_500)]  # fmt: skip
            assert await asyncio.gather(*both) == [{}, {}]
            assert [each["x"] for each in bodies(await ann.deliveries(5_000))] == [*range(5_000)]
            assert server.counters.confirmed == 5_000 * confirm
            client.close()
            await ann.close()

    asyncio.run(main())


@pytest.mark.parametrize("confirm", [False, True])
def test_refusals_come_back_by_index(tmp_path: Path, confirm: bool) -> None:
    async def main() -> None:
        settings = BrokerSettings("a", port=0, data=tmp_path, routing="advertisement")
        async with running(settings) as server:
            client = LocalClient(server, "http")
            await client.publish(events(1), confirm=confirm)
            refused = await client.publish(events(1, 2), confirm=confirm)
            assert list(refused) == [0, 1]
            assert "has not advertised" in refused[0]

    asyncio.run(main())


def test_session_that_was_taken_over_begins_anew() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            client = LocalClient(server, "http")
            await client.publish(events(1), confirm=False)
            other = await WireClient.connect(server.port, "http")
            assert await client.publish(events(2), confirm=False) == {}
            await other.closed()

    asyncio.run(main())


def test_broker_that_drains_takes_nothing() -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            server.is_draining = True
            with pytest.raises(OverloadedError):
                await LocalClient(server, "http").publish(events(1), confirm=False)

    asyncio.run(main())
