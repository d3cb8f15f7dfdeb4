from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.subscribers.connection import ALWAYS
from tidegate.subscribers.dead_reckoning import REPORTS_MAX, Band, ReportHistory, Track

values = st.one_of(
    st.integers(-10, 10),
    st.floats(-1e6, 1e6),
    st.sampled_from([2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1e300, 5e-324]),
)
tolerances = st.sampled_from([0.5, 1.0, 3, 1e-9, 1e6])
times = st.floats(0, 1e7)
rates = st.builds(math.copysign, st.floats(0, 100, exclude_min=True), st.sampled_from([1, -1]))


def follow(
    track: Track, value_at: Callable[[float], float], seconds: float, every: float
) -> tuple[int, int]:
    """Report a changing value; returns the number of reports and of bands sent."""
    reports = round(seconds / every)
    sent = sum(track.report(value_at(each * every), each * every) for each in range(reports))
    return reports, sent


# -- bands ------------------------------------------------------------------------------------


@given(values, tolerances)
def test_a_static_band_contains_its_value_at_all_times(value: float, tolerance: float) -> None:
    band = Band.static(value, tolerance)
    assert band.contains(value, 0)
    assert band.contains(value, 1e9)
    assert band.span_containing(value, 5) == ALWAYS
    assert not band.contains(value + 2 * tolerance, 0) or abs(value) > 1e6


@given(values, tolerances, rates, times)
def test_a_band_contains_a_value_during_the_computed_span(
    value: float, tolerance: float, rate: float, t: float
) -> None:
    moved = rate * t
    # Wide enough for rounding to leave the value inside, and no wider.
    tolerance = max(tolerance, 4 * math.ulp(abs(value) + abs(moved) + tolerance))
    band = Band(value - tolerance - moved, value + tolerance - moved, rate)
    assert band.contains(value, t)
    start, end = band.span_containing(value, t)
    assert start <= t <= end
    for moment in (start, end, start / 2 + end / 2):
        assert band.contains(value, moment)


def test_the_span_ends_where_rounding_leaves_no_room() -> None:
    """Halving the distance to such an end once never ended."""
    band = Band(-39420392.862714574, -39420392.86271457, 18.11679425748305)
    value, t = 1.2143464205738734, 2175903.39200207
    start, end = band.span_containing(value, t)
    assert band.contains(value, start)
    assert band.contains(value, end)


def test_the_span_of_a_moving_band_is_not_cut_short() -> None:
    start, end = Band(-1, 1, 0.5).span_containing(0.0, 0.0)
    assert (start, end) == (-2, 2)


# -- tracks -----------------------------------------------------------------------------------

steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.001, 0.1, 1.0, 60.0]),
        st.sampled_from(["report", "event"]),
        st.one_of(values, st.none()),
    ),
    max_size=60,
)


@given(steps, tolerances, st.booleans())
def test_the_band_contains_the_value_whenever_an_event_is_matched(
    steps: list[tuple[float, str, float | None]], tolerance: float, predicts: bool
) -> None:
    track = Track(tolerance, predicts=predicts)
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
        assert track.band.contains(value, t)
        assert track.span[0] <= t <= track.span[1]
        if sent and before is not None:
            assert not before.contains(value, t)  # rule 2


@given(st.floats(-20, 20), st.floats(-1e3, 1e3))
def test_even_motion_is_sent_until_its_rate_is_known(speed: float, start: float) -> None:
    track = Track(3.0, predicts=True)
    reports, sent = follow(track, lambda t: start + speed * t, seconds=600, every=0.1)
    assert reports == 6000
    assert sent <= 3


def test_turns_are_sent() -> None:
    track = Track(2.0, predicts=True)
    _, sent = follow(track, lambda t: abs(t % 40 - 20), seconds=400, every=0.1)
    turns = 20
    assert turns <= sent <= 3 * turns


def test_an_oscillation_is_sent_seldom() -> None:
    reports, sent = follow(Track(2.0, predicts=True), lambda t: 100 * math.sin(t / 10), 628, 0.1)
    _, damped = follow(Track(2.0, predicts=False), lambda t: 100 * math.sin(t / 10), 628, 0.1)
    assert reports > 5000
    assert sent < reports / 15
    assert sent < damped / 3


def test_noise_does_not_hide_the_motion() -> None:
    noise = random.Random(5)
    track = Track(2.0, predicts=True)
    _, sent = follow(track, lambda t: 5 * t + noise.uniform(-0.5, 0.5), seconds=600, every=0.1)
    assert sent < 30


@pytest.mark.parametrize("predicts", [True, False])
def test_a_constant_with_noise_is_sent_once(predicts: bool) -> None:
    noise = random.Random(6)
    _, sent = follow(Track(2.0, predicts=predicts), lambda _: noise.uniform(-0.9, 0.9), 600, 0.1)
    assert sent == 1


def test_a_value_that_is_reported_seldom_has_static_bands() -> None:
    """A moving band would leave the value behind long before the next report."""
    track = Track(3.0, predicts=True)
    reports, sent = follow(track, lambda t: 30 * t, seconds=60, every=1.0)
    assert (reports, sent) == (60, 60)
    assert track.span == ALWAYS


def test_a_value_that_is_no_longer_reported_gets_a_static_band() -> None:
    track = Track(3.0, predicts=True)
    follow(track, lambda t: 20.0 * t, seconds=10, every=0.1)
    assert track.band is not None
    assert track.band.rate == pytest.approx(20)
    assert track.span[1] < 10.1
    assert not track.renew(track.span[1])
    assert track.renew(11)
    assert track.band == Band.static(20 * 9.9, 3.0)
    assert not track.renew(1000)


def test_a_clock_that_is_set_back_clears_the_history() -> None:
    track = Track(1.0, predicts=True)
    follow(track, lambda t: 5 * t, seconds=10, every=0.1)
    assert track.report(200, 1.0)
    assert track.band == Band.static(200, 1.0)
    assert track.report(205, 1.0)  # the newest of several at one time counts
    assert track.band == Band.static(205, 1.0)


def test_a_removed_value_is_sent_once() -> None:
    track = Track(1.0, predicts=True)
    assert not track.report(None, 0)
    assert track.report(1, 1)
    assert track.report(None, 2)
    assert not track.report(None, 3)
    assert not track.renew(4)
    assert track.report(1, 5)


def test_few_reports_are_kept_and_they_reach_far_back() -> None:
    """The last few seconds alone would leave the rate uncertain by the noise, about 0.1."""
    noise = random.Random(7)
    history = ReportHistory()
    for step in range(10_000):
        history.add(step / 10 + noise.uniform(-0.2, 0.2), step / 10)
    assert len(history) <= REPORTS_MAX
    assert history.rate(1.0) == pytest.approx(1.0, abs=1e-3)
