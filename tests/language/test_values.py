from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from tidegate.errors import BadValueError
from tidegate.language.values import (
    INT_MAX,
    INT_MIN,
    Kind,
    Value,
    format_value,
    from_us,
    kind_of,
    parse_timestamp,
    to_time,
    to_us,
    to_value,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class Side(str, Enum):  # noqa: UP042 (its str() is not its value)
    BUY = "buy"


class Level(IntEnum):
    HIGH = 3


class Nowhere(tzinfo):
    """A time zone that does not know its offset."""

    def utcoffset(self, _: datetime | None) -> timedelta | None:
        return None

    def dst(self, _: datetime | None) -> timedelta | None:
        return None

    def tzname(self, _: datetime | None) -> str:
        return "nowhere"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, Kind.BOOLEAN),
        (1, Kind.NUMBER),
        (1.5, Kind.NUMBER),
        ("1", Kind.STRING),
        (NOON, Kind.TIME),
    ],
)
def test_kinds(value: Value, kind: Kind) -> None:
    assert kind_of(value) is kind


@given(strategies.values)
def test_values_are_taken_as_they_are(value: Value) -> None:
    taken = to_value(value)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    "raw",
    [None, math.nan, np.nan, np.float32("nan"), pd.NaT, pd.NA, np.datetime64("NaT"), -math.nan],
)
def test_null_and_nan_count_as_absent(raw: object) -> None:
    assert to_value(raw) is None


@pytest.mark.parametrize("raw", [INT_MIN, INT_MAX, np.int64(INT_MIN), np.uint64(INT_MAX)])
def test_integers_of_64_bits(raw: Any) -> None:
    assert to_value(raw) == int(raw)


@pytest.mark.parametrize("raw", [INT_MIN - 1, INT_MAX + 1, 10**30, np.uint64(2**64 - 1)])
def test_larger_integers_are_refused(raw: object) -> None:
    with pytest.raises(BadValueError, match="an integer must fit in 64 bits"):
        to_value(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (np.bool_(True), True),
        (np.int8(-3), -3),
        (np.float16(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.float64(0.1), 0.1),
        (np.longdouble(0.5), 0.5),
        (np.str_("a"), "a"),
        (np.array(7), 7),
        (np.array(True), True),
        (np.datetime64("2026-01-02T12:00:00"), NOON),
        (np.datetime64("2026-01-02T12:00:00.000000999", "ns"), NOON),
        (np.datetime64("2026-01-02", "D"), datetime(2026, 1, 2, tzinfo=UTC)),
        (np.array("2026-01-02T12", "datetime64[ns]"), NOON),
        (pd.Timestamp("2026-01-02T12:00:00"), NOON),
        (pd.Timestamp("2026-01-02T13:00:00+01:00"), NOON),
        (Side.BUY, "buy"),
        (Level.HIGH, 3),
        (math.inf, math.inf),
    ],
)
def test_scalars_of_others_become_plain_values(raw: object, value: Value) -> None:
    taken = to_value(raw)
    assert taken == value
    assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (NOON.replace(tzinfo=None), NOON),
        (datetime(2026, 1, 2, 13, tzinfo=timezone(timedelta(hours=1))), NOON),
        (datetime(2026, 1, 2, 6, 15, tzinfo=timezone(timedelta(hours=-5, minutes=-45))), NOON),
        (datetime(2026, 1, 2, 13, tzinfo=ZoneInfo("Europe/Berlin")), NOON),
    ],
)
def test_timestamps_are_utc_and_naive_ones_count_as_utc(raw: datetime, value: datetime) -> None:
    taken = to_value(raw)
    assert taken == value
    assert isinstance(taken, datetime)
    assert taken.tzinfo is UTC


def test_the_second_of_two_equal_hours_is_an_hour_later() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    first = datetime(2026, 10, 25, 2, 30, tzinfo=berlin)
    assert to_value(first) == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    assert to_value(first.replace(fold=1)) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    "raw",
    [
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        np.datetime64("12000-01-01", "s"),
        pd.Timestamp(np.datetime64("12000-01-01", "s")),
    ],
)
def test_timestamps_outside_the_years_1_to_9999_are_refused(raw: object) -> None:
    with pytest.raises(BadValueError, match="in the years 1 to 9999"):
        to_value(raw)


def test_lone_surrogates_are_refused() -> None:
    for text in ("\ud800", "a\udfff", "\udc80é"):
        with pytest.raises(BadValueError, match="without lone surrogates"):
            to_value(text)
    assert to_value("\U0001f30a") == "\U0001f30a"


@pytest.mark.parametrize("raw", [[1], (1,), {1}, frozenset([1]), np.array([1])])
def test_lists_are_refused(raw: object) -> None:
    with pytest.raises(BadValueError, match="a list is not a value"):
        to_value(raw)


@pytest.mark.parametrize(
    "raw",
    [b"a", 1j, Decimal(1), date(2026, 1, 2), timedelta(1), np.timedelta64(1, "ns"), {}, object()],
)
def test_anything_else_is_refused_by_name(raw: object) -> None:
    with pytest.raises(BadValueError, match=f"{type(raw).__name__} is not a value; a value is a"):
        to_value(raw)


def test_to_time() -> None:
    assert to_time(pd.Timestamp("2026-01-02T12"), "since") == NOON
    for raw in (5, "2026-01-02", None, pd.NaT):
        with pytest.raises(BadValueError, match=f"since is a datetime, not {type(raw).__name__}"):
            to_time(raw, "since")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-01-02T12:00:00Z", NOON),
        ("2026-01-02T12:00:00", NOON),
        ("2026-01-02 12:00", NOON),
        ("2026-01-02T13:00:00+01:00", NOON),
        ("2026-01-02T12:00:00.000001Z", NOON + timedelta(microseconds=1)),
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
    ],
)
def test_parse_timestamp(text: str, value: datetime) -> None:
    assert parse_timestamp(text) == value


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "2026-01-02T25:00", "12:00", "1"])
def test_a_bad_timestamp_is_told(text: str) -> None:
    with pytest.raises(BadValueError) as caught:
        parse_timestamp(text)
    assert str(caught.value) == f"{text!r} is not a timestamp; write it as 2026-01-02T03:04:05Z"


@given(st.text("0123456789-:.TZ+W ", max_size=30))
def test_any_text_is_a_timestamp_or_refused(text: str) -> None:
    try:
        time = parse_timestamp(text)
    except BadValueError:
        return
    assert time.tzinfo is UTC


@given(strategies.times)
def test_times_in_microseconds_are_exact(time: datetime) -> None:
    assert from_us(to_us(time)) == time


def test_microseconds_beyond_timestamps() -> None:
    assert from_us(to_us(datetime.max.replace(tzinfo=UTC)) + 1) is None
    assert from_us(10**30) is None
    assert from_us(-(10**30)) is None
    assert to_us(datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)) == -1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (-3, "-3"),
        (0.1, "0.1"),
        (-0.0, "-0.0"),
        (1e22, "1e+22"),
        (math.inf, "infinity"),
        (-math.inf, "-infinity"),
        ("it's", "'it''s'"),
        ('"', "'\"'"),
        (NOON, "timestamp '2026-01-02T12:00:00Z'"),
        (datetime(1, 1, 1, 0, 0, 0, 7, UTC), "timestamp '0001-01-01T00:00:00.000007Z'"),
    ],
)
def test_format_value(value: Value, text: str) -> None:
    assert format_value(value) == text


def test_a_zone_without_an_offset_counts_as_utc() -> None:
    assert to_value(datetime(2026, 1, 2, 12, tzinfo=Nowhere())) == NOON
