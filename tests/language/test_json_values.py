"""Values come back from JSON as they were, and the JSON is strict."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import EDGE_TIMES, strings, values
from tidegate import BadValueError
from tidegate.language.json_values import (
    value_from_json,
    value_to_json,
    values_from_json,
    values_to_json,
)
from tidegate.language.values import INT_MAX, INT_MIN, Value, format_value


def through_json(encoded: object) -> object:
    """Strictly: `allow_nan=False` refuses the NaN and Infinity that Python would write."""
    return json.loads(json.dumps(encoded, allow_nan=False))


@given(values)
@example(True)
@example(1)
@example(1.0)
@example(INT_MIN)
@example(INT_MAX)
@example(2**53 + 1)
@example(math.inf)
@example(-math.inf)
@example(EDGE_TIMES[2])
@example(EDGE_TIMES[3])
def test_a_value_comes_back_as_it_was(value: Value) -> None:
    again = value_from_json(through_json(value_to_json(value)))
    assert again is not None
    assert again == value
    assert type(again) is type(value)
    assert format_value(again) == format_value(value)  # which tells -0.0 from 0.0


@given(st.dictionaries(strings, values | st.none(), max_size=4))
def test_values_by_name_come_back(by_name: dict[str, Value | None]) -> None:
    again = values_from_json(through_json(values_to_json(by_name)))
    assert again == by_name
    assert [type(each) for each in again.values()] == [type(each) for each in by_name.values()]


def test_how_values_are_written() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    encoded = values_to_json({"a": at, "b": -math.inf, "c": "2026-01-02", "d": None, "e": True})
    assert json.dumps(encoded) == (
        '{"a": {"us": 1767323045000006}, "b": {"float": "-infinity"}, "c": "2026-01-02", '
        '"d": null, "e": true}'
    )


def test_what_counts_as_absent_is_null() -> None:
    assert value_to_json(math.nan) is None
    assert value_to_json(None) is None
    assert value_from_json(None) is None


def test_what_becomes_a_value_can_be_written() -> None:
    assert value_to_json(np.float64(0.5)) == 0.5
    assert value_to_json(np.datetime64("1970-01-02")) == {"us": 86_400_000_000}
    with pytest.raises(BadValueError, match="a list is not a value"):
        value_to_json([1])


@pytest.mark.parametrize(
    ("decoded", "message"),
    [
        ({}, "a JSON object must be"),
        ({"us": 1, "more": 2}, "a JSON object must be"),
        ({"us": "1"}, "a JSON object must be"),
        ({"us": 1.5}, "a JSON object must be"),
        ({"us": True}, "a JSON object must be"),
        ({"float": "nan"}, "a JSON object must be"),
        ({"float": "infinity", "us": 1}, "a JSON object must be"),
        ({"us": 10**30}, "10{30} microseconds are outside the years 1 to 9999"),
        ([1], "a list is not a value"),
        (2**63, "an integer must fit in 64 bits"),
        ("\ud800", "a string must be valid Unicode"),
    ],
)
def test_what_is_no_value_is_refused(decoded: object, message: str) -> None:
    with pytest.raises(BadValueError, match=message):
        value_from_json(decoded)
    with pytest.raises(BadValueError, match=f"limit: {message}"):
        values_from_json({"limit": decoded})


def test_values_by_name_are_an_object() -> None:
    others: list[object] = [[], 3, "a", None]
    for decoded in others:
        with pytest.raises(BadValueError, match="values by name must be a JSON object, not"):
            values_from_json(decoded)
