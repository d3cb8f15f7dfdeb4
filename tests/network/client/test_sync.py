"""The client without asyncio, at a real broker in another thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from support.wire_client import running
from tidegate.errors import ConnectionLostError, FilterError, NetworkError
from tidegate.network.client.sync import connect_sync
from tidegate.network.server.settings import BrokerSettings


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """A broker in a thread; yields its URL."""
    url: list[str] = []
    started, ended = threading.Event(), threading.Event()

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=folder)) as server:
            url.append(f"tidegate://127.0.0.1:{server.port}")
            started.set()
            while not ended.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert started.wait(60)
    try:
        yield url[0]
    finally:
        ended.set()
        thread.join()


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
