"""The small pieces of the kernels, against what Python says."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.kernels import as_probe, cell_of, in_set, mix, order_by_event, satisfied

floats = st.floats(allow_nan=False)
small = st.integers(-5, 5).map(float)


@given(small | floats, small | floats, small | floats)
def test_a_constraint_is_the_inside_or_the_outside(x: float, low: float, high: float) -> None:
    wanted = low <= x <= high if low <= high else x >= low or x <= high
    assert satisfied(x, low, high) == wanted


@given(small | floats, small | floats)
def test_what_is_absent_satisfies_nothing(low: float, high: float) -> None:
    assert not satisfied(math.nan, low, high)
    assert not satisfied(0.0, math.nan, math.nan)


@given(floats, floats, floats)
def test_a_probe_lets_all_pass_that_the_bounds_do(x: float, low: float, high: float) -> None:
    below, above = as_probe(low, high)
    if low <= high:
        assert float(below) <= low
        assert float(above) >= high
        if low <= x <= high:
            assert float(below) <= x <= float(above)
    else:
        assert below > above  # which the plain check lets nothing pass


def test_a_probe_of_what_nothing_satisfies() -> None:
    below, above = as_probe(math.nan, math.nan)
    assert not below <= above


@given(st.lists(st.sets(st.integers(0, 6)), min_size=1), st.data())
def test_sets(sets: list[set[int]], data: st.DataObject) -> None:
    first = np.cumsum([0, *map(len, sets)]).astype(np.int32)
    values = np.array([value for each in sets for value in sorted(each)], np.float64)
    chosen = data.draw(st.integers(0, len(sets) - 1))
    for wanted in range(8):
        inside = wanted in sets[chosen]
        assert in_set(float(chosen), wanted, wanted, first, values) == inside
        assert in_set(float(chosen), wanted + 1.0, wanted - 1.0, first, values) != inside
    assert not in_set(math.nan, 0.0, 0.0, first, values)
    assert not in_set(math.nan, 1.0, -1.0, first, values)


@given(st.sets(small | st.floats(-5, 5)), small | floats)
def test_a_value_falls_into_the_cell_between_its_edges(edges: set[float], x: float) -> None:
    ordered = sorted(edges)
    before = [math.inf, math.inf]  # edges of other bitmaps stand before these
    array = np.array([*before, *ordered])
    assert cell_of(array, len(before), len(ordered) + 1, x) == bisect_right(ordered, x)
    assert cell_of(array, len(before), len(ordered) + 1, math.nan) == len(ordered) + 1


@given(st.sets(st.integers(0, 2**64 - 1), max_size=50))
def test_mixing_keeps_words_apart(words: set[int]) -> None:
    mixed = {int(mix(np.uint64(word))) for word in words}
    assert len(mixed) == len(words)


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(0, 4))
def test_pairs_in_the_order_of_their_events(events: list[int], room: int) -> None:
    """Those of one event stay in order, and what is behind the pairs stays as it is."""
    count = len(events)
    out_event = np.array([*events, *[9] * room], np.int32)
    subscription = np.arange(count + room, dtype=np.int32)
    flags = (np.arange(count + room) % 7).astype(np.uint8)
    order_by_event(count, 6, out_event, subscription, flags)
    wanted = sorted(range(count), key=lambda place: events[place])
    assert out_event.tolist() == [*sorted(events), *[9] * room]
    assert subscription.tolist() == [*wanted, *range(count, count + room)]
    assert flags[:count].tolist() == [place % 7 for place in wanted]
