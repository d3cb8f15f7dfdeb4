from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tidegate.subscribers.connection import ALWAYS
from tidegate.subscribers.dead_reckoning import REPORTS_MAX, Band, Track

places = st.one_of(
    st.integers(-10, 10),
    st.floats(-1e6, 1e6),
    st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1e300, 5e-324]),
)
tolerances = st.sampled_from([0.5, 1.0, 3, 1e-9, 1e6])
times = st.floats(0, 1e7)


def follow(
    track: Track, value_at: Callable[[float], float], seconds: float, every: float
) -> tuple[int, int]:
    """Report a value that moves; how many reports there were, and how many bands were sent."""
    reports = round(seconds / every)
    sent = sum(track.report(value_at(each * every), each * every) for each in range(reports))
    return reports, sent


# -- bands ------------------------------------------------------------------------------------


@given(places, tolerances)
def test_a_resting_band_holds_its_value_at_all_times(value: float, tolerance: float) -> None:
    band = Band.resting(value, tolerance)
    assert band.holds(value, 0)
    assert band.holds(value, 1e9)
    assert band.stretch(value, 5) == ALWAYS
    assert not band.holds(value + 2 * tolerance, 0) or abs(value) > 1e6


@given(places, tolerances, st.floats(-100, 100).filter(bool), times)
def test_a_band_holds_a_value_during_the_stretch_that_it_says(
    value: float, tolerance: float, rate: float, t: float
) -> None:
    moved = rate * t
    band = Band(value - tolerance - moved, value + tolerance - moved, rate)
    assume(band.holds(value, t))
    start, end = band.stretch(value, t)
    assert start <= t <= end
    for moment in (start, end, start / 2 + end / 2):
        assert band.holds(value, moment)


def test_the_stretch_ends_where_rounding_leaves_no_room() -> None:
    """Halving the way to such an end used to go on for ever."""
    band = Band(-39420392.862714574, -39420392.86271457, 18.11679425748305)
    value, t = 1.2143464205738734, 2175903.39200207
    start, end = band.stretch(value, t)
    assert band.holds(value, start)
    assert band.holds(value, end)


def test_the_stretch_of_a_moving_band_is_not_cut_short() -> None:
    start, end = Band(-1, 1, 0.5).stretch(0.0, 0.0)
    assert (start, end) == (-2, 2)


# -- tracks -----------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.001, 0.1, 1.0, 60.0]),
        st.sampled_from(["report", "event"]),
        st.one_of(places, st.none()),
    ),
    max_size=60,
)


@given(steps, tolerances, st.booleans())
def test_the_band_holds_the_value_whenever_an_event_is_judged(
    steps: list[tuple[float, str, float | None]], tolerance: float, moves: bool
) -> None:
    track = Track(tolerance, moves=moves)
    value: float | None = None
    t = 0.0
    for pause, what, reported in steps:
        t += pause
        before = track.band
        if what == "report":
            value = reported
            sent = track.report(value, t)
        else:
            within = track.span[0] <= t <= track.span[1]
            sent = track.renew(t)
            assert not (sent and within)
        assert sent == (track.band is not before)
        if value is None:
            assert track.band is None
            continue
        assert track.band is not None
        assert track.band.holds(value, t)
        assert track.span[0] <= t <= track.span[1]
        if sent and before is not None:
            assert not before.holds(value, t)  # rule 2


@given(st.floats(-20, 20), st.floats(-1e3, 1e3))
def test_what_moves_evenly_is_told_once_it_is_known_how(speed: float, start: float) -> None:
    track = Track(3.0, moves=True)
    reports, sent = follow(track, lambda t: start + speed * t, seconds=600, every=0.1)
    assert reports == 6000
    assert sent <= 3


def test_what_turns_is_told_at_the_turns() -> None:
    track = Track(2.0, moves=True)
    _, sent = follow(track, lambda t: abs(t % 40 - 20), seconds=400, every=0.1)
    turns = 20
    assert turns <= sent <= 3 * turns


def test_what_swings_is_told_now_and_then() -> None:
    reports, sent = follow(Track(2.0, moves=True), lambda t: 100 * math.sin(t / 10), 628, 0.1)
    _, damped = follow(Track(2.0, moves=False), lambda t: 100 * math.sin(t / 10), 628, 0.1)
    assert reports > 5000
    assert sent < reports / 15
    assert sent < damped / 3


def test_noise_does_not_hide_the_motion() -> None:
    noise = random.Random(5)
    track = Track(2.0, moves=True)
    _, sent = follow(track, lambda t: 5 * t + noise.uniform(-0.5, 0.5), seconds=600, every=0.1)
    assert sent < 30


@pytest.mark.parametrize("moves", [True, False])
def test_what_rests_is_told_once(moves: bool) -> None:
    noise = random.Random(6)
    _, sent = follow(Track(2.0, moves=moves), lambda _: noise.uniform(-0.9, 0.9), 600, 0.1)
    assert sent == 1


def test_what_is_reported_seldom_rests_between_reports() -> None:
    """A moving band would leave the value long before the next report, and be of no use."""
    track = Track(3.0, moves=True)
    reports, sent = follow(track, lambda t: 30 * t, seconds=60, every=1.0)
    assert (reports, sent) == (60, 60)
    assert track.span == ALWAYS


def test_what_stops_being_reported_is_held_where_it_was_last() -> None:
    track = Track(3.0, moves=True)
    follow(track, lambda t: 20.0 * t, seconds=10, every=0.1)
    assert track.band is not None
    assert track.band.rate == pytest.approx(20)
    assert track.span[1] < 10.1
    assert not track.renew(track.span[1])
    assert track.renew(11)
    assert track.band == Band.resting(20 * 9.9, 3.0)
    assert not track.renew(1000)


def test_a_clock_that_is_set_back_makes_it_begin_anew() -> None:
    track = Track(1.0, moves=True)
    follow(track, lambda t: 5 * t, seconds=10, every=0.1)
    assert track.report(200, 1.0)
    assert track.band == Band.resting(200, 1.0)
    assert track.report(205, 1.0)  # the newest of several at one time counts
    assert track.band == Band.resting(205, 1.0)


def test_a_value_that_is_taken_away_is_told_once() -> None:
    track = Track(1.0, moves=True)
    assert not track.report(None, 0)
    assert track.report(1, 1)
    assert track.report(None, 2)
    assert not track.report(None, 3)
    assert not track.renew(4)
    assert track.report(1, 5)


def test_reports_that_are_kept_are_few_and_reach_far_back() -> None:
    track = Track(1.0, moves=True)
    follow(track, lambda t: t, seconds=1000, every=0.1)
    assert len(track._reports) <= REPORTS_MAX
    assert track._reports[0][0] == 0
