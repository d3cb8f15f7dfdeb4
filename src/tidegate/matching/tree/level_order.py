"""The order of the levels: which attribute is tested first (Gryphon, 2).

"Performance seems to be better if the attributes near the root are chosen to have the fewest number
of subscriptions labeled with a *." So tests are counted by channel. A range is worth half a value,
because about half of all events pass it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import SET

VALUE_PASSES, RANGE_PASSES = 0.1, 0.5
"""Share of the events that pass the test of a value and of a range, for the estimate of steps."""


def is_testable(entries: Entries) -> Bools:
    """Which constraints a branch can test: values and ranges, no outsides and no sets.

    Bounds of NaN are a range that an update has left empty; another may give it values again.
    """
    result: Bools = (entries.channel & SET == 0) & ~(entries.low > entries.high)
    return result


class ConstraintCounts(NamedTuple):
    """How many entries test a value, and how many a range, by channel."""

    values: I64
    ranges: I64

    @classmethod
    def of(cls, lists: Sequence[Entries]) -> ConstraintCounts:
        """The tests of entries, counted."""
        is_test = np.concatenate([is_testable(each) for each in lists])
        channels = np.concatenate([each.channel for each in lists])[is_test]
        is_value = np.concatenate([each.low == each.high for each in lists])[is_test]
        room = int(channels.max(initial=-1)) + 1
        return cls(
            np.bincount(channels[is_value], minlength=room),
            np.bincount(channels[~is_value], minlength=room),
        )

    def on(self, channel: int) -> F64:
        """How many entries test a value of a channel, and how many a range."""
        if channel >= len(self.values):
            return np.zeros(2)
        return np.array([self.values[channel], self.ranges[channel]], np.float64)


def best_order(tests: ConstraintCounts) -> list[int]:
    """The channels that are tested, those with the fewest don't-cares first."""
    weights = 2 * tests.values + tests.ranges
    return [each for each in np.argsort(-weights, kind="stable").tolist() if weights[each]]


def estimated_steps(order: Sequence[int], tests: ConstraintCounts, entries: int) -> float:
    """An estimate of the nodes that a search visits, with levels in some order.

    At a level it visits at most twice as many as at the one above, and no more than there are
    entries left.
    """
    left, width, steps = float(entries), 1.0, 1.0
    for channel in order:
        values, ranges = tests.on(channel) / max(1, entries)
        cares = min(1.0, values + ranges)
        left *= 1.0 - cares + VALUE_PASSES * values + RANGE_PASSES * ranges
        width = min(2.0 * width, left)
        steps += width
    return steps
