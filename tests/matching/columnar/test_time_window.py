from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.columnar.time_window import (
    FIRST_US,
    LEAST_US,
    MOST_US,
    NO_TIMES,
    EventTimes,
    TimeWindow,
    WindowLength,
)

UNSET = (math.inf, -math.inf)
"""What a variable can be that has no value."""


def stretch(
    begin: int, end: int, *rooms: tuple[float, float], timeless: bool = False
) -> TimeWindow:
    """A stretch; ``rooms`` are what its variables can be."""
    return TimeWindow(begin, end, timeless, np.array(rooms or [UNSET], np.float64).T)


def same(a: TimeWindow, b: TimeWindow) -> bool:
    return (a.begin, a.end, a.timeless) == (b.begin, b.end, b.timeless) and bool(
        np.array_equal(a.variables, b.variables)
    )


TIMELESS = stretch(0, -1, timeless=True)
"""For events that have no time."""

numbers = st.integers(-5, 5).map(float) | st.floats(-1e100, 1e100)
rooms = st.just(UNSET) | st.tuples(numbers, numbers).map(lambda two: (min(two), max(two)))
time_us = st.integers(-(10**17), 10**17) | st.integers(-5, 5)


@st.composite
def stretches(draw: st.DrawFn) -> TimeWindow:
    begin, end = sorted([draw(time_us), draw(time_us)])
    timeless = draw(st.booleans())
    if timeless and draw(st.booleans()):
        begin, end = 0, -1
    variables = draw(st.lists(rooms, min_size=1, max_size=3))
    return stretch(begin, end, *variables, timeless=timeless)


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


def test_a_stretch_has_the_times_of_its_events() -> None:
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


@given(stretches())
@example(stretch(0, 1, (-math.inf, math.inf), UNSET))
@example(TIMELESS)
def test_json_gives_a_stretch_back(noted: TimeWindow) -> None:
    assert same(TimeWindow.of_json(json.loads(json.dumps(noted.as_json()))), noted)


# -- includes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "included"),
    [
        (stretch(10, 20), True),
        (stretch(15, 15), True),
        (stretch(9, 15), False),
        (stretch(15, 21), False),
        (stretch(0, 5), False),
        (stretch(15, 16, timeless=True), False),
        (TIMELESS, False),
    ],
)
def test_times_are_included(other: TimeWindow, included: bool) -> None:
    assert stretch(10, 20).includes(other) == included


def test_a_timeless_stretch_includes_events_without_a_time() -> None:
    timeless = stretch(10, 20, timeless=True)
    assert timeless.includes(TIMELESS)
    assert timeless.includes(stretch(10, 20))
    assert TIMELESS.includes(TIMELESS)
    assert not TIMELESS.includes(stretch(0, 0))


@pytest.mark.parametrize(
    ("room", "included"),
    [
        ((1, 2), True),
        ((1.5, 1.5), True),
        (UNSET, True),
        ((0.5, 1.5), False),
        ((1.5, math.inf), False),
        ((-math.inf, -math.inf), False),
    ],
)
def test_variables_are_included(room: tuple[float, float], included: bool) -> None:
    assert stretch(0, 9, (1, 2)).includes(stretch(1, 1, room)) == included


def test_a_variable_without_a_value_includes_none() -> None:
    assert stretch(0, 9, UNSET).includes(stretch(1, 1, UNSET))
    assert not stretch(0, 9, UNSET).includes(stretch(1, 1, (1, 1)))


def test_a_variable_that_is_new_is_not_included() -> None:
    """Not even without a value: the kernels need a column for it."""
    few, many = stretch(0, 9, (1, 2)), stretch(0, 9, (1, 2), UNSET)
    assert not few.includes(many)
    assert many.includes(few)


@given(stretches())
def test_a_stretch_includes_itself(each: TimeWindow) -> None:
    assert each.includes(each)


