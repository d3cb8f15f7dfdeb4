"""The queue of a durable client at a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.broker_thread import broker
from tidegate.errors import ConnectorError
from tidegate.network.client.sync import SyncClient, connect_sync
from tidegate.spark.brokers import queue as queue_module
from tidegate.spark.brokers.options import BrokerOptions
from tidegate.spark.brokers.queue import BrokerQueue


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with broker(tmp_path) as url:
        yield url


@pytest.fixture
def publisher(url: str) -> Iterator[SyncClient]:
    with connect_sync(url) as client:
        yield client


def opened(url: str, **options: str) -> BrokerQueue:
    return BrokerQueue(BrokerOptions.of({"broker": url, "identity": "spark", **options}))


def publish(publisher: SyncClient, numbers: range) -> None:
    publisher.publish_many([{"n": n} for n in numbers], confirm=True)


def end_of(queue: BrokerQueue, start: int, most: int) -> int:
    """The end of the next micro-batch, once there is anything to read."""
    while True:
        end = queue.end_after(start, most)
        if end > start:
            return end


def numbers(queue: BrokerQueue, start: int, end: int) -> list[Any]:
    return [each["n"] for each in queue.events(start, end)]


def test_a_range_of_positions_is_the_same_after_a_restart(url: str, publisher: SyncClient) -> None:
    queue = opened(url, filter="n < :limit", params='{"limit": 9}')
    assert queue.queued == 0
    assert queue.end_after(0, None) == 0
    publish(publisher, range(12))
    first = end_of(queue, 0, 3)
    assert numbers(queue, 0, first) == [0, 1, 2]
    second = queue.end_after(first, 4)  # Spark has done with the first three
    assert numbers(queue, first, second) == [3, 4, 5, 6]
    queue.close()
    queue = opened(url, filter="n < :limit", params='{"limit": 9}')
    assert queue.queued > second
    assert numbers(queue, first, second) == [3, 4, 5, 6]
    publish(publisher, range(2))
    last = queue.end_after(second, None, queue.queued)
    assert last == queue.queued  # of what came later nothing
    assert numbers(queue, second, last) == [7, 8]
    assert end_of(queue, last, 9) > last
    queue.close()


def test_unconfirmed_events_are_left_out(
    url: str, publisher: SyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    queue = opened(url)
    publisher.publish_many([{"n": -1}, {"n": -2}])
    publish(publisher, range(2))
    end = end_of(queue, 0, 9)
    assert numbers(queue, 0, end) == [0, 1]
    assert "published without a confirmation are left out" in caplog.text
    queue.close()


def test_what_is_not_there_any_more(url: str, publisher: SyncClient) -> None:
    queue = opened(url)
    publish(publisher, range(3))
    end = end_of(queue, 0, 9)
    queue.acknowledge(end)
    queue.close()
    queue = opened(url)
    with pytest.raises(ConnectorError, match=f"not have the events of 'spark' up to .*{end}"):
        queue.events(0, end)
    queue.close()
    queue = opened(url, failOnDataLoss="false")
    assert queue.events(0, end) == []
    queue.close()


def test_a_batch_ends_by_its_size(
    url: str, publisher: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "BATCH_BYTES_MAX", 5)
    queue = opened(url)
    publish(publisher, range(6))  # of two bytes each
    end = end_of(queue, 0, 9)
    assert numbers(queue, 0, end) == [0, 1, 2]
    queue.close()


def test_a_stream_needs_an_identity(url: str) -> None:
    with pytest.raises(ConnectorError, match="option 'identity' is missing"):
        BrokerQueue(BrokerOptions.of({"broker": url}))
