"""Constraints of an entry against their plain definition: bounds, probes of 32 bits, sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.kernel_entries import bounds as edge_bounds
from support.kernel_entries import numbers as edge_numbers
from tidegate.matching.rows.kernels.constraints import as_probe, in_set, satisfied

FLOAT32_MAX = float(np.finfo(np.float32).max)

floats = edge_numbers | st.floats(allow_nan=False)
values = floats | st.just(math.nan)
bounds = edge_bounds | st.tuples(floats, floats)


def is_within(x: float, low: float, high: float) -> bool:
    """What a constraint means, by the table in `constraints.py`."""
    if any(map(math.isnan, (x, low, high))):
        return False
    return low <= x <= high if low <= high else x <= high or low <= x


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [
        (1.0, 2.0, [1.0, 1.5, 2.0]),
        (1.5, 1.5, [1.5]),
        (-math.inf, 1.0, [-math.inf, 0.5, 1.0]),
        (2.0, 1.0, [-math.inf, 0.5, 1.0, 2.0, math.inf]),  # the outside of 1 to 2
        (math.nan, math.nan, []),
    ],
)
def test_values_that_satisfy_bounds(low: float, high: float, inside: list[float]) -> None:
    tried = [-math.inf, 0.5, 1.0, 1.5, 2.0, math.inf, math.nan]
    assert [x for x in tried if satisfied(x, low, high)] == inside


@given(values, bounds)
def test_a_value_satisfies_bounds_by_their_definition(
    x: float, bounds: tuple[float, float]
) -> None:
    assert satisfied(x, *bounds) == is_within(x, *bounds)


@given(floats, floats, floats)
@example(1e300, 1e300, 1e300)
@example(-1e300, -1e300, -1e300)
def test_what_satisfies_bounds_passes_their_probe(x: float, low: float, high: float) -> None:
    below, above = as_probe(low, high)
    if low <= x <= high:
        assert below <= x <= above


@given(floats, floats)
@example(FLOAT32_MAX * 2, FLOAT32_MAX * 3)
@example(-FLOAT32_MAX * 3, -FLOAT32_MAX * 2)
def test_a_probe_is_as_narrow_as_floats_of_32_bits_allow(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    below, above = (np.float32(each) for each in as_probe(low, high))
    inf = np.float32(math.inf)
    with np.errstate(over="ignore"):  # the neighbour of the greatest float is infinity
        after_below, before_above = np.nextafter(below, inf), np.nextafter(above, -inf)
    assert float(below) <= low
    assert low == math.inf or float(after_below) > low
    assert high <= float(above)
    assert high == -math.inf or float(before_above) < high


@pytest.mark.parametrize(("low", "high"), [(2.0, 1.0), (math.nan, math.nan), (math.nan, 1.0)])
def test_nothing_passes_the_probe_of_bounds_without_an_inside(low: float, high: float) -> None:
    assert [float(each) for each in as_probe(low, high)] == [math.inf, -math.inf]


@given(st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=4), st.integers(0, 9), st.data())
def test_a_set_has_a_number_or_not(sets: list[set[int]], number: int, data: st.DataObject) -> None:
    first = np.array([0, *np.cumsum([len(each) for each in sets])], np.int32)
    members = np.array([float(each) for some in sets for each in sorted(some)])
    place = data.draw(st.integers(0, len(sets) - 1))
    within = in_set(float(place), float(number), float(number), first, members)
    without = in_set(float(place), number + 1.0, number - 1.0, first, members)
    assert within == (number in sets[place])
    assert without == (number not in sets[place])


def test_an_event_without_a_set_satisfies_nothing() -> None:
    first, members = np.array([0, 1], np.int32), np.array([3.0])
    assert not in_set(math.nan, 3.0, 3.0, first, members)
    assert not in_set(math.nan, 4.0, 2.0, first, members)
