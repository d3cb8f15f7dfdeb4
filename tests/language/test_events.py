from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tidegate.errors import BadValueError, EventError
from tidegate.language.events import ATTRIBUTES_MAX, NESTING_MAX, Event

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def nested(depth: int) -> dict[str, object]:
    event: dict[str, object] = {"x": 1}
    for _ in range(depth - 1):
        event = {"n": event}
    return event


def test_nested_objects_flatten_to_dotted_names() -> None:
    event = Event.of({"a": 1, "b": {"c": "x", "d": {"e": True}}, "f": {}})
    assert event.attributes == {"a": 1, "b.c": "x", "b.d.e": True}
    assert Event.of({"a": MappingProxyType({"b": 2})}).attributes == {"a.b": 2}


def test_null_and_nan_are_absent() -> None:
    event = Event.of({"a": None, "b": float("nan"), "c": {"d": pd.NA}, "e": 0})
    assert event.attributes == {"e": 0}


def test_a_row_of_pandas_is_an_event() -> None:
    frame = pd.DataFrame({"s": ["IBM"], "n": [3], "x": [0.5], "b": [True], "at": [NOON]})
    record = {str(name): value for name, value in frame.iloc[0].items()}
    row = Event.of(record).attributes
    assert row == {"s": "IBM", "n": 3, "x": 0.5, "b": True, "at": NOON}
    assert [type(value) for value in row.values()] == [str, int, float, bool, datetime]


@pytest.mark.parametrize("raw", [[1, 2], (), {1}, np.array([1.0])])
def test_a_list_is_refused_and_its_attribute_named(raw: object) -> None:
    with pytest.raises(EventError) as caught:
        Event.of({"a": 1, "b": {"c": raw}})
    assert str(caught.value) == (
        "attribute 'b.c': a list is not a value; send one event for each of its items"
    )


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (2**63, "an integer must fit in 64 bits; a larger number can be sent as a float"),
        ("\ud800", "a string must be valid Unicode, without lone surrogates"),
        (
            b"a",
            "bytes is not a value; "
            "a value is a boolean, a 64-bit integer, a float, a string or a datetime",
        ),
    ],
)
def test_other_bad_values_name_their_attribute(raw: object, reason: str) -> None:
    with pytest.raises(EventError) as caught:
        Event.of({"b": {"c": raw}})
    assert str(caught.value) == f"attribute 'b.c': {reason}"


def test_an_attribute_stands_in_an_event_once() -> None:
    with pytest.raises(EventError, match=r"attribute 'a\.b' is in the event twice"):
        Event.of({"a.b": 1, "a": {"b": 2}})
    assert Event.of({"a.b": None, "a": {"b": 2}}).attributes == {"a.b": 2}


@pytest.mark.parametrize("name", ["", 5, None, b"a"])
def test_names_are_strings_and_not_empty(name: Any) -> None:
    for event in ({name: 1}, {"a": {name: 1}}):
        with pytest.raises(EventError, match="the name of an attribute is a string, not empty"):
            Event.of(event)


def test_names_are_valid_unicode() -> None:
    assert Event.of({"größe": {"\U0001f30a": 1}}).attributes == {"größe.\U0001f30a": 1}
    with pytest.raises(EventError, match=r"the name 'a\.\\ud800': .* without lone surrogates"):
        Event.of({"a": {"\ud800": 1}})


@pytest.mark.parametrize("source", [None, 5, "price", [("price", 5)]])
def test_an_event_is_a_mapping(source: Any) -> None:
    with pytest.raises(EventError, match="an event is a mapping of attributes, not"):
        Event.of(source)


def test_limits() -> None:
    many = {f"a{index}": index for index in range(ATTRIBUTES_MAX)}
    assert len(Event.of(many).attributes) == ATTRIBUTES_MAX
    with pytest.raises(EventError, match="has 4097 attributes; at most 4096 are taken"):
        Event.of(many | {"one": "more"})
    name = "n." * (NESTING_MAX - 1) + "x"
    assert Event.of(nested(NESTING_MAX)).attributes == {name: 1}
    with pytest.raises(EventError, match="nests more than 32 objects"):
        Event.of(nested(NESTING_MAX + 1))


def test_an_event_that_holds_itself_is_refused() -> None:
    event: dict[str, object] = {}
    event["again"] = event
    with pytest.raises(EventError, match="nests more than 32 objects"):
        Event.of(event)


def test_the_time_of_an_event_is_utc() -> None:
    assert Event.of({}).time is None
    assert Event.of({}, NOON).time == NOON
    assert Event.of({}, NOON.replace(tzinfo=None)).time == NOON
    assert Event.of({}, NOON.astimezone(timezone(timedelta(hours=5)))).time == NOON
    assert Event.of({}, pd.Timestamp(NOON)).time == NOON


@pytest.mark.parametrize("time", [5, "2026-01-02", pd.NaT])
def test_the_time_of_an_event_is_a_datetime(time: Any) -> None:
    with pytest.raises(EventError, match="the time of an event is a datetime, not"):
        Event.of({}, time)
    with pytest.raises(EventError):
        Event.of({}, datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))))


def test_an_event_is_taken_as_it_is() -> None:
    event = Event.of({"x": 1}, NOON)
    assert Event.of(event) is event
    later = Event.of(event, NOON + timedelta(seconds=1))
    assert later.attributes == event.attributes
    assert later.time == NOON + timedelta(seconds=1)


def test_an_event_error_is_a_bad_value() -> None:
    assert issubclass(EventError, BadValueError)


def test_attributes_are_looked_up_by_name() -> None:
    event = Event.of({"price": 9.5, "quote": {"size": 3}, "note": None})
    assert event["price"] == 9.5
    assert event["quote.size"] == 3
    assert (event.get("price"), event.get("note"), event.get("note", "none")) == (9.5, None, "none")
    assert "price" in event
    assert "note" not in event
    assert list(event) == ["price", "quote.size"]
    with pytest.raises(KeyError, match="note"):
        event["note"]
