"""The store of a broker: what is committed stays, in order, until it is acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.stores import bodies, put
from tidegate.errors import StoreError
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction


def test_everything_survives_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    positions = put(store, queue, b"1", b"2", detail=b"d")
    transaction = Transaction()
    transaction.set_position("publisher", "p", 5, 9)
    transaction.put_state("subscription", "desk", b"k", b"v")
    store.set_missed(transaction, queue, 3)
    store.commit(transaction).result()
    store.close()

    again = Store(tmp_path, "a")
    assert again.queue("client", "desk") == queue
    read = again.read_queue(queue)
    assert [(each.event.position, each.event.body, each.detail) for each in read.events] == [
        (positions[0], b"1", b"d"),
        (positions[1], b"2", b"d"),
    ]
    assert again.description(read.events[0].event.shape) == b"x"
    assert again.shape(b"x") == read.events[0].event.shape
    assert again.positions("publisher") == {"p": (5, 9)}
    assert list(again.state()) == [("subscription", "desk", b"k", b"v")]
    assert (again.length(queue), again.missed(queue)) == (2, 3)
    assert again.next_position() > positions[1]
    again.close()


def test_acknowledged_events_leave_their_queue(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue, other = store.queue("client", "one"), store.queue("link", "one")
    assert queue != other
    positions = put(store, queue, b"1", b"2", b"3")
    transaction = Transaction()
    transaction.enqueue(other, positions[0], b"")
    store.acknowledge(transaction, queue, positions[1])
    store.commit(transaction).result()
    assert bodies(store, queue) == [b"3"]
    assert bodies(store, other) == [b"1"]
    assert (store.length(queue), store.length(other)) == (1, 1)
    store.close()


def test_queue_is_read_in_parts(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    positions = put(store, queue, *(b"%d" % n for n in range(250)))
    assert bodies(store, queue, limit=2) == [b"0", b"1"]
    assert bodies(store, queue, after=positions[247]) == [b"248", b"249"]
    assert len(store.read_queue(queue, until=positions[99]).events) == 100
    assert [each.body for each in store.read_events(positions[248] - 1)] == [b"248", b"249"]
    store.close()


def test_removed_queue_and_state_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    put(store, queue, b"1")
    transaction = Transaction()
    transaction.put_state("k", "o", b"1", b"a")
    transaction.put_state("k", "o", b"2", b"b")
    transaction.put_state("k", "other", b"1", b"c")
    store.commit(transaction).result()
    transaction = Transaction()
    transaction.put_state("k", "o", b"3", b"forgotten")
    transaction.remove_owner("k", "o")
    transaction.put_state("k", "o", b"2", b"new")
    transaction.remove_state("k", "other", b"1")
    store.remove_queue(transaction, "client", "desk")
    store.commit(transaction).result()
    store.close()
    store = Store(tmp_path, "a")
    assert list(store.state()) == [("k", "o", b"2", b"new")]
    assert store.queue_names("client") == []
    assert store.queue("client", "desk") != queue or store.length(queue) == 0
    store.close()


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"Not a directory|File exists"):
        Store(tmp_path / "file" / "a", "a")


def test_queue_that_is_too_long_loses_its_oldest(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    queue = store.queue("client", "desk")
    put(store, queue, *(b"%d" % n for n in range(10)))
    transaction = Transaction()
    assert store.shorten(transaction, queue, 8) == 2
    store.commit(transaction).result()
    assert store.shorten(Transaction(), queue, 8) == 0
    assert bodies(store, queue, limit=1) == [b"2"]
    store.close()
    store = Store(tmp_path, "a")
    assert (store.missed(queue), store.length(queue)) == (2, 8)
    store.close()
