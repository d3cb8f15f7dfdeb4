"""Reads the rows of a store, and tells damaged ones from sound ones."""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeVar

from tidegate.network.store.rows import EventRow, PositionRow, QueueRow, ShapeRow, StateRow


class QueuedEvent(NamedTuple):
    """An event in a queue, with what goes with it to the receiver of this queue."""

    event: EventRow
    detail: bytes


class DamagedRow(NamedTuple):
    """A row whose checksum is wrong, or that lacks its event."""

    table: str
    reason: str
    columns: Sequence[object]


@dataclass(slots=True)
class QueueRead:
    """Part of a queue, in order, and the damaged rows in it."""

    events: list[QueuedEvent] = field(default_factory=list)
    damaged: list[DamagedRow] = field(default_factory=list)
    lost: int = 0
    """How many events of the queue cannot be delivered."""
    last: int = 0
    """The position of the last row that was read, damaged or not; 0 if there was none."""


class _Row(Protocol):
    @property
    def checksum(self) -> int: ...
    @property
    def expected_checksum(self) -> int: ...


R = TypeVar("R", PositionRow, StateRow, ShapeRow, EventRow, QueueRow)

ROWS: dict[str, type[EventRow | QueueRow | PositionRow | StateRow | ShapeRow]] = {
    "events": EventRow,
    "queue_rows": QueueRow,
    "positions": PositionRow,
    "state": StateRow,
    "shapes": ShapeRow,
}
"""The tables whose rows have checksums."""


def is_sound(row: _Row) -> bool:
    """Whether a row is as it was written. SQLite takes any type in any column."""
    try:
        return row.checksum == row.expected_checksum
    except (TypeError, ValueError, AttributeError, struct.error):
        return False


def read_table(
    reader: sqlite3.Connection, table: str, row_type: type[R], damaged: list[DamagedRow]
) -> Iterator[R]:
    """The sound rows of a table; the others are appended to ``damaged``."""
    for columns in reader.execute(f"SELECT * FROM {table}"):
        row = row_type(*columns)
        if is_sound(row):
            yield row
        else:
            damaged.append(DamagedRow(table, "the checksum is wrong", columns))


_QUEUED = """
SELECT r.position, r.detail, r.checksum, e.shape, e.time_us, e.header, e.body, e.checksum
FROM queue_rows r LEFT JOIN events e ON e.position = r.position
WHERE r.queue = ? AND r.position > ? AND r.position <= ? ORDER BY r.position LIMIT ?
"""


def read_queue(
    reader: sqlite3.Connection, queue: int, after: int, until: int, limit: int
) -> QueueRead:
    """The first events of a queue between two positions, the first of them excluded."""
    read = QueueRead()
    for position, detail, checksum, *columns in reader.execute(
        _QUEUED, (queue, after, until, limit)
    ):
        read.last = position
        row, event = QueueRow(queue, position, detail, checksum), EventRow(position, *columns)
        has_event = event.shape is not None
        row_is_sound, event_is_sound = is_sound(row), has_event and is_sound(event)
        if row_is_sound and event_is_sound:
            read.events.append(QueuedEvent(event, detail))
            continue
        read.lost += 1
        if has_event and not event_is_sound:
            read.damaged.append(DamagedRow("events", "the checksum is wrong", event))
        reason = "the checksum is wrong" if not row_is_sound else "its event is damaged or missing"
        read.damaged.append(DamagedRow("queue_rows", reason, row))
    return read


def read_events(
    reader: sqlite3.Connection, after: int, until: int, limit: int
) -> tuple[list[EventRow], list[DamagedRow]]:
    """The first stored events between two positions, the first of them excluded."""
    events: list[EventRow] = []
    damaged: list[DamagedRow] = []
    for columns in reader.execute(
        "SELECT * FROM events WHERE position > ? AND position <= ? ORDER BY position LIMIT ?",
        (after, until, limit),
    ):
        row = EventRow(*columns)
        if is_sound(row):
            events.append(row)
        else:
            damaged.append(DamagedRow("events", "the checksum is wrong", columns))
    return events, damaged
