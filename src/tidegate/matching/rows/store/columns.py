"""Columns of numbered subscriptions: an array each for shape, row, lifetime and so on.

Every subscription and every past version has a number, the index of its value in all columns. The
number of a removed one is given out again: indexes, id columns and results are arrays by number,
and would grow for ever with subscriptions that come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.language.evolve import Lazy, evolve_to_int
from tidegate.matching.arrays import I32, I64, NO_TIME, U8, Bools
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.store.ids import Numbers
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter

NO_END = np.int64(2**63 - 1)
"""In the column of ends: the subscription has none."""

CURRENT, PAST, STAGED = range(3)
"""States of a number: a current subscription, a past version, one that is being added."""

CAPACITY_MIN = 64

_COLUMNS = (
    "shape", "row", "names", "since_us", "until_us", "origin_us", "evolve", "pinned_at_us",
    "state",
)  # fmt: skip


class SubscriptionColumns:
    """Columns of subscriptions by number, and which numbers are in use."""

    def __init__(self) -> None:
        self.shape: I32 = np.zeros(0, np.int32)
        """The number of the shape."""
        self.row: I64 = np.zeros(0, np.int64)
        """Where the row begins in the heap of cells."""
        self.names: I32 = np.zeros(0, np.int32)
        """The number of the list of parameter names."""
        self.since_us: I64 = np.zeros(0, np.int64)
        """From when on the subscription holds; NO_TIME, which is before all times, if unknown."""
        self.until_us: I64 = np.zeros(0, np.int64)
        """When the subscription ends, exclusive; NO_END if it goes on."""
        self.origin_us: I64 = np.zeros(0, np.int64)
        """From when on `t` counts; NO_TIME if unknown, and then `t` is 0."""
        self.evolve: I64 = np.zeros(0, np.int64)
        """The evolve mode, as ``evolve_to_int`` encodes it: negative if it is `Cached`."""
        self.pinned_at_us: I64 = np.zeros(0, np.int64)
        """The time as of which a `Cached` filter is evaluated; NO_TIME if it is not pinned."""
        self.state: U8 = np.zeros(0, np.uint8)
        """CURRENT, PAST or STAGED; of no meaning for a freed number."""
        self.capacity = 0
        self.count = 0
        """Numbers given out so far, freed ones included; the columns are longer."""
        self._free: list[int] = []
        # Never too early and never too late, but not exact: a removal leaves them as they are.
        self._latest_since_us = NO_TIME
        self._first_until_us = NO_END

    # -- numbers ------------------------------------------------------------------------------

    def allocate(self, count: int) -> Numbers:
        """Numbers for new subscriptions, freed ones first."""
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        begin = self.count
        self.count += count - len(reused)
        self._reserve(self.count)
        return np.array([*reused, *range(begin, self.count)], np.int32)

    def free(self, number: int) -> None:
        """Give a number back."""
        self.state[number] = CURRENT
        self._free.append(number)

    def copy(self, numbers: Numbers, copies: Numbers) -> None:
        """Copy the columns of some numbers to others."""
        for name in _COLUMNS:
            column = getattr(self, name)
            column[copies] = column[numbers]

    def _reserve(self, count: int) -> None:
        if count <= self.capacity:
            return
        self.capacity = max(count, 2 * self.capacity, CAPACITY_MIN)
        for name in _COLUMNS:
            old = getattr(self, name)
            new = np.zeros(self.capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def is_current(self) -> Bools:
        """Which numbers are those of current subscriptions."""
        current: Bools = self.state[: self.count] == CURRENT
        current[self._free] = False
        return current

    def past(self) -> Numbers:
        """The numbers of past versions."""
        return _numbers(self.state[: self.count] == PAST)

    def staged(self) -> Numbers:
        """The numbers of subscriptions that are being added."""
        return _numbers(self.state[: self.count] == STAGED)

    def used(self) -> Numbers:
        """All numbers that are not free."""
        used = np.ones(self.count, np.bool_)
        used[self._free] = False
        return _numbers(used)

    # -- evolve modes -------------------------------------------------------------------------

    def cached(self) -> Numbers:
        """The numbers of current subscriptions whose evolve mode is `Cached`."""
        return _numbers(self.is_current() & (self.evolve[: self.count] < 0))

    def pins(self, numbers: Numbers) -> I64:
        """The time for which functions are evaluated, as motions hold it (see kernels/motion.py).

        A time for a pinned filter, EVERY plus its interval for a periodic one, EVERY for others.
        """
        evolve, pinned_at_us = self.evolve[numbers], self.pinned_at_us[numbers]
        is_pinned = (evolve < 0) & (pinned_at_us != NO_TIME)
        return np.where(is_pinned, pinned_at_us, EVERY + np.maximum(evolve, 0))

    def is_lazy(self, numbers: Numbers) -> Bools:
        """Which subscriptions are evaluated as of the time of the event, whatever happens."""
        evolve = self.evolve[numbers]
        lazy: Bools = (evolve == 0) | (evolve == evolve_to_int(Lazy()))
        return lazy

    def set_pinned(self, numbers: Numbers, time_us: int | None) -> None:
        """Note the time as of which subscriptions are evaluated; None if they are not pinned."""
        self.pinned_at_us[numbers] = NO_TIME if time_us is None else time_us

    # -- lifetimes ----------------------------------------------------------------------------

    def note_lifetimes(self, numbers: Numbers) -> None:
        """Take the lifetimes of subscriptions into account, now that these can match."""
        if len(numbers):
            self._latest_since_us = max(self._latest_since_us, self.since_us[numbers].max())
            self._first_until_us = min(self._first_until_us, self.until_us[numbers].min())

    def begin(self, numbers: Numbers, since_us: I64) -> None:
        """Let subscriptions hold from other times on; the origin of their `t` stays."""
        self.since_us[numbers] = since_us
        self._latest_since_us = max(self._latest_since_us, since_us.max(initial=NO_TIME))

    @property
    def latest_since(self) -> int | None:
        """When the last version began; None if that is not known of any."""
        return None if self._latest_since_us == NO_TIME else int(self._latest_since_us)

    def all_alive(self, begin: int, end: int) -> bool:
        """Whether all subscriptions are surely alive from one time to another.

        True if the interval is empty: an event without a time is judged regardless of lifetimes.
        """
        return bool(begin > end or (begin >= self._latest_since_us and end < self._first_until_us))

    def alive_at(self, numbers: Numbers, times_us: I64) -> Bools:
        """Which subscriptions are alive at their times, for pairs of a number and a time.

        Most are alive at all of these times. That is found out once for each subscription, and
        only the pairs of the others are looked at: there may be many more pairs.
        """
        known = times_us[times_us != NO_TIME]
        begin, end = known.min(initial=NO_END), known.max(initial=NO_TIME)
        doubtful = (self.since_us[: self.count] > begin) | (self.until_us[: self.count] <= end)
        alive = np.ones(len(numbers), np.bool_)
        asked = np.flatnonzero(doubtful[numbers])
        chosen, at = numbers[asked], times_us[asked]
        within = (self.since_us[chosen] <= at) & (at < self.until_us[chosen])
        alive[asked] = within | (at == NO_TIME)
        return alive

    # -- snapshots ----------------------------------------------------------------------------

    def save(self, into: SectionWriter) -> None:
        """Add the columns to a snapshot."""
        for name in _COLUMNS:
            into.array(f"column.{name}", getattr(self, name)[: self.count])
        # What is being added is not part of a snapshot: its numbers count as freed there.
        into.array("free", np.array(self._free + self.staged().tolist(), np.int32))

    @classmethod
    def load(cls, source: SectionReader) -> SubscriptionColumns:
        """The columns of a snapshot, as arrays of the mapped file."""
        columns = cls()
        for name in _COLUMNS:
            setattr(columns, name, source.array(f"column.{name}"))
        columns._free = source.array("free").tolist()
        columns.capacity = columns.count = len(columns.shape)
        columns.note_lifetimes(np.arange(columns.count, dtype=np.int32))
        return columns


def _numbers(chosen: npt.NDArray[Any]) -> Numbers:
    return np.flatnonzero(chosen).astype(np.int32)
