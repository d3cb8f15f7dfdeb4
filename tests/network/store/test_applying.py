"""Applying a transaction removes first, and reports how queues change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.network.store.applying import apply
from tidegate.network.store.schema import open_writer
from tidegate.network.store.transaction import Transaction


def test_lengths_of_queues(tmp_path: Path) -> None:
    connection = open_writer(tmp_path)
    transaction = Transaction()
    for position in range(1, 257):  # statements with 100, 10 and 1 rows
        transaction.add_event(position, 1, 1, b"", b"%d" % position)
        transaction.enqueue(1 + position % 2, position, b"")
    assert apply(connection, transaction) == {1: 128, 2: 128}
    assert connection.execute("SELECT count(*), sum(body) FROM events").fetchone() == (256, 32896)
    transaction = Transaction()
    transaction.acknowledge(1, 10)
    transaction.enqueue(1, 300, b"")
    assert apply(connection, transaction) == {1: -4}
    connection.close()


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 111])
def test_any_number_of_rows(tmp_path: Path, count: int) -> None:
    connection = open_writer(tmp_path)
    transaction = Transaction()
    for number in range(count):
        transaction.put_state("k", "o", b"%d" % number, b"v")
    apply(connection, transaction)
    assert connection.execute("SELECT count(*) FROM state").fetchone() == (count,)
    connection.close()
