from __future__ import annotations

import asyncio

import pytest

from support.wire_client import running
from tidegate.errors import FilterError, SubscriptionError
from tidegate.network.client import bulk_subscribing
from tidegate.network.client.connect import connect
from tidegate.network.server.settings import BrokerSettings


def test_many_subscriptions_of_several_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_subscribing, "ROWS_MAX", 7)

    async def main() -> None:
        async with (
            running(BrokerSettings("a", port=0)) as server,
            connect(f"tidegate://127.0.0.1:{server.port}") as client,
        ):
            filters: list[str | tuple[str, dict[str, int]]] = [
                *(f"x = {number} and s = 'é{number}'" for number in range(20)),
                *(("x < :a and t = 1", {"a": number}) for number in range(20)),
                *(f"x = {number} or y = {number}" for number in range(3)),
            ]
            made = await client.subscribe_many(filters)
            assert len({each.name for each in made}) == len(client.subscriptions) == 43
            inbox = made[0].inbox
            await client.publish_many([{"x": 5, "s": "é5"}, {"x": 17, "t": 1}, {"y": 2}])
            events = [await inbox.next(120) for _ in range(3)]
            assert [[match[0] for match in each.matches] for each in events if each] == [
                [made[5]], made[38:40], [made[42]],
            ]  # fmt: skip
            await made[38].update(a=0)
            await client.publish({"x": 17, "t": 1})
            event = await inbox.next(120)
            assert event is not None
            assert [match[0] for match in event.matches] == [made[39]]

    asyncio.run(main())


def test_what_is_wrong_is_said() -> None:
    async def main() -> None:
        async with (
            running(BrokerSettings("a", port=0)) as server,
            connect(f"tidegate://127.0.0.1:{server.port}") as client,
        ):
            with pytest.raises(FilterError):
                await client.subscribe_many(["x <"])
            with pytest.raises(SubscriptionError, match="subscribe to it by itself"):
                await client.subscribe_many([f"s = '{'x' * 20_000}'"])
            assert await client.subscribe_many([]) == []

    asyncio.run(main())
