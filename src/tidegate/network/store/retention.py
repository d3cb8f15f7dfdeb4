"""Retention: how long a store keeps events, and how much room it may take.

An event stays until no queue holds it and the time of retention has passed. When the store takes
more room than it may, events that only retention holds go first; queues are never shortened here.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import timedelta

PURGED_MAX = 5_000
"""Events looked at in one transaction, so that others need not wait long for it."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of a store."""

    keep: timedelta = timedelta(0)
    """How long events are kept for replay after their queues need them no more."""
    bytes_max: int = 8 * 2**30
    """The room that the database may take. Above it, events are refused."""


class Purger:
    """Finds the ranges of positions whose events may be removable.

    Behind the frontier everything was looked at once. What a queue held then becomes removable when
    it is acknowledged, so acknowledged ranges behind the frontier are looked at again.
    """

    def __init__(self, reader: sqlite3.Connection, retention: Retention) -> None:
        self._reader = reader
        self._retention = retention
        self._frontier = 0
        self._again: list[tuple[int, int]] = []

    def acknowledged(self, after: int, until: int) -> None:
        """Note that a queue needs the events between two positions no more."""
        until = min(until, self._frontier)
        if after < until:
            self._again.append((after + 1, until))

    def used_bytes(self) -> int:
        """The room that the database takes, without pages that are free."""
        pages, free, size = (
            self._reader.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def next_ranges(self, now_us: int) -> list[tuple[int, int]]:
        """Some ranges to purge now; none if there is nothing to do."""
        self._again = _joined(self._again)
        ranges: list[tuple[int, int]] = []
        looked_at = 0
        while self._again and looked_at < PURGED_MAX:
            first, last = self._again.pop()
            end, count = self._chunk(first, last, PURGED_MAX - looked_at)
            looked_at += count
            ranges.append((first, end))
            if end < last:
                self._again.append((end + 1, last))
        limit = now_us
        if self.used_bytes() <= self._retention.bytes_max:
            limit -= self._retention.keep // timedelta(microseconds=1)
        if looked_at < PURGED_MAX and limit > self._frontier:
            first = self._frontier + 1
            self._frontier, count = self._chunk(first, limit, PURGED_MAX - looked_at)
            if count:
                ranges.append((first, self._frontier))
        return ranges

    def _chunk(self, first: int, last: int, events_max: int) -> tuple[int, int]:
        """The end of the part of a range that has at most so many events, and their number."""
        count, end = self._reader.execute(
            "SELECT count(*), max(position) FROM (SELECT position FROM events "
            "WHERE position BETWEEN ? AND ? ORDER BY position LIMIT ?)",
            (first, last, events_max),
        ).fetchone()
        return (int(end) if count == events_max else last), int(count)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same ranges in order, with those that touch joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return joined
