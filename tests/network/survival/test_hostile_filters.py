"""Filters made to be slow: each is taken or refused with a typed error, and others are served."""

from __future__ import annotations

import asyncio

import pytest

from support.fuzzing import Victim
from support.wire_client import WireClient, running
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.requests import Done, Refused

HOSTILE = {
    "nested brackets": "(" * 5_000 + "x = 1" + ")" * 5_000,
    "nested negations": "not " * 5_000 + "x = 1",
    "a product of sums": " and ".join(f"(a{n} = 1 or b{n} = 2)" for n in range(40)),
    "a negated sum of products": "not ("
    + " or ".join(f"(a{n} = 1 and b{n} = 2)" for n in range(40))
    + ")",
    "many disjuncts": " or ".join(f"x = {n}" for n in range(1_000)),
    "a long list": f"x in ({', '.join(map(str, range(2_000)))})",
    "many wildcards": f"s like '{'%a' * 500}'",
    "a long text": f"s = '{'x' * 60_000}'",
    "deep arithmetic": "x < " + "1 + " * 5_000 + "1",
    "powers": "x < " + "(" * 500 + "2" + " * 9e99)" * 500,
    "evolving sums": "x < " + " + ".join(["sin(t)"] * 1_000),
    "many attributes": " and ".join(f"a{n} > {n}" for n in range(2_000)),
    "a long pattern": " then ".join(["x = 1"] * 500),
    "a pattern of sums": " then ".join([" or ".join(f"x = {n}" for n in range(40))] * 10),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_filter_is_answered_and_others_are_served(name: str) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            victim, eve = Victim(server), await WireClient.connect(server.port, "eve")
            await victim.start()
            answer = await eve.request(wire.Subscribe, HOSTILE[name])
            assert isinstance(answer, Done | Refused)
            if isinstance(answer, Refused):
                assert answer.problem.code in ("filter", "filter-limit", "routing")
            bob = await WireClient.connect(server.port, "bob")
            bob.publish(*({"x": n, "s": "a" * 2_000, "a1": 1, "b1": 2} for n in range(20)))
            assert await victim.suffer(b"") is None
            for _ in range(3):
                await eve.request(wire.Subscribe, HOSTILE[name])
            assert await victim.suffer(b"") is None
            for each in (eve, bob):
                await each.close()
            await victim.stop()

    asyncio.run(main())


def test_many_long_filters_at_once_do_not_take_one_turn() -> None:
    """Between the turns others are served: the broker reads their connections."""

    async def main() -> None:
        async with running(BrokerSettings("a", port=0)) as server:
            eve = await WireClient.connect(server.port, "eve")
            before, count = server.turns.count, 12
            for number in range(1, count + 1):
                eve.wire.send(wire.Subscribe(number, f"s = '{number}{'x' * 60_000}'"))
            eve.flush()
            assert [(await eve.next(Done)).number for _ in range(count)] == list(
                range(1, count + 1)
            )
            assert server.turns.count - before >= count // 2
            await eve.close()

    asyncio.run(main())
