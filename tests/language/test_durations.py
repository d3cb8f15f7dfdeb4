"""Durations there and back, and what is none."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import BadValueError
from tidegate.language.durations import UNITS, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration", "said"),
    [
        ("30s", timedelta(seconds=30), "30 s"),
        ("1.5 h", timedelta(minutes=90), "90 min"),
        (" 2min ", timedelta(minutes=2), "2 min"),
        ("2m", timedelta(minutes=2), "2 min"),
        ("0.5ms", timedelta(microseconds=500), "0.5 ms"),
        ("24h", timedelta(days=1), "1 d"),
        ("10 seconds", timedelta(seconds=10), "10 s"),
        ("1 minute", timedelta(minutes=1), "1 min"),
        ("250 milliseconds", timedelta(milliseconds=250), "250 ms"),
        ("0 s", timedelta(0), "0 ms"),
    ],
)
def test_durations_as_text(text: str, duration: timedelta, said: str) -> None:
    assert parse_duration(text) == duration
    assert format_duration(duration) == said


@given(st.integers(1, 10**6), st.sampled_from(list(UNITS)))
def test_what_is_written_is_read(count: int, unit: str) -> None:
    duration = count * UNITS[unit]
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize("text", ["", "5", "m", "-1m", "5 weeks", "1e3s", "1 h 30 min", "٣ s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(
        BadValueError, match="is not a duration; write a number and one of ms, s, min"
    ):
        parse_duration(text)


@pytest.mark.parametrize("text", ["99999999999999d", "1" * 400 + " s"])
def test_too_long_a_duration(text: str) -> None:
    with pytest.raises(BadValueError, match="longer than the range of timestamps"):
        parse_duration(text)
