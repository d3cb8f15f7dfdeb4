"""Group commit: transactions that wait together are written together, and fail alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.errors import StoreError
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction


def test_row_that_cannot_be_written_fails_alone(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    good, bad = Transaction(), Transaction()
    good.put_state("k", "o", b"1", b"v")
    bad.set_position("publisher", "p", 0, 1)
    bad.positions["publisher", "p"] = (0, 2**62)
    bad.missed[2**70] = 1
    bad_future, good_future = store.commit(bad), store.commit(good)
    with pytest.raises(StoreError, match="cannot write a row"):
        bad_future.result()
    good_future.result()
    assert store.positions("publisher") == {}
    assert store.failure is None
    store.close()


def test_transactions_that_wait_share_a_commit(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    before = store.commits
    futures = []
    for number in range(200):
        transaction = Transaction()
        transaction.set_position("publisher", "p", 1, number)
        futures.append(store.commit(transaction))
    for future in futures:
        future.result()
    assert 0 < store.commits - before < 200
    assert store.positions("publisher") == {"p": (1, 199)}
    store.close()


def test_nothing_is_written_after_a_failure(tmp_path: Path) -> None:
    """What the disk has is not known then, so nothing more is confirmed."""
    store = Store(tmp_path, "a")
    store._connection.execute("DROP TABLE positions")
    transaction = Transaction()
    transaction.set_position("publisher", "p", 1, 1)
    with pytest.raises(StoreError, match="cannot be written: no such table"):
        store.commit(transaction).result()
    harmless = Transaction()
    harmless.put_state("k", "o", b"1", b"v")
    with pytest.raises(StoreError, match="cannot be written: no such table"):
        store.commit(harmless).result()
    assert store.failure is not None
    store.close()


def test_waiting_for_a_transaction_can_be_given_up(tmp_path: Path) -> None:
    """It is written all the same."""
    store = Store(tmp_path, "a")
    transaction = Transaction()
    transaction.set_position("publisher", "p", 1, 1)
    future = store.commit(transaction)
    assert not future.cancel()
    future.result()
    assert store.positions("publisher") == {"p": (1, 1)}
    store.close()


def test_what_waits_is_written_before_the_end(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    futures = []
    for number in range(2_500):  # more than one group
        transaction = Transaction()
        transaction.set_position("publisher", "p", 1, number)
        futures.append(store.commit(transaction))
    store.close()
    assert all(each.done() and each.exception() is None for each in futures)
