"""The store of a broker: what survives its end.

Rules.

(1) A transaction is on disk when its future is done, as a whole, and not otherwise.
(2) Only one process has a store, and one thread of it calls the methods here; another thread of the
    store writes (see `writer`).
(3) What is damaged is never returned. It is set aside in the table `rejected`, and counted.

Theory of operation. A broker collects what a turn makes durable in a `Transaction`, commits it, and
sends nothing of that turn before the future is done. Events are stored once; queues of durable
clients and of links refer to them by position, until they are acknowledged. After a start the
broker reads its state and the positions, and what its queues still hold. Where to look:

    what the tables are          schema.py, rows.py
    what a transaction changes   transaction.py, applying.py
    the thread that commits      writer.py, commit_mark.py
    reading, damaged rows        reading.py
    how long events are kept     retention.py
    what a damaged file has left repair.py
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

from tidegate.errors import StoreDamagedError, StoreError, StoreFullError
from tidegate.network.store.commit_mark import CommitMark
from tidegate.network.store.folder_lock import FolderLock
from tidegate.network.store.reading import (
    DamagedRow,
    QueueRead,
    R,
    read_events,
    read_queue,
    read_table,
)
from tidegate.network.store.retention import Purger, Retention
from tidegate.network.store.rows import EventRow, PositionRow, ShapeRow, StateRow, shape_checksum
from tidegate.network.store.schema import check_pages, open_reader, open_writer, store_error
from tidegate.network.store.transaction import Transaction
from tidegate.network.store.writer import GroupWriter

_log = logging.getLogger(__name__)
T = TypeVar("T")

LAST_POSITION = 2**63 - 1


class Store:
    """The store in one folder, open.

    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()), "a")
    >>> desk, position = store.queue("client", "desk-7"), store.next_position()
    >>> transaction = Transaction()
    >>> transaction.add_event(position, store.shape(b"price"), 0, b"header", b"9.5")
    >>> transaction.enqueue(desk, position, b"cheap")
    >>> store.commit(transaction).result()
    >>> [(each.event.body, each.detail) for each in store.read_queue(desk).events]
    [(b'9.5', b'cheap')]
    >>> store.close()
    """

    def __init__(self, folder: Path, broker: str, retention: Retention | None = None) -> None:
        """Open the store of a broker, or make it; raises StoreError if that is impossible."""
        self.folder = folder
        self.retention = retention or Retention()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror or error}") from None
        with ExitStack() as opened:
            lock = FolderLock(folder)
            opened.callback(lock.release)
            self._open(broker, opened)
            self._close_files = opened.pop_all().close

    def _open(self, broker: str, opened: ExitStack) -> None:
        folder = self.folder
        self._mark = CommitMark(folder)
        opened.callback(self._mark.close)
        self._connection = open_writer(folder)
        opened.callback(self._connection.close)
        check_pages(self._connection, folder)
        meta = dict(self._connection.execute("SELECT key, value FROM meta").fetchall())
        _check_commits(meta["commits"], self._mark.read(), folder)
        self._claim(broker, meta.get("broker"))
        self._reader = open_reader(folder)
        opened.callback(self._reader.close)
        self._last_position: int = meta["position"]
        self.damaged = 0
        """Rows that were set aside since the start."""
        damaged: list[DamagedRow] = []
        self._shapes = {
            row.number: row.description
            for row in read_table(self._reader, "shapes", ShapeRow, damaged)
        }
        self._shape_numbers = {text: number for number, text in self._shapes.items()}
        queues = self._reader.execute("SELECT number, kind, name, missed FROM queues").fetchall()
        self._queues = {(kind, name): number for number, kind, name, _ in queues}
        self._missed: dict[int, int] = {number: missed for number, _, _, missed in queues}
        self._last_number = max([*self._shapes, *self._missed], default=0)
        self._unsaved_shapes: dict[int, ShapeRow] = {}
        self._unsaved_queues: dict[int, tuple[int, str, str]] = {}
        heads = self._reader.execute(
            "SELECT queue, count(*), min(position) FROM queue_rows GROUP BY queue"
        ).fetchall()
        lengths = {queue: length for queue, length, _ in heads}
        self._acknowledged = {queue: first - 1 for queue, _, first in heads}
        self._purger = Purger(self._reader, self.retention)
        self.is_full = False
        """Whether events are refused because the store takes all the room that it may."""
        self._writer = GroupWriter(self._connection, self._mark, meta["commits"], lengths)
        self._set_aside(damaged)

    def _claim(self, broker: str, owner: str | None) -> None:
        if owner is None:
            self._connection.execute("INSERT INTO meta VALUES ('broker', ?)", (broker,))
        elif owner != broker:
            raise StoreError(
                f"{self.folder} is the store of the broker {owner!r}, not of {broker!r}; name "
                "another folder"
            )

    def close(self) -> None:
        """Write what waits and close the files."""
        self._writer.close()
        self._close_files()

    # -- writing ------------------------------------------------------------------------------

    def next_position(self) -> int:
        """The position of an event that is stored now."""
        self._last_position = max(self._last_position + 1, time.time_ns() // 1000)
        return self._last_position

    @property
    def last_position(self) -> int:
        """The position of the last event that was stored."""
        return self._last_position

    def shape(self, description: bytes) -> int:
        """The number of a shape; a new one is stored with the next transaction."""
        number = self._shape_numbers.get(description)
        if number is None:
            number = self._next_number()
            self._shapes[number], self._shape_numbers[description] = description, number
            checksum = shape_checksum(number, description)
            self._unsaved_shapes[number] = ShapeRow(number, description, checksum)
        return number

    def queue(self, kind: str, name: str) -> int:
        """The number of a queue; a new one is stored with the next transaction."""
        number: int | None = self._queues.get((kind, name))
        if number is None:
            number = self._queues[kind, name] = self._next_number()
            self._unsaved_queues[number] = (number, kind, name)
        return number

    def _next_number(self) -> int:
        self._last_number += 1
        return self._last_number

    def remove_queue(self, transaction: Transaction, kind: str, name: str) -> None:
        """Remove a queue with all that it holds."""
        number = self._queues.pop((kind, name), None)
        if number is not None:
            self._unsaved_queues.pop(number, None)
            self._purger.acknowledged(0, LAST_POSITION)
            transaction.removed_queues.append(number)

    def acknowledge(self, transaction: Transaction, queue: int, position: int) -> None:
        """Remove all rows of a queue up to a position."""
        before = self._acknowledged.get(queue, 0)
        if position > before:
            transaction.acknowledge(queue, position)
            self._purger.acknowledged(before, position)
            self._acknowledged[queue] = position

    def commit(self, transaction: Transaction) -> Future[None]:
        """Write a transaction. The future has a StoreFullError if there is no room for it."""
        if self.is_full and transaction.adds_events:
            full: Future[None] = Future()
            full.set_exception(
                StoreFullError(
                    f"the store has reached its limit of {self.retention.bytes_max} bytes; clients "
                    "or neighbours that are away have not acknowledged their events"
                )
            )
            return full
        shapes, queues = list(self._unsaved_shapes), list(self._unsaved_queues)
        transaction.shapes.extend(self._unsaved_shapes[number] for number in shapes)
        transaction.queues.extend(self._unsaved_queues[number] for number in queues)
        future = self._writer.submit(transaction)

        def saved(done: Future[None]) -> None:
            if done.exception() is None:
                for number in shapes:
                    self._unsaved_shapes.pop(number, None)
                for number in queues:
                    self._unsaved_queues.pop(number, None)

        future.add_done_callback(saved)
        return future

    @property
    def commits(self) -> int:
        """The number of commits in the life of the store."""
        return self._writer.commits

    @property
    def failure(self) -> StoreError | None:
        """Why the store can no longer be written; None if it can."""
        return self._writer.failure

    # -- reading ------------------------------------------------------------------------------

    def description(self, shape: int) -> bytes | None:
        """The shape with a number; None if its row was damaged."""
        return self._shapes.get(shape)

    def queue_names(self, kind: str) -> list[str]:
        """The names of all queues of a kind."""
        return [name for other, name in self._queues if other == kind]

    def length(self, queue: int) -> int:
        """How many events a queue has on disk."""
        return self._writer.lengths.get(queue, 0)

    def missed(self, queue: int) -> int:
        """How many events of a queue were dropped, of which its receiver has still to be told."""
        return self._missed.get(queue, 0)

    def set_missed(self, transaction: Transaction, queue: int, count: int) -> None:
        """Note how many events of a queue were dropped; 0 when its receiver knows."""
        self._missed[queue] = transaction.missed[queue] = count

    def read_queue(
        self, queue: int, after: int = 0, until: int = LAST_POSITION, limit: int = 1_000
    ) -> QueueRead:
        """The first events of a queue between two positions. Damaged ones are set aside."""
        read = self._read(lambda: read_queue(self._reader, queue, after, until, limit))
        self._set_aside(read.damaged)
        return read

    def last_in_queue(self, queue: int) -> int:
        """The position of the last event of a queue; 0 if it is empty."""
        query = "SELECT max(position) FROM queue_rows WHERE queue = ?"
        return self._read(lambda: self._reader.execute(query, (queue,)).fetchone()[0] or 0)

    def read_events(
        self, after: int = 0, until: int = LAST_POSITION, limit: int = 1_000
    ) -> list[EventRow]:
        """The first stored events between two positions, for a replay."""
        events, damaged = self._read(lambda: read_events(self._reader, after, until, limit))
        self._set_aside(damaged)
        return events

    def positions(self, kind: str) -> dict[str, tuple[int, int]]:
        """By name: the epoch and number up to which events have been taken."""
        return {
            row.name: (row.epoch, row.number)
            for row in self._sound_rows("positions", PositionRow)
            if row.kind == kind
        }

    def state(self) -> Iterator[tuple[str, str, bytes, bytes]]:
        """Kind, owner, key and value of all pieces of state."""
        for kind, owner, key, value, _ in self._sound_rows("state", StateRow):
            yield kind, owner, key, value

    def rejected(self) -> list[tuple[int, str]]:
        """When damaged rows were set aside, and what they are."""
        return self._read(
            lambda: self._reader.execute("SELECT found_us, source FROM rejected").fetchall()
        )

    def _sound_rows(self, table: str, row_type: type[R]) -> list[R]:
        damaged: list[DamagedRow] = []
        rows = self._read(lambda: list(read_table(self._reader, table, row_type, damaged)))
        self._set_aside(damaged)
        return rows

    def _read(self, query: Callable[[], T]) -> T:
        try:
            return query()
        except sqlite3.Error as error:
            raise _reading_error(error, self.folder) from None

    def _set_aside(self, damaged: list[DamagedRow]) -> None:
        if not damaged:
            return
        self.damaged += len(damaged)
        for row in damaged:
            _log.error(
                "a damaged row is set aside: %s: %s", row.table, row.reason,
                extra={"event": "store_damaged", "table": row.table},
            )  # fmt: skip
        transaction = Transaction()
        transaction.rejected.extend(damaged)
        self.commit(transaction)

    # -- retention ----------------------------------------------------------------------------

    def used_bytes(self) -> int:
        """The room that the database takes."""
        return self._purger.used_bytes()

    def purge(self, now_us: int) -> Future[None] | None:
        """Remove some events that are needed no more; None if there are none. Call it often."""
        ranges = self._read(lambda: self._purger.next_ranges(now_us))
        self.is_full = not ranges and self.used_bytes() > self.retention.bytes_max
        if not ranges:
            return None
        transaction = Transaction()
        transaction.purged.extend(ranges)
        return self.commit(transaction)

    def shorten(self, transaction: Transaction, queue: int, length_max: int) -> int:
        """Drop the oldest events of a queue that is too long; returns how many."""
        excess = self.length(queue) - length_max
        if excess <= 0:
            return 0
        rows = self._reader.execute(
            "SELECT position FROM queue_rows WHERE queue = ? ORDER BY position LIMIT ?",
            (queue, excess),
        ).fetchall()
        if not rows:
            return 0
        self.acknowledge(transaction, queue, rows[-1][0])
        self.set_missed(transaction, queue, self.missed(queue) + len(rows))
        return len(rows)


def _check_commits(commits: int, mark: int, folder: Path) -> None:
    if commits < mark:
        raise StoreDamagedError(
            f"{folder} has lost transactions: its files have {commits} of at least {mark}; "
            f"`tidegate broker repair --data {folder}` goes on with what is left"
        )


def _reading_error(error: sqlite3.Error, folder: Path) -> StoreError:
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return StoreDamagedError(
            f"{folder} is damaged: {error}; `tidegate broker repair --data {folder}` saves what "
            "can be read"
        )
    return store_error(error, f"{folder} cannot be read")
