"""Bitmaps leave no entry out that a value of their bin could satisfy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.bitmaps import MAP_SHARE_MIN, Bitmaps
from tidegate.matching.columnar.kernels.scan import bin_of
from tidegate.matching.rows.kernels.constraints import satisfied
from tidegate.matching.rows.kernels.flags import SET

Bounds = tuple[float, float]
ends = st.integers(-5, 5).map(float) | st.sampled_from([math.inf, -math.inf, math.nan])
columns = st.lists(st.none() | st.tuples(ends, ends), min_size=1, max_size=90)


def built(*channels: list[Bounds | None]) -> tuple[list[int], dict[str, Any]]:
    """A cluster whose entries have these bounds on channels 0, 1 and so on; returns their order."""
    rows = [
        (owner, channel, *bounds)
        for channel, column in enumerate(channels)
        for owner, bounds in enumerate(column)
        if bounds is not None
    ]
    owner, channel, low, high = np.array(rows, np.float64).reshape(-1, 4).T
    maps = Bitmaps()
    order = maps.add_cluster(
        len(channels[0]), owner.astype(np.int64), channel.astype(np.int32), low, high
    )
    return order.tolist(), maps.arrays()


def has(arrays: dict[str, Any], which: int, count: int, place: int, x: float) -> bool:
    """Whether the bit of an entry is set in the bin of a value."""
    bins, words = int(arrays["map_bins"][which]), (count + 63) // 64
    bin_index = int(bin_of(arrays["edge"], int(arrays["map_edge"][which]), bins, x))
    word = arrays["word"][int(arrays["map_word"][which]) + bin_index * words + (place >> 6)]
    return bool(int(word) >> (place & 63) & 1)


@given(columns)
def test_an_entry_that_could_be_satisfied_has_a_bit(column: list[Bounds | None]) -> None:
    order, arrays = built(column)
    assert sorted(order) == list(range(len(column)))
    for which in range(len(arrays["map_channel"])):
        for place, entry in enumerate(order):
            bounds = column[entry]
            for x in [math.nan, math.inf, -math.inf, *(half / 2 for half in range(-12, 13))]:
                if bounds is None or satisfied(x, *bounds):
                    assert has(arrays, which, len(column), place, x)


def test_bits_tell_entries_apart() -> None:
    """Most of them: that is what they are for."""
    count = 640
    _, arrays = built([(float(n), n + 1.0) for n in range(count)])
    bits = [has(arrays, 0, count, place, 100.5) for place in range(count)]
    assert 1 <= sum(bits) < count / 8


def test_the_most_selective_channel_is_first() -> None:
    count = 100
    wide: list[Bounds | None] = [(0.0, count + n % 7.0) for n in range(count)]
    narrow: list[Bounds | None] = [(float(n), float(n)) for n in range(count)]
    _, arrays = built(wide, narrow)
    assert arrays["map_channel"].tolist() == [1, 0]


def test_spans_say_where_bits_are() -> None:
    count = 640
    _, arrays = built([(float(n), n + 1.0) for n in range(count)])
    bins, words = int(arrays["map_bins"][0]), count // 64
    for bin_index in range(bins + 1):
        row = arrays["word"][bin_index * words : (bin_index + 1) * words]
        with_bits = np.flatnonzero(row)
        span = range(int(arrays["span_first"][bin_index]), int(arrays["span_last"][bin_index]))
        assert set(with_bits.tolist()) <= set(span)
    assert arrays["span_last"][bins] == 0  # all entries need a value, so none has the last bitmap


def test_what_few_entries_ask_for_has_no_bitmaps() -> None:
    count = 200
    few = int(count * MAP_SHARE_MIN)
    column: list[Bounds | None] = [(0.0, 1.0) if n < few else None for n in range(count)]
    order, arrays = built(column)
    assert order == list(range(count))
    assert len(arrays["map_channel"]) == 0
    assert arrays["map_first"].tolist() == [0, 0]


def test_sets_have_no_bitmaps() -> None:
    maps = Bitmaps()
    one = np.zeros(1, np.int64)
    maps.add_cluster(1, one, np.array([SET], np.int32), np.zeros(1), np.zeros(1))
    maps.add_empty()
    arrays = maps.arrays()
    assert arrays["map_first"].tolist() == [0, 0, 0]
    assert len(arrays["word"]) == len(arrays["edge"]) == 0
