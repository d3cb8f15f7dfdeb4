"""Refusals are kept with the numbers that they have taken."""

from __future__ import annotations

from tidegate.network.server.refusals import REFUSED, Refusals
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.problems import Problem

PROBLEM = Problem("routing", "not advertised")


def state_of(transaction: Transaction) -> list[tuple[str, str, bytes, bytes]]:
    return [(*key, value) for key, value in transaction.state.items() if value is not None]


def test_refusals_come_back_from_the_store() -> None:
    refusals, transaction = Refusals(), Transaction()
    refusals.add("bob", 1, 7, PROBLEM, transaction)
    refusals.add("bob", 2, 8, PROBLEM, transaction)
    restored = Refusals()
    restored.restore([*state_of(transaction), ("begun", "", b"", b"1")])
    assert list(restored.among("bob", 1, 6, 3)) == [(7, PROBLEM)]
    assert list(restored.among("bob", 2, 8, 1)) == [(8, PROBLEM)]
    assert list(restored.among("ann", 1, 6, 3)) == []


def test_the_oldest_are_forgotten_also_by_the_store() -> None:
    refusals, transaction = Refusals(refused_max=2), Transaction()
    for number in (1, 2, 3):
        refusals.add("bob", 1, number, PROBLEM, transaction)
    assert [number for number, _ in refusals.among("bob", 1, 1, 3)] == [2, 3]
    assert len(state_of(transaction)) == len(refusals) == 2


def test_a_refusal_can_be_taken_back() -> None:
    refusals, transaction = Refusals(), Transaction()
    refusals.add("bob", 1, 7, PROBLEM, transaction)
    refusals.take_back("bob", 1, 7, transaction)
    refusals.take_back("bob", 1, 8, transaction)
    assert not len(refusals)
    assert state_of(transaction) == []


def test_damaged_state_is_left_out() -> None:
    refusals = Refusals()
    refusals.restore([(REFUSED, "bob", b"\xc1", b""), (REFUSED, "bob", b"\x92\x01\x02", b"\xc1")])
    assert not len(refusals)
