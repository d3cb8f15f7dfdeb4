"""The entries of a search tree: their records, and which entries a subscription has.

An entry is stored before it is placed in the tree, and keeps its number until its subscription is
removed. Its constraints lie together, those that branches can test first, in the order of their
levels. An update writes new bounds over the old ones, so a record is never moved.

The constraints and motions of removed entries stay behind as garbage. Once it is more than half,
the owner is expected to build the tree anew (``is_wasteful``).
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import MOVING
from tidegate.matching.tree.kernels.layout import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_END,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    E_MOTION_END,
    E_PATHS,
    E_SUBSCRIPTION,
    E_TESTS,
    ENTRY_WORDS,
    NONE,
    RANGE_TESTS,
    TEST_COUNTS,
    VALUE_TESTS,
)
from tidegate.matching.tree.level_order import ConstraintCounts, is_testable
from tidegate.matching.tree.storage import TreeStorage, grown

GARBAGE_MIN = 1024
"""Below this number of constraints it does not matter how many of them are garbage."""


class EntryRecords:
    """The records of entries in the arrays of a tree."""

    def __init__(self, storage: TreeStorage) -> None:
        self._storage = storage
        self.size = 0
        """Number of entries, those among them that are not placed yet."""
        self.bounds = 0
        """Number of constraints in memory, garbage included."""
        self._live_bounds = 0
        self._entries = 0
        self._motion = 0
        self._free: list[int] = []
        self._next_of: I32 = np.zeros(0, np.int32)
        """By entry: the next entry of the same subscription."""
        self._first_of: I32 = np.zeros(0, np.int32)
        """By number of a subscription: its first entry."""

    @property
    def is_wasteful(self) -> bool:
        """Whether most constraints in memory belong to entries that were removed."""
        return self.bounds > GARBAGE_MIN and 2 * self._live_bounds < self.bounds

    @property
    def tests(self) -> ConstraintCounts:
        """How many entries test each channel."""
        counts = self._storage.arrays.tests.reshape(-1, TEST_COUNTS)
        return ConstraintCounts(counts[:, VALUE_TESTS], counts[:, RANGE_TESTS])

    # -- which entries there are ------------------------------------------------------------------

    def of(self, subscriptions: I32) -> I64:
        """The numbers of the entries of some subscriptions."""
        found: list[int] = []
        for subscription in subscriptions.tolist():
            entry = NONE
            if subscription < len(self._first_of):
                entry = self._first_of.item(subscription)
            while entry != NONE:
                found.append(entry)
                entry = self._next_of.item(entry)
        return np.array(found, np.int64)

    def only_of(self, subscription: int) -> int:
        """The number of a subscription's only entry; NONE if it has none, or several."""
        if subscription >= len(self._first_of):
            return NONE
        entry = self._first_of.item(subscription)
        return entry if entry == NONE or self._next_of.item(entry) == NONE else NONE

    def only_of_each(self, subscriptions: I32) -> I64:
        """As ``only_of`` for many subscriptions."""
        found: I64 = np.full(len(subscriptions), NONE, np.int64)
        known = subscriptions < len(self._first_of)
        found[known] = self._first_of[subscriptions[known]]
        several = np.flatnonzero(found != NONE)
        several = several[self._next_of[found[several]] != NONE]
        found[several] = NONE
        return found

    def moving(self) -> I64:
        """The numbers of the entries whose bounds move."""
        words = self._words()[: self._entries]
        return np.flatnonzero(
            (words[:, E_SUBSCRIPTION] != NONE) & (words[:, E_FLAGS] & MOVING != 0)
        )

    def subscriptions(self) -> tuple[I64, I32]:
        """The numbers of all entries, and those of their subscriptions."""
        owners = self._words()[: self._entries, E_SUBSCRIPTION]
        numbers = np.flatnonzero(owners != NONE)
        return numbers, owners[numbers]

    def _words(self) -> I32:
        return self._storage.arrays.entry.reshape(-1, ENTRY_WORDS)

    # -- entries that come ------------------------------------------------------------------------

    def add(self, entries: Entries) -> I64:
        """Store entries without placing them; returns their numbers."""
        numbers = self._allocate(len(entries))
        self._storage.number_levels(np.unique(entries.channel[is_testable(entries)]))
        self._storage.reserve(
            self._entries, self.bounds + len(entries.channel), self._motion + len(entries.motion)
        )
        self._write(entries, numbers)
        self._link(entries.subscription, numbers)
        self.size += len(entries)
        return numbers

    def _allocate(self, count: int) -> I64:
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        new = np.arange(self._entries, self._entries + count - len(reused))
        self._entries += len(new)
        self._next_of = grown(self._next_of, self._entries)
        return np.concatenate([np.array(reused, np.int64), new])

    def _write(self, entries: Entries, numbers: I64) -> None:
        """Write the records of entries, with the constraints that branches can test first."""
        arrays = self._storage.arrays
        is_test = is_testable(entries)
        owner = np.repeat(np.arange(len(entries)), np.diff(entries.first))
        level = np.zeros(len(owner), np.int32)
        level[is_test] = arrays.level_of[entries.channel[is_test]]
        order = np.lexsort((level, ~is_test, owner))
        begin = self.bounds
        bound = arrays.bound.reshape(-1, BOUND_WORDS)[begin : begin + len(order)]
        bound[:, B_LOW], bound[:, B_HIGH] = entries.low[order], entries.high[order]
        bound.view(np.int64)[:, B_CHANNEL] = entries.channel[order]  # with a margin of 0
        words = np.empty((len(entries), ENTRY_WORDS), np.int32)
        words[:, E_SUBSCRIPTION], words[:, E_FLAGS] = entries.subscription, entries.flags
        words[:, E_FIRST] = begin + entries.first[:-1]
        words[:, E_TESTS] = words[:, E_FIRST] + np.bincount(
            owner, weights=is_test, minlength=len(entries)
        ).astype(np.int32)
        words[:, E_END] = begin + entries.first[1:]
        words[:, E_MOTION] = self._motion + entries.motion_first[:-1]
        words[:, E_MOTION_END] = self._motion + entries.motion_first[1:]
        words[:, E_PATHS] = NONE
        self._words()[numbers] = words
        arrays.motion[self._motion : self._motion + len(entries.motion)] = entries.motion
        self.bounds += len(order)
        self._live_bounds += len(order)
        self._motion += len(entries.motion)
        channel, low, high = entries.channel[is_test], entries.low[is_test], entries.high[is_test]
        self._count(channel, low == high, 1)
        _extend(arrays.extent, channel, low, high)

    def _count(self, channels: I32, is_value: Bools, sign: int) -> None:
        """Count tests of channels, or with a sign of -1 no longer count them."""
        which = np.where(is_value, VALUE_TESTS, RANGE_TESTS)
        np.add.at(self._storage.arrays.tests, TEST_COUNTS * channels + which, sign)

    def _link(self, subscriptions: I32, numbers: I64) -> None:
        """Link the entries of each subscription."""
        if not len(numbers):
            return
        self._first_of = grown(self._first_of, int(subscriptions.max()) + 1, NONE)
        distinct = np.unique(subscriptions)
        if len(distinct) == len(subscriptions) and np.all(self._first_of[subscriptions] == NONE):
            self._next_of[numbers] = NONE
            self._first_of[subscriptions] = numbers
            return
        for subscription, entry in zip(subscriptions.tolist(), numbers.tolist(), strict=True):
            self._next_of[entry] = self._first_of[subscription]
            self._first_of[subscription] = entry

    # -- entries that go --------------------------------------------------------------------------

    def free(self, subscriptions: I32, numbers: I64) -> None:
        """Forget the entries of subscriptions, given by number; they are in the tree no longer."""
        words = self._words()[numbers]
        self._live_bounds -= int((words[:, E_END] - words[:, E_FIRST]).sum())
        tests = _ranges(words[:, E_FIRST], words[:, E_TESTS])
        bounds = self._storage.arrays.bound.reshape(-1, BOUND_WORDS)[tests]
        channels = (bounds.view(np.int64)[:, B_CHANNEL] & CHANNEL_MASK).astype(np.int32)
        self._count(channels, bounds[:, B_LOW] == bounds[:, B_HIGH], -1)
        self.size -= len(numbers)
        self._free += numbers.tolist()
        self._words()[numbers, E_SUBSCRIPTION] = NONE
        self._first_of[subscriptions[subscriptions < len(self._first_of)]] = NONE

    def take_out(self) -> Entries:
        """A copy of all entries."""
        arrays = self._storage.arrays
        words = self._words()[: self._entries]
        words = words[words[:, E_SUBSCRIPTION] != NONE]
        bounds = arrays.bound.reshape(-1, BOUND_WORDS)
        first = offsets(words[:, E_END] - words[:, E_FIRST])
        which = _ranges(words[:, E_FIRST], words[:, E_END])
        owner = np.repeat(np.arange(len(words)), np.diff(first))
        channel = (bounds.view(np.int64)[which, B_CHANNEL] & CHANNEL_MASK).astype(np.int32)
        in_order = np.lexsort((channel, owner))
        which = which[in_order]
        motion_first = offsets(words[:, E_MOTION_END] - words[:, E_MOTION])
        return Entries(
            subscription=words[:, E_SUBSCRIPTION].copy(),
            flags=words[:, E_FLAGS].copy(),
            first=first,
            channel=channel[in_order],
            low=bounds[which, B_LOW],
            high=bounds[which, B_HIGH],
            motion_first=motion_first,
            motion=arrays.motion[_ranges(words[:, E_MOTION], words[:, E_MOTION_END])],
        )


def _extend(extent: F64, channel: I32, low: F64, high: F64) -> None:
    """Extend the extents of channels by the finite bounds of tests."""
    for side in (low, high):
        finite = np.isfinite(side)
        np.minimum.at(extent, 2 * channel[finite], side[finite])
        np.maximum.at(extent, 2 * channel[finite] + 1, side[finite])


def _ranges(begin: I32, end: I32) -> I64:
    """The integers of several ranges, one range after the other."""
    lengths = (end - begin).astype(np.int64)
    starts = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    result: I64 = starts + np.arange(lengths.sum())
    return result
