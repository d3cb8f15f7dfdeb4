from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.range_joining import least_harmful_first, overlapping_joined
from tidegate.matching.summary.tables import ChannelKind


def order(rows: list[tuple[float, float]], lengths: list[int], common: list[int]) -> list[int]:
    lows, highs = np.array(rows, np.float64).T
    pairs: list[int] = least_harmful_first(
        ChannelKind.NUMBER, lows, highs, np.array(lengths), np.array(common)
    ).tolist()
    return pairs


def test_close_values_are_joined_before_distant_ones() -> None:
    assert order([(0, 0), (90, 90), (91, 91)], [1, 1, 1], [0, 0]) == [1, 0]


def test_rows_of_few_members_are_joined_before_those_of_many() -> None:
    assert order([(0, 0), (5, 5), (10, 10)], [50, 1, 1], [0, 0]) == [1, 0]


def test_rows_that_share_their_members_are_joined_first() -> None:
    touching = [(0.0, 1.0), (math.nextafter(1, 2), 2.0), (math.nextafter(2, 3), 3.0)]
    assert order(touching, [9, 9, 9], [2, 8]) == [1, 0]


@given(
    st.lists(
        st.floats(allow_nan=False) | st.sampled_from([math.inf, -math.inf, 1e308, -1e308]),
        min_size=4,
        unique=True,
        max_size=12,
    )
)
def test_any_bounds_have_an_order(bounds: list[float]) -> None:
    bounds = sorted(bounds)[: len(bounds) // 2 * 2]
    rows = list(zip(bounds[::2], bounds[1::2], strict=True))
    found = order(rows, [1] * len(rows), [0] * (len(rows) - 1))
    assert sorted(found) == list(range(len(rows) - 1))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), min_size=1))
def test_overlapping_ranges_are_joined(pairs: list[tuple[int, int]]) -> None:
    lows = np.array([low for low, _ in pairs], np.float64)
    highs = lows + np.array([width for _, width in pairs])
    joined = list(zip(*(each.tolist() for each in overlapping_joined(lows, highs)), strict=True))
    assert all(a[1] < b[0] for a, b in pairwise(joined))
    for low, high in zip(lows, highs, strict=True):
        assert sum(a <= low and high <= b for a, b in joined) == 1
    covered = {x for a, b in joined for x in np.arange(a, b + 0.5, 0.5).tolist()}
    needed = {
        x for a, b in zip(lows, highs, strict=True) for x in np.arange(a, b + 0.5, 0.5).tolist()
    }
    assert covered == needed
