"""Stores for tests: filled ones, and what their queues deliver."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from tidegate.network.store.schema import DATABASE
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction

EVENTS = 400


def put(store: Store, queue: int | None, *bodies: bytes, detail: bytes = b"") -> list[int]:
    transaction = Transaction()
    positions = []
    for body in bodies:
        position = store.next_position()
        transaction.add_event(position, store.shape(b"x"), 7, b"h", body)
        if queue is not None:
            transaction.enqueue(queue, position, detail)
        positions.append(position)
    store.commit(transaction).result()
    return positions


def bodies(store: Store, queue: int, after: int = 0, limit: int = 1000) -> list[bytes]:
    return [each.event.body for each in store.read_queue(queue, after, limit=limit).events]


def purge(store: Store, now_us: int) -> None:
    while (future := store.purge(now_us)) is not None:
        future.result()


def body(number: int) -> bytes:
    """The values of the event with a number, by which it is recognized."""
    return b"%06d" % number + random.Random(number).randbytes(60)


def fill(folder: Path) -> Store:
    """A store with events in two queues."""
    store = Store(folder, "a")
    for start in range(0, EVENTS, 20):
        transaction = Transaction()
        for number in range(start, start + 20):
            position = store.next_position()
            transaction.add_event(position, store.shape(b"shape"), number, b"header", body(number))
            for name in ("one", "two"):
                transaction.enqueue(store.queue("client", name), position, b"%06d" % number)
        transaction.set_position("publisher", "p", 1, start)
        transaction.put_state("kind", "owner", b"%d" % start, b"value" * 30)
        store.commit(transaction).result()
    return store


def delivered(store: Store, name: str) -> list[int]:
    """The numbers of what a queue delivers, each compared with what was stored."""
    numbers, after = [], 0
    while (read := store.read_queue(store.queue("client", name), after)).last:
        after = read.last
        for event, detail in read.events:
            assert (event.body, event.time_us) == (body(int(detail)), int(detail))
            numbers.append(int(detail))
    return numbers


def write_sql(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    connection.execute(statement)
    connection.commit()
    connection.close()
