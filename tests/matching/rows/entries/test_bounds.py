"""Bounds say what comparisons say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import EDGE_NUMBERS
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import Operator
from tidegate.matching.rows.entries.bounds import as_floats, bounds, pattern_bounds, widened
from tidegate.matching.rows.entries.channels import PATTERNS, Channels
from tidegate.matching.rows.entries.operands import COMPARISONS
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER
from tidegate.matching.rows.kernels.constraints import in_set, satisfied
from tidegate.matching.rows.store.cells import StringPool

operators = st.sampled_from(list(COMPARISONS))
floats = st.sampled_from([float(each) for each in EDGE_NUMBERS]) | st.floats(allow_nan=False)
integers = st.integers(-(2**53) + 2, 2**53 - 2)


def near(value: float) -> list[float]:
    """A value, those next to it, and the last ones there are."""
    return [
        value,
        math.nextafter(value, math.inf),
        math.nextafter(value, -math.inf),
        math.inf,
        -math.inf,
    ]


@given(operators, floats)
def test_floats_within_the_bounds_are_those_that_satisfy(operator: Operator, value: float) -> None:
    low, high, never = bounds(operator, np.array([value]), whole=False)
    for x in near(value):
        expected = satisfies(x, operator, [value])
        assert (not never[0] and satisfied(x, low[0], high[0])) == expected


@given(operators, integers, st.integers(-2, 2))
def test_whole_numbers_step_by_one(operator: Operator, value: int, step: int) -> None:
    low, high, never = bounds(operator, np.array([float(value)]), whole=True)
    assert not never[0]
    expected = satisfies(value + step, operator, [value])
    assert satisfied(float(value + step), low[0], high[0]) == expected


@given(operators, st.integers(2**53, 2**62), st.integers(-3, 3))
def test_wide_bounds_lose_no_integer(operator: Operator, value: int, step: int) -> None:
    low, high = widened(operator, np.array([float(value)]))
    if satisfies(value + step, operator, [value]):
        assert satisfied(float(value + step), low[0], high[0])


@pytest.mark.parametrize("operator", [Operator.STARTS_WITH, Operator.NOT_STARTS_WITH])
def test_bounds_of_patterns_ask_for_their_number(operator: Operator) -> None:
    channels, pool = Channels(), StringPool()
    channels.channel("name", PATTERNS)
    texts = ["a", "b", "a", "ab"]
    cells = np.array([pool.number(text) for text in texts])
    low, high, never = pattern_bounds("name", operator, cells, channels, pool)
    channels.flush()
    assert not never.any()
    for value in ("abc", "b", ""):
        numbers = channels.satisfied("name", value).astype(np.float64)
        set_first = np.array([0, len(numbers)], np.int32)
        for index, text in enumerate(texts):
            found = in_set(0.0, low[index], high[index], set_first, numbers)
            assert found == satisfies(value, operator, [text])


def test_bad_patterns_never_hold() -> None:
    channels, pool = Channels(), StringPool()
    channels.channel("name", PATTERNS)
    cells = np.array([pool.number(text) for text in ("a%", "bad \\")])
    *_, never = pattern_bounds("name", Operator.LIKE, cells, channels, pool)
    assert never.tolist() == [False, True]


def test_cells_as_floats() -> None:
    numbers = np.array([-0.0, 2.5, math.inf])
    found = as_floats(FLOAT, numbers.view(np.int64))
    assert found.tolist() == [0.0, 2.5, math.inf]
    assert math.copysign(1, found[0]) == 1  # there is one zero
    assert as_floats(INTEGER, np.array([-3, 2**53 + 1])).tolist() == [-3.0, float(2**53 + 1)]
