"""The order in which many entries enter a tree: that of its branches.

A search reads the nodes, paths, entries and constraints of a few subtrees. Records are allocated
one after the other, so entries that come in the order of the branches, the *-branch last, leave
what belongs to one subtree side by side in memory. At a million subscriptions a search waits mostly
for memory, and what it reads is then on fewer pages. The answers do not depend on the order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tidegate.matching.arrays import I32, I64
from tidegate.matching.rows.kernels.entry_lists import Entries, permuted_rows
from tidegate.matching.tree.level_order import is_testable

SORTED_MIN = 1_024
"""Fewer entries are not worth the sorting: their tree is in the cache."""
TESTS_COMPARED = 5
"""Tests of an entry that are compared; few entries agree in more."""


def in_branch_order(entries: Entries, order: Sequence[int]) -> Entries:
    """Entries in the order of the branches of a tree, given the channels of its levels."""
    if len(entries) < SORTED_MIN or not len(entries.channel):
        return entries
    return _taken(entries, np.lexsort(_sort_keys(entries, order)))


def _sort_keys(entries: Entries, order: Sequence[int]) -> list[npt.NDArray[np.generic]]:
    """The level and the value of each entry's first tests; the last key is the first to compare."""
    tests = np.flatnonzero(is_testable(entries))
    channel = entries.channel[tests]
    level_of: I32 = np.full(int(max(entries.channel.max(), *order, 0)) + 1, len(order), np.int32)
    level_of[list(order)] = np.arange(len(order))
    owner = np.repeat(np.arange(len(entries)), np.diff(entries.first))[tests]
    by_level = np.lexsort((level_of[channel], owner))
    tests, owner = tests[by_level], owner[by_level]
    place = np.arange(len(tests)) - np.searchsorted(owner, owner)  # number of the test in its entry
    keys: list[npt.NDArray[np.generic]] = []
    for number in range(TESTS_COMPARED):
        chosen = place == number
        level = np.full(len(entries), len(order) + 1, np.int32)  # after those that have a test
        level[owner[chosen]] = level_of[entries.channel[tests[chosen]]]
        value = np.zeros(len(entries))
        value[owner[chosen]] = entries.low[tests[chosen]]
        keys += [level, value]
    return keys[::-1]


def _taken(entries: Entries, order: I64) -> Entries:
    """Entries in another order."""
    first, elements = permuted_rows(order, entries.first)
    motion_first, motion = permuted_rows(order, entries.motion_first)
    return replace(
        entries,
        subscription=entries.subscription[order],
        flags=entries.flags[order],
        first=first,
        channel=entries.channel[elements],
        low=entries.low[elements],
        high=entries.high[elements],
        motion_first=motion_first,
        motion=entries.motion[motion],
    )
