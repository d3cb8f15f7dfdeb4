"""The client without asyncio, at a real broker in another thread."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from support.broker_thread import broker
from tidegate.errors import ConnectionLostError, FilterError, NetworkError
from tidegate.language.events import Event
from tidegate.network.client.sync import connect_sync
from tidegate.network.wire.event_block import encode_event


def test_everything_waits_until_it_is_done(tmp_path: Path) -> None:
    with broker(tmp_path) as url, connect_sync(url, identity="desk", durable=True) as client:
        assert (client.identity, client.broker, client.missed) == ("desk", "a", 0)
        subscription = client.subscribe("x < :limit", name="cheap", limit=1)
        subscription.update(limit=10)
        assert (subscription.version, dict(subscription.parameters)) == (2, {"limit": 10})
        with connect_sync(url) as publisher:
            publisher.publish({"x": 5}, confirm=True)
            publisher.publish_many([{"x": 50}, {"x": 7}], confirm=True)
        assert [event["x"] for event in islice(subscription, 2)] == [5, 7]
        with pytest.raises(TimeoutError):
            subscription.next(0.01)
        with pytest.raises(FilterError):
            client.subscribe("x <", name="bad")
        client.advertise("x > 0")
        client.unadvertise("x > 0")
        assert list(client.subscriptions) == ["cheap"]
        subscription.change("x > 100")
        client.unsubscribe("x > 0")
        assert subscription.next() is None


def test_sequences_and_pauses(tmp_path: Path) -> None:
    with broker(tmp_path) as url, connect_sync(url) as client:
        pattern = client.subscribe_pattern("x = 1 then x = 2")
        subscription = client.subscribe("x > 1")
        client.suspend()
        client.publish({"x": 1})
        client.publish({"x": 2})
        client.resume()
        event = subscription.next(30)
        assert event is not None
        subscription.ack(event)
        sequence = pattern.next(30)
        assert sequence is not None
        assert [each["x"] for each in sequence] == [1, 2]
        pattern.cancel()
        subscription.cancel()
        assert (pattern.next(), subscription.next()) == (None, None)


def test_a_closed_client_says_so(tmp_path: Path) -> None:
    with broker(tmp_path) as url:
        client = connect_sync(url)
        client.close()
        client.close()
        with pytest.raises(NetworkError, match="closed"):
            client.publish({"x": 1})


def test_a_broker_that_is_not_there() -> None:
    with pytest.raises(ConnectionLostError, match="refused"):
        connect_sync("tidegate://127.0.0.1:9", timeout=0.2)


def test_many_at_once_and_acknowledgements(tmp_path: Path) -> None:
    with broker(tmp_path) as url:
        with connect_sync(url, identity="desk", durable=True, ack="manual") as client:
            assert client.queued == 0
            subscription = client.subscribe("true", name="all")
            with connect_sync(url, identity="pub", epoch=7) as publisher:
                publisher.publish({"n": 0})
                publisher.publish_many([{"n": n} for n in (1, 2, 3)], confirm=True)
            came = [*subscription.next_many(2, 30)]
            while len(came) < 4:
                came += subscription.next_many(2, 30)
            assert [(each["n"], each.is_confirmed) for each in came] == [
                (0, False), (1, True), (2, True), (3, True),
            ]  # fmt: skip
            assert client.received == came[-1].position
            subscription.ack_many(came[:2])
            with pytest.raises(TimeoutError):
                subscription.next_many(2, 0)
        with connect_sync(url, identity="desk", durable=True) as client:
            assert client.queued == came[-1].position
            again = client.subscriptions["all"]
            assert [each["n"] for each in again.next_many(1, 30)] == [2]
            assert [each["n"] for each in again.next_many(9, 30)] == [3]
        with connect_sync(url, identity="desk", durable=True, ack="manual") as client:
            assert client.queued == came[-1].position


def test_numbers_of_ones_own(tmp_path: Path) -> None:
    with broker(tmp_path) as url, connect_sync(url) as reader:
        everything = reader.subscribe("true")
        events = [encode_event(Event({"n": n})) for n in range(4)]
        with connect_sync(url, identity="pub", epoch=7) as publisher:
            publisher.publish_numbered(events[:2], 1_000)
            assert publisher.last_published == 1_001
        for _ in range(2):  # as after a crash
            with connect_sync(url, identity="pub", epoch=7) as publisher:
                publisher.publish_numbered(events, 1_000)
                publisher.publish_numbered(events[:1], 5_000)
                assert publisher.last_published == 5_000
        with pytest.raises(NetworkError, match="needs an epoch"):
            reader.publish_numbered(events, 1)
        assert [everything.next(30)["n"] for _ in range(5)] == [0, 1, 2, 3, 0]  # type: ignore[index]
        with pytest.raises(TimeoutError):
            everything.next(0.1)
