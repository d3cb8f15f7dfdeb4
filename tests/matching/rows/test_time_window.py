from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.rows.time_window import (
    FIRST_US,
    LEAST_US,
    MOST_US,
    NO_TIMES,
    EventTimes,
    TimeWindow,
    WindowLength,
)

UNSET = (math.inf, -math.inf)
"""The range of a variable without a value."""


def window(
    begin: int, end: int, *ranges: tuple[float, float], timeless: bool = False
) -> TimeWindow:
    """A time window; ``ranges`` are those of its variables."""
    return TimeWindow(begin, end, timeless, np.array(ranges or [UNSET], np.float64).T)


def same(a: TimeWindow, b: TimeWindow) -> bool:
    return (a.begin, a.end, a.timeless) == (b.begin, b.end, b.timeless) and bool(
        np.array_equal(a.variables, b.variables)
    )


TIMELESS = window(0, -1, timeless=True)
"""For events that have no time."""

numbers = st.integers(-5, 5).map(float) | st.floats(-1e100, 1e100)
ranges = st.just(UNSET) | st.tuples(numbers, numbers).map(lambda two: (min(two), max(two)))
time_us = st.integers(-(10**17), 10**17) | st.integers(-5, 5)


@st.composite
def windows(draw: st.DrawFn) -> TimeWindow:
    begin, end = sorted([draw(time_us), draw(time_us)])
    timeless = draw(st.booleans())
    if timeless and draw(st.booleans()):
        begin, end = 0, -1
    variables = draw(st.lists(ranges, min_size=1, max_size=3))
    return window(begin, end, *variables, timeless=timeless)


# -- of events ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time_us", "expected"),
    [
        ([5], EventTimes(5, 5, False)),
        ([7, -3, 5], EventTimes(-3, 7, False)),
        ([NO_TIME, 5, 7], EventTimes(5, 7, True)),
        ([NO_TIME], NO_TIMES),
        ([], NO_TIMES),
    ],
)
def test_the_times_of_events(time_us: list[int], expected: EventTimes) -> None:
    assert EventTimes.of(np.array(time_us, np.int64)) == expected


def test_the_time_of_one_event() -> None:
    assert EventTimes.at(5) == EventTimes(5, 5, False)
    assert EventTimes.at(None) == NO_TIMES


def test_a_window_has_the_times_of_its_events() -> None:
    found = TimeWindow.of(EventTimes(5, 7, True), np.array([[math.nan]]))
    assert (found.begin, found.end, found.timeless) == (5, 7, True)
    assert found.times.tolist() == [5, 7, 1]


def test_variables_can_be_what_they_are() -> None:
    values = np.array([[2.5, math.nan, -math.inf]])
    found = TimeWindow.of(EventTimes.at(5), values)
    assert found.variables.T.tolist() == [[2.5, 2.5], list(UNSET), [-math.inf, -math.inf]]


def test_variables_can_be_what_they_are_at_any_of_the_events() -> None:
    values = np.array([[2.5, math.nan, 1.0], [-1.0, math.nan, math.nan]])
    found = TimeWindow.of(EventTimes(5, 6, False), values)
    assert found.variables.T.tolist() == [[-1.0, 2.5], list(UNSET), [1.0, 1.0]]


# -- as JSON --------------------------------------------------------------------------------------


@given(windows())
@example(window(0, 1, (-math.inf, math.inf), UNSET))
@example(TIMELESS)
def test_json_gives_a_window_back(noted: TimeWindow) -> None:
    assert same(TimeWindow.of_json(json.loads(json.dumps(noted.as_json()))), noted)


# -- includes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "included"),
    [
        (window(10, 20), True),
        (window(15, 15), True),
        (window(9, 15), False),
        (window(15, 21), False),
        (window(0, 5), False),
        (window(15, 16, timeless=True), False),
        (TIMELESS, False),
    ],
)
def test_times_are_included(other: TimeWindow, included: bool) -> None:
    assert window(10, 20).includes(other) == included


def test_a_timeless_window_includes_events_without_a_time() -> None:
    timeless = window(10, 20, timeless=True)
    assert timeless.includes(TIMELESS)
    assert timeless.includes(window(10, 20))
    assert TIMELESS.includes(TIMELESS)
    assert not TIMELESS.includes(window(0, 0))


@pytest.mark.parametrize(
    ("values", "included"),
    [
        ((1, 2), True),
        ((1.5, 1.5), True),
        (UNSET, True),
        ((0.5, 1.5), False),
        ((1.5, math.inf), False),
        ((-math.inf, -math.inf), False),
    ],
)
def test_variables_are_included(values: tuple[float, float], included: bool) -> None:
    assert window(0, 9, (1, 2)).includes(window(1, 1, values)) == included


def test_a_variable_without_a_value_includes_none() -> None:
    assert window(0, 9, UNSET).includes(window(1, 1, UNSET))
    assert not window(0, 9, UNSET).includes(window(1, 1, (1, 1)))


def test_a_variable_that_is_new_is_not_included() -> None:
    """Not even without a value: the kernels need a column for it."""
    few, many = window(0, 9, (1, 2)), window(0, 9, (1, 2), UNSET)
    assert not few.includes(many)
    assert many.includes(few)


@given(windows())
def test_a_window_includes_itself(each: TimeWindow) -> None:
    assert each.includes(each)


@given(windows(), windows(), windows())
def test_inclusion_is_transitive(a: TimeWindow, b: TimeWindow, c: TimeWindow) -> None:
    if a.includes(b) and b.includes(c):
        assert a.includes(c)


# -- larger ones ----------------------------------------------------------------------------------


