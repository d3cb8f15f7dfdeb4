"""Constraints hold exactly when the comparisons hold that they are made of."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.language.syntax import Operator
from tidegate.matching.rows.entries.bounds import bounds, pattern_bounds, widened
from tidegate.matching.rows.entries.channels import NUMBER, PATTERNS, PRESENT, Channels
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.rows.kernels.constraints import satisfied
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.cells import StringPool

COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_EQUAL: operator.ge,
}
comparisons = st.sampled_from(list(COMPARE))
floats = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, math.inf, -math.inf, 5e-324])


def near(value: float) -> list[float]:
    return [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf), 0.0]


@given(comparisons, floats, floats)
def test_bounds_are_the_comparison(which: Operator, value: float, other: float) -> None:
    low, high, never = bounds(which, np.array([value]), whole=False)
    for x in [other, math.inf, -math.inf, *near(value)]:
        holds = not never[0] and bool(satisfied(x, low[0], high[0]))
        assert holds == COMPARE[which](x, value), x


@given(comparisons, st.integers(-(2**50), 2**50), st.integers(-3, 3))
def test_whole_bounds_are_the_comparison(which: Operator, value: int, step: int) -> None:
    low, high, never = bounds(which, np.array([float(value)]), whole=True)
    assert not never.any()
    holds = bool(satisfied(float(value + step), low[0], high[0]))
    assert holds == COMPARE[which](value + step, value)


@given(comparisons, st.integers(-(2**63), 2**63 - 1), st.integers(-3000, 3000))
def test_widened_bounds_lose_nothing(which: Operator, value: int, step: int) -> None:
    """Large integers share a float: a comparison that holds must still pass."""
    x = max(-(2**63), min(2**63 - 1, value + step))
    low, high = widened(which, np.array([float(value)]))
    if COMPARE[which](x, value):
        assert satisfied(float(x), low[0], high[0])


def test_channels_are_numbered_as_they_come() -> None:
    channels = Channels()
    numbers = [channels.channel("a", NUMBER), channels.channel("a", STRING)]
    assert [*numbers, channels.channel("a", NUMBER), channels.channel("b", PRESENT)] == [0, 1, 0, 2]
    assert channels.of_attribute["a"] == [(NUMBER, 0), (STRING, 1)]
    before = channels.known_lifetime
    assert (before, channels.lifetime(), channels.known_lifetime) == (None, 3, 3)
    assert channels.channel("a", PATTERNS) == 4 | SET
    assert channels.columns == 5


def test_variables_and_programs_are_known_again() -> None:
    channels = Channels()
    assert [channels.variable(name) for name in ("x", "y", "x")] == [0, 1, 0]
    first, second = channels.add_program((1, 2)), channels.add_program((3,))
    assert (first, second, channels.add_program((1, 2))) == (0, 2, 0)
    assert channels.program.tolist() == [1, 2, 3, 0]


def test_patterns() -> None:
    channels, pool = Channels(), StringPool(["a%", "b", "bad\\"])
    channel = channels.channel("s", PATTERNS)
    cells = np.array([0, 1, 0, 2])
    low, high, never = pattern_bounds("s", Operator.LIKE, cells, channels, pool)
    assert channel & SET
    assert low.tolist()[:3] == high.tolist()[:3] == [low[0], low[1], low[0]]
    assert never.tolist() == [False, False, False, True]
    outside_low, outside_high, _ = pattern_bounds("s", Operator.NOT_LIKE, cells[:1], channels, pool)
    assert outside_low[0] - 1 == low[0] == outside_high[0] + 1
    channels.flush()
    numbers = {int(each) for each in channels.satisfied("s", "ab")}
    assert numbers == {int(low[0])}


@pytest.mark.parametrize("which", [Operator.LESS, Operator.GREATER])
def test_nothing_is_beyond_infinity(which: Operator) -> None:
    end = math.inf if which is Operator.GREATER else -math.inf
    _, _, never = bounds(which, np.array([end, -end, 0.0]), whole=False)
    assert never.tolist() == [True, False, False]
