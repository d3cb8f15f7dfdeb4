"""Writes the changes of a transaction to the tables of a store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Sequence
from itertools import chain

from tidegate.network.store.transaction import Transaction

# The module sqlite3 lets other threads run at each step of a statement, and waits for its turn
# again after it. A statement with many rows is one step: five times as fast as one row each.
_ROWS_PER_STATEMENT = (100, 10, 1)


QueueLengths = dict[int, int]
"""By queue: how many rows it has gained; negative for lost ones."""


def apply(connection: sqlite3.Connection, transaction: Transaction) -> QueueLengths:
    """Apply a transaction, and return how the lengths of queues change; the caller commits."""
    lengths: QueueLengths = {}
    run, run_many = connection.execute, connection.executemany
    run_many("DELETE FROM state WHERE kind = ? AND owner = ?", transaction.removed_owners)
    run_many(
        "DELETE FROM state WHERE kind = ? AND owner = ? AND key = ?", transaction.removed_state()
    )
    for queue in transaction.removed_queues:
        run("DELETE FROM queue_rows WHERE queue = ?", (queue,))
        run("DELETE FROM queues WHERE number = ?", (queue,))
    for queue, position in transaction.acknowledged.items():
        removed = run("DELETE FROM queue_rows WHERE queue = ? AND position <= ?", (queue, position))
        lengths[queue] = -removed.rowcount
    run_many(
        "UPDATE queues SET missed = ? WHERE number = ?",
        [(count, queue) for queue, count in transaction.missed.items()],
    )
    run_many("INSERT OR IGNORE INTO queues VALUES (?, ?, ?, 0)", transaction.queues)
    _insert(connection, "shapes", transaction.shapes)
    _insert(connection, "events", transaction.events)
    _insert(connection, "queue_rows", transaction.queue_rows)
    _insert(connection, "positions", transaction.position_rows())
    _insert(connection, "state", transaction.state_rows())
    for row in transaction.queue_rows:
        lengths[row.queue] = lengths.get(row.queue, 0) + 1
    if transaction.events:
        last_position = transaction.events[-1].position
        run("UPDATE meta SET value = max(value, ?) WHERE key = 'position'", (last_position,))
    for first, last in transaction.purged:
        _purge(connection, first, last)
    _set_aside(connection, transaction.rejected)
    return lengths


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Sequence[object]]) -> None:
    if not rows:
        return
    one = f"({', '.join('?' * len(rows[0]))})"
    done = 0
    for size in _ROWS_PER_STATEMENT:
        statement = f"INSERT OR REPLACE INTO {table} VALUES {', '.join([one] * size)}"
        while len(rows) - done >= size:
            values = tuple(chain.from_iterable(rows[done : done + size]))
            connection.execute(statement, values)
            done += size


def _purge(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Remove the events of a range of positions that are in no queue."""
    # CROSS JOIN keeps the order: a range of the primary key for each queue.
    connection.execute(
        "DELETE FROM events WHERE position BETWEEN ?1 AND ?2 AND position NOT IN ("
        "SELECT r.position FROM queues q CROSS JOIN queue_rows r "
        "ON r.queue = q.number AND r.position BETWEEN ?1 AND ?2)",
        (first, last),
    )
    connection.execute("PRAGMA incremental_vacuum(1000)").fetchall()


_KEYS = {
    "events": ("position",),
    "queue_rows": ("queue", "position"),
    "positions": ("kind", "name"),
    "state": ("kind", "owner", "key"),
    "shapes": ("number",),
}


def _set_aside(
    connection: sqlite3.Connection, rejected: Iterable[tuple[str, str, Sequence[object]]]
) -> None:
    """Move damaged rows to the table `rejected`, where an operator can look at them."""
    now_us = time.time_ns() // 1000
    for table, reason, columns in rejected:
        keys = _KEYS[table]
        condition = " AND ".join(f"{key} IS ?" for key in keys)
        connection.execute(f"DELETE FROM {table} WHERE {condition}", tuple(columns[: len(keys)]))
        content = repr(tuple(columns)).encode()
        connection.execute(
            "INSERT INTO rejected VALUES (NULL, ?, ?, ?)",
            (now_us, f"{table}: {reason}", content),
        )