def test_an_extended_window_reaches_onward_and_back() -> None:
    assert same(window(1000, 2000).extended(800), window(900, 2800))
    assert same(TIMELESS.extended(800), TIMELESS)


@given(windows(), st.integers(0, MOST_US))
def test_an_extended_window_includes_what_it_was(each: TimeWindow, more: int) -> None:
    assert each.extended(more).includes(each)


@given(windows(), windows())
def test_recalling_keeps_the_times_and_both_ranges(now: TimeWindow, before: TimeWindow) -> None:
    found = now.recalling(before)
    assert (found.begin, found.end, found.timeless) == (now.begin, now.end, now.timeless)
    assert found.includes(now)
    assert found.includes(replace(now, variables=before.variables))


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        ((5, 5), (1, 9), (1, 9)),
        ((10, 10), (0, 6), (0, 20)),  # beyond it by as much again
        ((-4, -4), (0, 6), (-14, 6)),
        ((5, 5), UNSET, (5, 5)),
        (UNSET, (0, 6), (0, 6)),
        (UNSET, UNSET, UNSET),
        ((3, 3), (3, 3), (3, 3)),
        ((math.inf, math.inf), (0, 6), (0, math.inf)),
        ((5, 5), (math.inf, math.inf), (5, math.inf)),
    ],
)
def test_a_variable_that_leaves_its_range_gets_a_longer_one(
    now: tuple[float, float], before: tuple[float, float], expected: tuple[float, float]
) -> None:
    found = window(0, 9, now).recalling(window(0, 9, before))
    assert tuple(found.variables.T[0].tolist()) == expected


def test_a_variable_that_keeps_rising_needs_ever_fewer_windows() -> None:
    enclosed = window(0, 9, (0, 0))
    made = 0
    for value in range(1, 1000):
        now = window(0, 9, (value, value))
        if not enclosed.includes(now):
            enclosed = now.recalling(enclosed)
            made += 1
    assert made <= 12


def test_an_infinite_variable_is_recalled() -> None:
    forever = (math.inf, math.inf)
    found = window(5, 9, forever).recalling(window(0, 4, forever))
    assert found.variables.T.tolist() == [list(forever)]


def test_a_huge_variable_is_recalled() -> None:
    now, before = window(5, 9, (1e308, 1e308)), window(0, 4, (-1e308, -1e308))
    found = now.recalling(before)
    assert found.includes(now)
    assert found.includes(replace(before, begin=5, end=9))


@given(windows(), windows())
@example(TIMELESS, window(3, 5))
@example(window(3, 5), TIMELESS)
@example(TIMELESS, TIMELESS)
def test_a_joined_window_includes_both(a: TimeWindow, b: TimeWindow) -> None:
    joined = a.joined(b)
    assert joined.includes(a)
    assert joined.includes(b)


@given(windows(), windows())
@example(TIMELESS, window(3, 5))
@example(window(3, 5), TIMELESS)
@example(TIMELESS, TIMELESS)
def test_the_hull_of_two_windows_includes_both(a: TimeWindow, b: TimeWindow) -> None:
    assert a.hull(b).includes(a)
    assert a.hull(b).includes(b)
    assert same(a.hull(a), a)


@given(windows(), windows(), windows())
@example(window(0, 3), window(7, 9), TIMELESS)
@example(window(0, 3), window(2, 9), window(2, 3))
def test_what_two_windows_have_in_common_includes_nothing_else(
    a: TimeWindow, b: TimeWindow, other: TimeWindow
) -> None:
    if a.common(b).includes(other):
        assert a.includes(other)
        assert b.includes(other)


def test_what_two_windows_have_in_common() -> None:
    assert same(window(0, 7).common(window(3, 9)), window(3, 7))
    assert not window(0, 3).common(window(7, 9)).includes(window(5, 5))


def test_a_joined_window_has_all_between() -> None:
    assert same(window(0, 3).joined(window(7, 9)), window(0, 9))


def test_times_are_joined_with_no_times() -> None:
    expected = window(3, 5, timeless=True)
    assert same(TIMELESS.joined(window(3, 5)), expected)
    assert same(window(3, 5).joined(TIMELESS), expected)


# -- length ---------------------------------------------------------------------------------------


def after(*rounds: tuple[float, float]) -> int:
    """The length in microseconds after some rounds of evaluating and then enclosing."""
    length = WindowLength()
    for evaluating_s, enclosing_s in rounds:
        length.has_evaluated(evaluating_s)
        length.has_enclosed(enclosing_s)
    return length.length_us


@pytest.mark.parametrize(
    ("evaluating_s", "enclosing_s", "factor"),
    [
        (0.1, 1.0, 2),
        (1.0, 1.5, 1),
        (1.0, 0.4, 0.5),
        (0.0, 1.0, 2),
        (0.0, 0.0, 1),
        (1.0, 0.0, 0.5),
    ],
)
def test_the_length_weighs_enclosing_against_evaluating(
    evaluating_s: float, enclosing_s: float, factor: float
) -> None:
    assert after((evaluating_s, enclosing_s)) == FIRST_US * factor


def test_only_evaluating_since_the_last_enclosing_counts() -> None:
    assert after((10.0, 15.0), (1.0, 10.0)) == 2 * FIRST_US
    length = WindowLength()
    for _ in range(9):
        length.has_evaluated(0.1)
    length.has_enclosed(1.0)
    assert length.length_us == FIRST_US


def test_the_length_has_limits() -> None:
    assert after(*[(0.0, 1.0)] * 40) == MOST_US
    assert after(*[(1.0, 0.0)] * 40) == LEAST_US
