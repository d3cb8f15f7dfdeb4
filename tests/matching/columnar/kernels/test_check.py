"""Constraints of one entry: bounds, their short form, sets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.rows.kernels.constraints import as_probe, in_set, satisfied

floats = st.floats(allow_nan=False)


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [
        (1.0, 2.0, [1.0, 1.5, 2.0]),
        (-math.inf, 1.0, [-math.inf, 0.5, 1.0]),
        (2.0, 1.0, [-math.inf, 0.5, 1.0, 2.0, math.inf]),  # the outside of 1 to 2
        (math.nan, math.nan, []),
    ],
)
def test_what_satisfies_bounds(low: float, high: float, inside: list[float]) -> None:
    values = [-math.inf, 0.5, 1.0, 1.5, 2.0, math.inf, math.nan]
    assert [x for x in values if satisfied(x, low, high)] == inside


@given(floats, floats, floats)
def test_what_satisfies_bounds_passes_their_short_form(x: float, low: float, high: float) -> None:
    below, above = as_probe(low, high)
    if low <= x <= high:
        assert below <= x <= above
    if low > high:
        assert below > above


def test_the_short_form_is_as_narrow_as_floats_of_32_bits_are() -> None:
    assert [float(each) for each in as_probe(0.5, 1.0)] == [0.5, 1.0]
    below, above = as_probe(0.1, 0.1)
    assert np.nextafter(below, np.float32(1)) == above


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