@given(stretches(), stretches(), stretches())
def test_inclusion_is_transitive(a: TimeWindow, b: TimeWindow, c: TimeWindow) -> None:
    if a.includes(b) and b.includes(c):
        assert a.includes(c)


# -- larger ones ----------------------------------------------------------------------------------


def test_an_extended_stretch_reaches_onward_and_back() -> None:
    assert same(stretch(1000, 2000).extended(800), stretch(900, 2800))
    assert same(TIMELESS.extended(800), TIMELESS)


@given(stretches(), st.integers(0, MOST_US))
def test_an_extended_stretch_includes_what_it_was(each: TimeWindow, more: int) -> None:
    assert each.extended(more).includes(each)


@given(stretches(), stretches())
def test_recalling_keeps_the_times_and_both_rooms(now: TimeWindow, before: TimeWindow) -> None:
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
def test_a_variable_that_leaves_its_room_gets_more(
    now: tuple[float, float], before: tuple[float, float], expected: tuple[float, float]
) -> None:
    found = stretch(0, 9, now).recalling(stretch(0, 9, before))
    assert tuple(found.variables.T[0].tolist()) == expected


def test_a_variable_that_keeps_rising_needs_ever_fewer_stretches() -> None:
    held = stretch(0, 9, (0, 0))
    made = 0
    for value in range(1, 1000):
        now = stretch(0, 9, (value, value))
        if not held.includes(now):
            held = now.recalling(held)
            made += 1
    assert made <= 12


def test_an_infinite_variable_is_recalled() -> None:
    forever = (math.inf, math.inf)
    found = stretch(5, 9, forever).recalling(stretch(0, 4, forever))
    assert found.variables.T.tolist() == [list(forever)]


def test_a_huge_variable_is_recalled() -> None:
    now, before = stretch(5, 9, (1e308, 1e308)), stretch(0, 4, (-1e308, -1e308))
    found = now.recalling(before)
    assert found.includes(now)
    assert found.includes(replace(before, begin=5, end=9))


@given(stretches(), stretches())
@example(TIMELESS, stretch(3, 5))
@example(stretch(3, 5), TIMELESS)
@example(TIMELESS, TIMELESS)
def test_a_joined_stretch_includes_both(a: TimeWindow, b: TimeWindow) -> None:
    joined = a.joined(b)
    assert joined.includes(a)
    assert joined.includes(b)


def test_a_joined_stretch_has_all_between() -> None:
    assert same(stretch(0, 3).joined(stretch(7, 9)), stretch(0, 9))


def test_times_are_joined_with_no_times() -> None:
    expected = stretch(3, 5, timeless=True)
    assert same(TIMELESS.joined(stretch(3, 5)), expected)
    assert same(stretch(3, 5).joined(TIMELESS), expected)


# -- foresight ------------------------------------------------------------------------------------


def after(*rounds: tuple[float, float]) -> int:
    """How far ahead, after some rounds of evaluating and then enclosing, in seconds."""
    foresight = WindowLength()
    for evaluating_s, enclosing_s in rounds:
        foresight.has_evaluated(evaluating_s)
        foresight.has_enclosed(enclosing_s)
    return foresight.length_us


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
def test_foresight_weighs_enclosing_against_evaluating(
    evaluating_s: float, enclosing_s: float, factor: float
) -> None:
    assert after((evaluating_s, enclosing_s)) == FIRST_US * factor


def test_foresight_counts_evaluating_since_it_last_enclosed() -> None:
    assert after((10.0, 15.0), (1.0, 10.0)) == 2 * FIRST_US
    foresight = WindowLength()
    for _ in range(9):
        foresight.has_evaluated(0.1)
    foresight.has_enclosed(1.0)
    assert foresight.length_us == FIRST_US


def test_foresight_has_limits() -> None:
    assert after(*[(0.0, 1.0)] * 40) == MOST_US
    assert after(*[(1.0, 0.0)] * 40) == LEAST_US
