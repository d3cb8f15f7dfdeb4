"""Envelopes may be too wide, never too narrow; and what is sure must be so."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import neighbours, numbers
from support.time_functions import (
    Interval,
    Ranges,
    block_of,
    evolving_functions,
    functions,
    inside,
    range_rows,
    ranges,
)
from tidegate.language.expressions import evaluate
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node, Operator, Predicate, all_of
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.rows.entries.blocks import entries_of
from tidegate.matching.rows.entries.channels import NUMBER, Channels
from tidegate.matching.rows.kernels.envelopes import (
    WindowArrays,
    elapsed,
    envelope,
    margin_of,
)
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.kernels.motion import EVERY
from tidegate.matching.rows.kernels.program_intervals import INTERVAL_STACK
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000
COMPARISONS = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]


# -- what `t` can be ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("begin", "end", "timeless", "since", "pin", "expected"),
    [
        (5_000_000, 9_000_000, False, 2_000_000, EVERY, (3, 7)),
        (5_000_000, 5_000_000, False, 2_000_000, EVERY, (3, 3)),
        (5_000_000, 9_000_000, True, 2_000_000, EVERY, (0, 7)),
        (1_000_000, 1_500_000, True, 2_000_000, EVERY, (-1, 0)),
        (1_000_000, 9_000_000, False, 2_000_000, EVERY, (-1, 7)),
        (0, -1, True, 2_000_000, EVERY, (0, 0)),
        (5_000_000, 9_000_000, False, NO_TIME, EVERY, (0, 0)),
        # every two seconds
        (5_000_000, 9_000_000, False, 2_000_000, EVERY + 2_000_000, (2, 6)),
        (6_000_000, 7_999_999, False, 2_000_000, EVERY + 2_000_000, (4, 4)),
        (1_000_000, 9_000_000, True, 2_000_000, EVERY + 2_000_000, (-2, 6)),
        (5_000_000, 9_000_000, False, NO_TIME, EVERY + 2_000_000, (0, 0)),
        # as of a time, but for events before it
        (5_000_000, 9_000_000, False, 2_000_000, 4_000_000, (2, 2)),
        (5_000_000, 9_000_000, False, 2_000_000, 8_000_000, (3, 6)),
        (5_000_000, 9_000_000, True, 2_000_000, 4_000_000, (0, 2)),
        (5_000_000, 9_000_000, False, NO_TIME, 4_000_000, (0, 0)),
    ],
)
def test_what_t_can_be(
    begin: int, end: int, timeless: bool, since: int, pin: int, expected: Interval
) -> None:
    assert elapsed(begin, end, timeless, np.int64(since), np.int64(pin)) == expected


# -- envelopes ------------------------------------------------------------------------------------


def enclosed(
    node: Node, since: int | None, times: tuple[int, int, bool], known: Ranges | None = None
) -> tuple[float, float, float, float]:
    """The envelope of a conjunction's constraints on `x`."""
    channels = Channels()
    block = block_of(node, channels)
    channel = channels.channel("x", NUMBER)
    start = np.array([NO_TIME if since is None else since], np.int64)
    entries = entries_of(block, np.zeros(1, np.int32), start, np.array([EVERY]))
    program = np.array([*channels.program, 0], np.int32)
    window = WindowArrays(np.array(times, np.int64), range_rows(known or {}, channels))
    return envelope(
        entries.motion, 0, len(entries.motion), program, 0, np.int64(channel), window,
        np.empty(INTERVAL_STACK),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected", "sure"),
    [
        ("x >= -3 + t", (7, math.inf), (17, math.inf)),
        ("x > -3 + t", (7, math.inf), (math.nextafter(17, 18), math.inf)),
        ("x <= 3 + t", (-math.inf, 23), (-math.inf, 13)),
        ("x < 3 + t", (-math.inf, 23), (-math.inf, math.nextafter(13, 12))),
        ("x between -3 + t and 3 + t", (7, 23), (17, 13)),
        ("x between -30 + t and 30 + t", (-20, 50), (-10, 40)),
        ("x = 2 * t", (20, 40), (40, 20)),
        ("x = 5 - 0 * t", (5, math.nextafter(5, 6)), (5, 5)),
        # what is compared with constants counts as well
        ("x > t and x < 12", (10, 12), (math.nextafter(20, 21), math.nextafter(12, 11))),
        # an empty envelope is a sliver somewhere
        ("x > t and x < 3", (10, math.nextafter(10, 11)), (20, 3)),
    ],
)
def test_envelopes_of_ten_to_twenty_seconds(text: str, expected: Interval, sure: Interval) -> None:
    found = enclosed(parse_filter(text), 0, (10 * SECOND, 20 * SECOND, False))
    assert found[:2] == expected
    assert found[2:] == pytest.approx(sure, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x >= exp(t * 1000)", (sys.float_info.max, math.inf)),
        ("x <= -exp(t * 1000)", (-math.inf, -sys.float_info.max)),
    ],
)
def test_an_infinite_bound_lets_infinity_pass(text: str, expected: Interval) -> None:
    found = enclosed(parse_filter(text), 0, (10 * SECOND, 20 * SECOND, False))
    assert found[:2] == expected


@pytest.mark.parametrize("text", ["x != t", "x < @load + t", "x < 1 / (t - 15)"])
def test_nothing_is_sure(text: str) -> None:
    times, known = (10 * SECOND, 20 * SECOND, False), {"load": (1.0, 2.0)}
    *_, low, _ = enclosed(parse_filter(text), 0, times, known)
    assert low == math.inf


