"""Counting tests, and the order of the levels that follows from them."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.tree.level_order import (
    ConstraintCounts,
    best_order,
    estimated_steps,
    is_testable,
)


def entries(*constraints: tuple[int, float, float]) -> Entries:
    """One entry for each constraint: channel, low, high."""
    count = len(constraints)
    channel, low, high = zip(*constraints, strict=True)
    return Entries(
        subscription=np.arange(count, dtype=np.int32),
        flags=np.zeros(count, np.int32),
        first=offsets(np.ones(count)),
        channel=np.array(channel, np.int32),
        low=np.array(low, np.float64),
        high=np.array(high, np.float64),
        motion_first=np.zeros(count + 1, np.int32),
        motion=np.zeros(0),
    )


def test_values_and_ranges_are_tests_but_no_outsides_and_sets() -> None:
    some = entries((0, 1, 1), (0, 1, 2), (0, 2, 1), (1 | SET, 3, 3), (0, np.nan, np.nan))
    assert is_testable(some).tolist() == [True, True, False, False, True]


def test_tests_are_counted_by_channel() -> None:
    lists = [entries((3, 1, 1), (3, 1, 2), (1, 5, 5)), entries((1 | SET, 3, 3), (3, 7, 7))]
    counts = ConstraintCounts.of(lists)
    assert [counts.on(channel).tolist() for channel in (1, 3, 9)] == [[1, 0], [2, 1], [0, 0]]


def test_the_fewest_dont_cares_come_first_and_a_range_counts_half() -> None:
    some = entries((0, 1, 2), (0, 2, 3), (0, 3, 4), (2, 1, 1), (2, 2, 2), (5, 1, 2))
    counts = ConstraintCounts.of([some])
    assert best_order(counts) == [2, 0, 5]


def test_an_order_with_dont_cares_first_is_estimated_to_take_more_steps() -> None:
    rare = range(1, 6)
    some = entries(*[(0, 1, 1)] * 100, *((channel, 1, 1) for channel in rare))
    counts = ConstraintCounts.of([some])
    good, bad = (estimated_steps(order, counts, 105) for order in ([0, *rare], [*rare, 0]))
    assert 1.25 * good < bad
    assert estimated_steps([], counts, 0) == pytest.approx(1.0)
