"""Deliveries wait for credit; a client that takes none gets its slow policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tidegate.language.events import Event
from tidegate.network.server.deliveries.delivery_queue import DeliveryQueue
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.handshake import Hello
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.messages import Publication, Stamp


def deliver(*numbers: int, key: int = 1) -> Deliver:
    publications = [
        Publication(Event({"k": n % key, "n": n}), Stamp("a", 1, n + 1), "p") for n in numbers
    ]
    count = len(numbers)
    return Deliver(
        PublicationBlock.of(publications),
        np.zeros(count, np.int64),
        np.ones(count, np.int64),
        np.array(numbers, np.int64),
        np.zeros(count, np.int64),
    )


def sent_by(queue: DeliveryQueue) -> list[int]:
    found: list[int] = []

    def send(batch: Any) -> None:
        assert [each["n"] for each in batch.publications.events.events()] == list(batch.handles)
        found.extend(batch.handles.tolist())

    queue.send(send)
    return found


def queue_with(events: int = 0, bytes: int = 0, **fields: Any) -> DeliveryQueue:
    queue = DeliveryQueue(5)
    queue.connected(Hello("ann", 1, credit_events=events, credit_bytes=bytes, **fields))
    return queue


def test_credit_in_events() -> None:
    queue = queue_with(2, 1000)
    queue.add(deliver(0, 1, 2))
    queue.add(deliver(3))
    assert sent_by(queue) == [0, 1]
    assert not queue.has_credit
    queue.grant(3, 1000)
    assert sent_by(queue) == [2]
    queue.grant(2, 900)  # totals never fall
    assert sent_by(queue) == []
    queue.grant(10, 1000)
    assert sent_by(queue) == [3]
    assert len(queue) == 0


def test_credit_in_bytes_may_be_overshot_by_one_event() -> None:
    size = int(deliver(0).publications.events.sizes[0])
    queue = queue_with(100, size + 1)
    queue.add(deliver(0, 1, 2))
    assert sent_by(queue) == [0, 1]
    queue.grant(100, 2 * size)
    assert sent_by(queue) == []
    queue.grant(100, 2 * size + 1)
    assert sent_by(queue) == [2]


def test_nothing_is_sent_without_a_connection() -> None:
    queue = queue_with(100, 1000)
    queue.disconnected()
    queue.add(deliver(0))
    assert sent_by(queue) == []
    queue.connected(Hello("ann", 1, credit_events=1, credit_bytes=100))
    assert sent_by(queue) == [0]


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("drop-oldest", [3, 4, 5, 6, 7]),
        ("drop-newest", [0, 1, 2, 3, 4]),
        ("block", [3, 4, 5, 6, 7]),
    ],
)
def test_policy_when_too_many_wait(policy: str, kept: list[int]) -> None:
    queue = queue_with(slow_policy=policy)
    queue.add(deliver(0, 1))
    assert queue.shorten() == 0
    queue.add(deliver(2, 3, 4))
    queue.add(deliver(5, 6, 7))
    assert queue.shorten() == 3
    assert queue.missed == 3
    queue.grant(100, 10_000)
    assert sent_by(queue) == kept


def test_only_the_latest_of_each_key_is_kept() -> None:
    queue = queue_with(slow_policy="latest", slow_key="k")
    queue.add(deliver(*range(7), key=3))
    queue.add(deliver(7, key=3))
    assert queue.shorten() == 5
    queue.grant(100, 10_000)
    assert sent_by(queue) == [5, 6, 7]


def test_latest_of_too_many_keys_drops_the_oldest() -> None:
    queue = queue_with(slow_policy="latest", slow_key="k")
    queue.add(deliver(*range(20), key=8))
    assert queue.shorten() == 15
    queue.grant(100, 10_000)
    assert sent_by(queue) == [15, 16, 17, 18, 19]


def test_client_may_ask_to_be_disconnected() -> None:
    queue = queue_with(slow_policy="disconnect", queue_max=2)
    queue.add(deliver(0, 1))
    assert queue.shorten() == 0
    assert not queue.must_disconnect
    queue.add(deliver(2))
    assert queue.shorten() == 1  # memory has a bound, also while the client is away
    assert (len(queue), queue.missed, queue.missed_total) == (2, 1, 1)
    assert queue.must_disconnect


def test_blocking_client_keeps_what_came_before_publishers_could_stop() -> None:
    queue = queue_with(slow_policy="block", queue_max=2)
    queue.overrun_max = 3
    queue.add(deliver(*range(5)))
    assert queue.shorten() == 0
    queue.add(deliver(5))
    assert queue.shorten() == 1
    queue.is_patient = False
    assert queue.shorten() == 3
    queue.grant(100, 10_000)
    assert sent_by(queue) == [4, 5]
