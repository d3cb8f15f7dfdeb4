"""Retention: what is kept how long, and how much room it takes."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from support.stores import bodies, purge, put
from tidegate.errors import StoreFullError
from tidegate.network.store.retention import Retention
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction


def test_purge_keeps_what_queues_hold(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    slow, fast = store.queue("client", "slow"), store.queue("client", "fast")
    positions = put(store, slow, b"1", b"2", b"3")
    transaction = Transaction()
    for position in positions:
        transaction.enqueue(fast, position, b"")
    store.acknowledge(transaction, slow, positions[0])
    store.commit(transaction).result()
    transaction = Transaction()
    store.acknowledge(transaction, fast, positions[2])
    store.commit(transaction).result()
    purge(store, positions[2])
    assert [each.body for each in store.read_events()] == [b"2", b"3"]
    # behind the frontier, an acknowledgement makes events removable later
    transaction = Transaction()
    store.acknowledge(transaction, slow, positions[2])
    store.commit(transaction).result()
    purge(store, positions[2])
    assert store.read_events() == []
    store.close()


def test_retention_keeps_events_for_replay(tmp_path: Path) -> None:
    store = Store(tmp_path, "a", Retention(keep=timedelta(seconds=10)))
    positions = put(store, None, b"1", b"2")
    purge(store, positions[0] + 9_999_999)
    assert [each.body for each in store.read_events()] == [b"1", b"2"]
    purge(store, positions[1] + 10_000_000)
    assert store.read_events() == []
    store.close()


def test_full_store_refuses_events_but_takes_acknowledgements(tmp_path: Path) -> None:
    retention = Retention(keep=timedelta(days=1), bytes_max=200_000)
    store = Store(tmp_path, "a", retention)
    queue = store.queue("client", "desk")
    unqueued = put(store, None, *[b"x" * 1000] * 150)
    purge(store, unqueued[-1])  # above the limit, retention ends
    assert store.read_events() == []
    positions = put(store, queue, *[b"x" * 1000] * 300)
    purge(store, positions[-1])
    with pytest.raises(StoreFullError, match="limit of 200000 bytes"):
        put(store, queue, b"more")
    transaction = Transaction()
    store.acknowledge(transaction, queue, positions[-1])
    store.commit(transaction).result()
    purge(store, positions[-1])
    put(store, queue, b"again")
    assert bodies(store, queue) == [b"again"]
    store.close()


def test_positions_do_not_go_back_after_everything_was_removed(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    last = store.next_position() + 10**12  # a clock that was ahead
    transaction = Transaction()
    transaction.add_event(last, store.shape(b"x"), 0, b"", b"")
    store.commit(transaction).result()
    purge(store, last)
    assert store.read_events() == []
    store.close()
    store = Store(tmp_path, "a")
    assert store.next_position() > last
    store.close()


def test_many_events_are_removed_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.network.store.retention.PURGED_MAX", 7)
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    positions = put(store, queue, *(b"%d" % n for n in range(50)))
    purge(store, positions[-1])
    assert len(store.read_events()) == 50
    for until in (3, 30, 49):
        transaction = Transaction()
        store.acknowledge(transaction, queue, positions[until])
        store.commit(transaction).result()
        purge(store, positions[-1])
        assert [each.body for each in store.read_events()] == [
            b"%d" % n for n in range(until + 1, 50)
        ]
    store.close()
