from __future__ import annotations

import math
import sys
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import EDGE_NUMBERS, EDGE_TIMES
from tidegate.language.values import Value, kind_of, to_us
from tidegate.matching.summary.channels import (
    DOMAINS,
    KIND_OF_TYPE,
    after,
    as_float,
    before,
    is_exact,
    just_after,
    rounded_down,
    rounded_up,
)
from tidegate.matching.summary.tables import ChannelKind

integers = st.integers(-(2**63), 2**63 - 1)
numbers = st.sampled_from(EDGE_NUMBERS) | integers | st.floats(allow_nan=False)


@given(numbers | st.sampled_from(EDGE_TIMES) | st.datetimes(timezones=st.just(UTC)))
def test_bounds_are_rounded_outward(value: Value) -> None:
    exact = to_us(value) if isinstance(value, datetime) else value
    assert not isinstance(exact, str)
    low, high = rounded_down(value), rounded_up(value)
    assert low <= exact <= high
    assert low <= as_float(value) <= high
    assert high <= math.nextafter(low, math.inf)
    assert not is_exact(low) or low == high


@given(numbers, numbers)
def test_rounding_keeps_the_order(one: float, other: float) -> None:
    one, other = sorted([one, other])
    assert as_float(one) <= as_float(other)
    assert rounded_down(one) <= as_float(other)
    assert rounded_up(other) >= as_float(one)


@given(integers)
def test_an_exact_float_is_of_one_value(value: int) -> None:
    if is_exact(as_float(value)):
        assert as_float(value) == value
        assert as_float(value + 1) != as_float(value) != as_float(value - 1)


def test_each_value_has_its_kind() -> None:
    for value in (True, 1, 1.5, "a", EDGE_TIMES[0]):
        assert KIND_OF_TYPE[type(value)].name.startswith(kind_of(value).name[:4])


@pytest.mark.parametrize("kind", DOMAINS)
def test_neighbours(kind: ChannelKind) -> None:
    values = np.array([0.0])
    step = 1.0 if kind is not ChannelKind.NUMBER else math.nextafter(0, 1)
    assert (before(kind, values)[0], after(kind, values)[0]) == (-step, step)
    large = np.array([2.0**60])
    assert after(kind, large)[0] == math.nextafter(2.0**60, math.inf)
    assert before(kind, after(kind, large))[0] == 2.0**60
    assert after(kind, np.array([sys.float_info.max]))[0] == math.inf
    for value in (0.0, 2.0**53, -(2.0**53), 2.0**60, sys.float_info.max, -math.inf):
        assert just_after(kind, value) == after(kind, np.array([value]))[0]