def test_what_never_has_a_value_lets_no_usual_number_pass() -> None:
    low, _, sure_low, _ = enclosed(
        parse_filter("x < 5 and x > ln(-t)"), 0, (10 * SECOND, 20 * SECOND, False)
    )
    assert low == sys.float_info.max
    assert sure_low == math.inf


def test_an_envelope_is_of_one_channel() -> None:
    node = parse_filter("x > t and y < -t")
    assert enclosed(node, 0, (10 * SECOND, 20 * SECOND, False))[:2] == (10, math.inf)


def test_events_without_a_time_are_enclosed_too() -> None:
    node = parse_filter("x between t and t + 1")
    assert enclosed(node, 0, (10 * SECOND, 20 * SECOND, True))[:2] == (0, 21)
    assert enclosed(node, 0, (0, -1, True))[:2] == (0, 1)
    assert enclosed(node, None, (10 * SECOND, 20 * SECOND, False))[:2] == (0, 1)


comparisons = st.builds(
    Predicate, st.just("x"), st.sampled_from(COMPARISONS), st.tuples(functions())
)
evolving_comparisons = st.builds(
    Predicate, st.just("x"), st.sampled_from(COMPARISONS), st.tuples(evolving_functions())
)
conjunctions = st.tuples(
    st.lists(comparisons, max_size=1), evolving_comparisons, st.lists(comparisons, max_size=1)
).map(lambda drawn: all_of([*drawn[0], drawn[1], *drawn[2]]))
time_us = st.sampled_from([0, SECOND, -SECOND, 60 * SECOND]) | st.integers(-(10**10), 10**15)
windows = st.tuples(time_us, time_us, st.booleans()).map(
    lambda drawn: (min(drawn[:2]), max(drawn[:2]), drawn[2])
)
no_times = st.just((0, -1, True))


@st.composite
def moments(draw: st.DrawFn, times: tuple[int, int, bool], known: Ranges) -> Moment:
    """A moment of a time window; variables may also be taken away."""
    begin, end, timeless = times
    drawn: int | None = None
    if begin <= end and not (timeless and draw(st.booleans())):
        drawn = min(max(draw(st.sampled_from([begin, end]) | time_us), begin), end)
    names = draw(st.sets(st.sampled_from(sorted(known)))) if known else set()
    return Moment(drawn, {name: inside(known[name], draw(numbers)) for name in names})


@given(conjunctions, st.none() | time_us, windows | no_times, ranges, st.data())
def test_an_envelope_lets_pass_what_ever_passes(
    node: Node, since: int | None, times: tuple[int, int, bool], known: Ranges, data: st.DataObject
) -> None:
    """And what is sure passes at every moment."""
    low, high, sure_low, sure_high = enclosed(node, since, times, known)
    assert low < high
    subscription = Subscription("s", Filter(node), {}, since)
    seen = data.draw(st.lists(moments(times, known), min_size=1, max_size=4))
    environments = [subscription.environment(moment) for moment in seen]
    values: list[Value | None] = [low, high, sure_low, sure_high, data.draw(numbers)]
    for predicate in predicates_of(node):
        values += [evaluate(predicate.operands[0], environment) for environment in environments]
    for x in {near for value in values if value is not None for near in neighbours(value)}:
        assert isinstance(x, (int, float))
        passes = [holds(node, {"x": x}, environment) for environment in environments]
        number = float(x)
        assert low <= number <= high or not any(passes)
        if sure_low <= number <= sure_high and abs(number) < EXACT_MAX:
            assert all(passes)


# -- margins --------------------------------------------------------------------------------------


def envelope_bounds(drawn: tuple[list[float], float, float]) -> list[float]:
    """Bounds of an envelope and of what is sure, which may be nothing."""
    (low, high), sure_low, sure_high = drawn
    return [low, high, max(low, sure_low), min(high, sure_high)]


floats = numbers.map(float)
two = st.lists(floats, min_size=2, max_size=2, unique=True).map(sorted)


@given(st.tuples(two, floats, floats).map(envelope_bounds), st.lists(numbers, max_size=6))
@example([0.0, 1.0, 0.1, 0.9], [0.1, 0.9, 0.09999999999999999])
@example([0.0, 1e-300, 1e-310, 1e-301], [1e-305])
@example([-math.inf, 5.0, -math.inf, 4.0], [4, 4.5, -1e308])
@example([float(EXACT_MAX), math.inf, EXACT_MAX + 2.0, math.inf], [EXACT_MAX + 4])
def test_what_lies_inside_by_the_margin_is_sure(bounds: list[float], values: list[float]) -> None:
    low, high, sure_low, sure_high = bounds
    margin = float(margin_of(low, high, sure_low, sure_high))
    assert margin >= 0.0
    near = [math.nextafter(end, to) for end in bounds[2:] for to in (-math.inf, end, math.inf)]
    for x in map(float, [*values, *near]):
        if low <= x <= high and low + margin <= x <= high - margin:
            assert sure_low <= x <= sure_high


@pytest.mark.parametrize(
    ("bounds", "least", "most"),
    [
        ((0.0, 10.0, 1.0, 9.0), 1.0, 1.000001),
        ((0.0, 10.0, 1.0, 7.0), 3.0, 3.000001),
        ((2.0, math.inf, 2.5, math.inf), 0.5, 0.500001),
        ((0.0, 10.0, 0.0, 10.0), 0.0, 0.0),
        ((0.0, 10.0, 6.0, 4.0), math.inf, math.inf),
        ((float(EXACT_MAX), math.inf, EXACT_MAX + 2.0, math.inf), math.inf, math.inf),
    ],
)
def test_margins(bounds: tuple[float, float, float, float], least: float, most: float) -> None:
    assert least <= float(margin_of(*bounds)) <= most
