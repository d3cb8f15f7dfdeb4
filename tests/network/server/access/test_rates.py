"""Limits on rates, with a clock of the test; and limits on events and subscriptions."""

from __future__ import annotations

import asyncio

import pytest

from support.wire_client import WireClient, bodies, running
from tidegate.network.server.access.rates import RateLimit, Rates, TokenBucket
from tidegate.network.server.settings import BrokerSettings, ClientLimits
from tidegate.network.wire.flow import Confirmed, NotPublished
from tidegate.network.wire.requests import Done, Refused, Subscribe, Update
from tidegate.routing.broker import BrokerLimits


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_up_to_a_second() -> None:
    bucket = TokenBucket(10.0, now=0.0)
    assert bucket.is_full
    bucket.take(10)
    assert 0.0 < bucket.wait_s(0.0) < 0.01
    assert bucket.wait_s(0.1) == 0.0
    bucket.take(31)
    assert bucket.wait_s(0.1) == pytest.approx(3.0)
    assert bucket.wait_s(0.0) == pytest.approx(3.0)  # a clock that goes back gives nothing
    assert bucket.wait_s(3.2) == 0.0
    assert bucket.wait_s(99.0) == 0.0
    bucket.take(11)
    assert bucket.wait_s(99.0) > 0.0


def test_identities_have_buckets_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.network.server.access.rates.BUCKETS_MAX", 2)
    clock = Clock()
    limit = RateLimit(1.0, clock)
    limit.take("ann", 5)
    assert limit.wait_s("ann") == pytest.approx(4.0)
    assert limit.wait_s("bob") == limit.wait_s("eve") == 0.0
    assert limit.wait_s("ann") == pytest.approx(4.0)  # not forgotten, unlike those that are full
    clock.now += 5
    assert limit.wait_s("ann") == 0.0
    none = RateLimit(None, clock)
    none.take("ann", 1_000)
    assert none.wait_s("ann") == 0.0


def test_names_and_values_of_limits() -> None:
    rates = Rates(ClientLimits(event_rate_max=2, request_rate_max=3), Clock(), str.upper)
    assert rates.slows
    rates.took_events("ann", 2)
    rates.took_requests("Ann", 3)
    assert rates.events_wait_s("ANN") > 0.0
    assert rates.requests_wait_s("ann") > 0.0
    rates.release()
    assert rates.events_wait_s("ann") == rates.requests_wait_s("ann") == 0.0
    assert str(rates.too_many_events()) == "too many events in a second (event_rate_max is 2)"
    assert rates.too_many_requests().limit == "request_rate_max"


def test_events_and_requests_that_come_too_fast_are_refused() -> None:
    limits = ClientLimits(event_rate_max=3, request_rate_max=2, over_rate="refuse")
    clock = Clock()

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            server.rates = Rates(limits, clock, str)
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            for number in (1, 2, 3):
                bob.send(Subscribe(number, "price > 0", f"s{number}"))
            for _ in range(2):
                await bob.next(Done)
            refused = await bob.next(Refused)
            problem = refused.problem
            assert (refused.number, problem.code) == (3, "limit")
            assert (problem.text, problem.end) == ("request_rate_max", 2)
            ann.publish({"price": 1}, {"price": 2}, {"price": 3}, {"price": 4})
            assert len(await bob.deliveries(4)) == 4  # a frame is not cut
            ann.publish({"price": 5}, {"price": 6})
            told = [await ann.next(NotPublished) for _ in range(2)]
            assert [(each.number, each.problem.text) for each in told] == [
                (5, "event_rate_max"), (6, "event_rate_max"),
            ]  # fmt: skip
            clock.now += 1.0
            ann.publish({"price": 7})
            assert bodies(await bob.deliveries(1)) == [{"price": 7}]

    asyncio.run(main())


def test_events_and_requests_that_come_too_fast_wait() -> None:
    limits = ClientLimits(event_rate_max=2, request_rate_max=2)
    clock = Clock()

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, limits=limits)) as server:
            server.rates = Rates(limits, clock, str)
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            for number in range(1, 5):
                bob.send(Subscribe(number, "price > 0", f"s{number}"))
            done = [(await bob.next(Done)).number for _ in range(2)]
            ann.publish({"price": 1}, {"price": 2})
            ann.publish({"price": 3})
            assert len(await bob.deliveries(2)) == 2
            # others are served meanwhile
            eve = await WireClient.connect(server.port, "eve")
            await eve.request(Subscribe, "price > 0", "s")
            assert len(server.broker.named.handles) == 3
            eve.publish({"price": 4})
            assert bodies(await bob.deliveries(1)) == [{"price": 4}]
            clock.now += 10.0
            done += [(await bob.next(Done)).number for _ in range(2)]
            assert done == [1, 2, 3, 4]
            assert bodies(await bob.deliveries(1)) == [{"price": 3}]

    asyncio.run(main())


def test_events_that_are_too_large_are_refused_alone(tmp_path: object) -> None:
    limits = ClientLimits(event_bytes_max=20)

    async def main() -> None:
        settings = BrokerSettings("a", port=0, limits=limits, data=tmp_path)  # type: ignore[arg-type]
        async with running(settings) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            await bob.request(Subscribe, "text is not null", "s")
            large, small = {"text": "x" * 30}, {"text": "y"}
            for confirm in (False, True):
                ann.publish(small, large, large, small, large, confirm=confirm)
                assert bodies(await bob.deliveries(2)) == [small, small]
                told = [await ann.next(NotPublished) for _ in range(3)]
                assert [each.number % 5 for each in told] == [2, 3, 0]
                assert told[0].problem.text == "event_bytes_max"
            while (await ann.next(Confirmed)).number < 10:
                pass
            assert server.counters.refused == 6

    asyncio.run(main())


def test_subscriptions_are_limited_for_one_client_and_for_all() -> None:
    limits = BrokerLimits(per_client_max=2, subscriptions_max=3)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, broker_limits=limits)) as server:
            ann = await WireClient.connect(server.port, "ann")
            bob = await WireClient.connect(server.port, "bob")
            for name in ("s", "t"):
                done = await ann.request(Subscribe, "price > 0", name)
            refused = await ann.request(Subscribe, "price > 0", "u")
            assert (refused.problem.text, refused.problem.end) == ("per_client_max", 2)
            await bob.request(Subscribe, "price > 0", "s")
            refused = await bob.request(Subscribe, "price > 0", "t")
            assert (refused.problem.text, refused.problem.end) == ("subscriptions_max", 3)
            answer = await ann.request(Update, done.handles[0], 1, {}, "price > 1")
            assert isinstance(answer, Done)  # an update adds none

    asyncio.run(main())
