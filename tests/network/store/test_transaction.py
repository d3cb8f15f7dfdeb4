"""A transaction collects changes; later ones of the same thing win."""

from __future__ import annotations

from tidegate.network.store.transaction import Transaction


def test_empty_transaction_is_false() -> None:
    transaction = Transaction()
    assert not transaction
    assert not transaction.adds_events
    transaction.acknowledge(1, 5)
    assert transaction
    assert not transaction.adds_events
    transaction.add_event(1, 1, 1, b"", b"")
    assert transaction.adds_events


def test_last_change_wins() -> None:
    transaction = Transaction()
    transaction.acknowledge(1, 5)
    transaction.acknowledge(1, 3)
    assert transaction.acknowledged == {1: 5}
    transaction.set_position("p", "a", 1, 1)
    transaction.set_position("p", "a", 1, 2)
    assert [(row.epoch, row.number) for row in transaction.position_rows()] == [(1, 2)]
    transaction.put_state("k", "o", b"1", b"v")
    transaction.remove_state("k", "o", b"1")
    assert transaction.state_rows() == []
    assert transaction.removed_state() == [("k", "o", b"1")]
    transaction.remove_owner("k", "o")
    assert transaction.removed_state() == []
