"""Repairs a damaged store: what can be read is copied to a new database.

Damage to a page hides its rows, and what is wrong with it only SQLite knows. So rows are read from
both ends of a range of positions up to the first error, and what lies between is halved and tried
again, the widest gap first, a bounded number of times. Rows with wrong checksums are left out. The
damaged files are kept in a folder beside the new ones.
"""

from __future__ import annotations

import heapq
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tidegate.errors import StoreDamagedError, StoreError
from tidegate.network.store.commit_mark import CommitMark
from tidegate.network.store.folder_lock import FolderLock
from tidegate.network.store.reading import ROWS, is_sound
from tidegate.network.store.schema import DATABASE, TABLES, open_reader, open_writer, store_error

_TRIES_MAX = 2_000

_Row = Sequence[Any]


@dataclass(slots=True)
class RepairReport:
    """What a repair has saved, and what it could not."""

    kept_in: Path
    """The folder with the damaged files."""
    saved: dict[str, int] = field(default_factory=dict)
    """By table: the rows that were copied."""
    damaged: dict[str, int] = field(default_factory=dict)
    """By table: the rows with a wrong checksum."""
    unreadable: list[str] = field(default_factory=list)
    """Tables, or ranges of positions, in which nothing could be read."""
    lost: int = 0
    """Events that queues should deliver and that are not there any more."""


def repair(folder: Path) -> RepairReport:
    """Replace the database of a folder by a new one with all rows that can be read."""
    if not (folder / DATABASE).exists():
        raise StoreError(f"{folder} has no {DATABASE}; there is nothing to repair")
    lock = FolderLock(folder)
    kept_in = folder / f"damaged-{time.time_ns() // 1_000_000}"
    report = RepairReport(kept_in)
    try:
        with TemporaryDirectory(dir=folder, prefix="repair-") as repaired:
            with (
                closing(open_reader(folder)) as old,
                closing(open_writer(Path(repaired))) as new,
                closing(CommitMark(folder)) as mark,
            ):
                new.execute("BEGIN IMMEDIATE")
                for table in TABLES:
                    _copy_table(table, old, new, report)
                _finish(new, report, mark.read())
                new.execute("COMMIT")
            kept_in.mkdir(mode=0o700)
            _move_database(folder, kept_in)
            _move_database(Path(repaired), folder)
    except sqlite3.Error as error:
        raise store_error(error, f"{folder} cannot be repaired") from None
    finally:
        lock.release()
    return report


def _move_database(source: Path, target: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.rename(source / (DATABASE + suffix), target / (DATABASE + suffix))


def _copy_table(
    table: str, old: sqlite3.Connection, new: sqlite3.Connection, report: RepairReport
) -> None:
    row_type = ROWS.get(table)
    saved = damaged = 0
    for columns in _readable_rows(table, old, new, report):
        if row_type is not None and not is_sound(row_type(*columns)):
            damaged += 1
            continue
        places = ", ".join("?" * len(columns))
        new.execute(f"INSERT OR REPLACE INTO {table} VALUES ({places})", tuple(columns))
        saved += 1
    report.saved[table] = saved
    if damaged:
        report.damaged[table] = damaged


def _readable_rows(
    table: str, old: sqlite3.Connection, new: sqlite3.Connection, report: RepairReport
) -> Iterator[_Row]:
    if table == "events":
        yield from _readable_range(old, table, "", (), report)
    elif table == "queue_rows":
        # The queues were copied before, and no row of another queue has a receiver.
        for (queue,) in new.execute("SELECT number FROM queues").fetchall():
            yield from _readable_range(old, table, "queue = ? AND ", (queue,), report)
    else:
        yield from _readable_ends(old, table, report)


def _readable_ends(old: sqlite3.Connection, table: str, report: RepairReport) -> Iterator[_Row]:
    """The rows of a small table that come before the first error, and after the last."""
    key = TABLES[table].split(" ", 1)[0]
    for order in ("ASC", "DESC"):
        try:
            yield from old.execute(f"SELECT * FROM {table} ORDER BY {key} {order}")
            return
        except sqlite3.DatabaseError as error:
            report.unreadable.append(f"{table}: {error}")


def _readable_range(
    old: sqlite3.Connection,
    table: str,
    condition: str,
    values: tuple[object, ...],
    report: RepairReport,
) -> Iterator[_Row]:
    """The rows of a table of positions, around all damaged pages."""
    gaps = [(-(2**63), 0, 2**63 - 1)]  # by width, the widest first
    where = f"SELECT * FROM {table} WHERE {condition}position BETWEEN ? AND ? ORDER BY position"
    at = [name.split(" ", 1)[0] for name in TABLES[table].split(", ")].index("position")
    tries = 0
    while gaps and tries < _TRIES_MAX:
        _, low, high = heapq.heappop(gaps)
        for order in ("ASC", "DESC"):
            tries += 1
            try:
                for row in old.execute(f"{where} {order}", (*values, low, high)):
                    if order == "ASC":
                        low = row[at] + 1
                    else:
                        high = row[at] - 1
                    yield row
            except sqlite3.DatabaseError:
                continue
            break
        else:
            middle = (low + high) // 2
            if low < high:
                heapq.heappush(gaps, (low - middle, low, middle))
                heapq.heappush(gaps, (middle + 1 - high, middle + 1, high))
    report.unreadable += [f"{table}: positions {low} to {high}" for _, low, high in gaps[:10]]


def _finish(new: sqlite3.Connection, report: RepairReport, mark: int) -> None:
    """Make the new database fit for use: its numbers go on behind those of the old one."""
    owner = new.execute("SELECT value FROM meta WHERE key = 'broker'").fetchone()
    if owner is None and not report.saved["events"]:
        raise StoreDamagedError(
            f"nothing in {report.kept_in.parent} can be read; start with an empty folder"
        )
    missing = (
        "SELECT queue, count(*) FROM queue_rows r WHERE NOT EXISTS "
        "(SELECT 1 FROM events e WHERE e.position = r.position) GROUP BY queue"
    )
    for queue, count in new.execute(missing).fetchall():
        new.execute("UPDATE queues SET missed = missed + ? WHERE number = ?", (count, queue))
        report.lost += count
    new.execute(
        "DELETE FROM queue_rows WHERE NOT EXISTS "
        "(SELECT 1 FROM events e WHERE e.position = queue_rows.position)"
    )
    last = new.execute("SELECT max(position) FROM events").fetchone()[0] or 0
    for key, value in (("commits", mark), ("position", last)):
        new.execute("UPDATE meta SET value = max(value, ?) WHERE key = ?", (value, key))
