"""Events become columns of a log and come back unchanged."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidegate import Event, EventError
from tidegate.spark.log import event_columns
from tidegate.spark.log.event_columns import (
    batch_to_columns,
    chunked,
    columns_to_events,
    events_to_columns,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
EARLIER = datetime(2025, 1, 1, tzinfo=UTC)


def test_an_attribute_may_have_several_types() -> None:
    events = [Event({"a": value}, NOW) for value in (1, 1.0, True, "1", EARLIER)]
    columns = events_to_columns(events, NOW)
    assert columns.schema.names == ["_time", "a", "a", "a", "a", "a"]
    back = columns_to_events(columns)
    assert back == events
    assert [type(event.attributes["a"]) for event in back] == [int, float, bool, str, datetime]


def test_times() -> None:
    columns = events_to_columns([Event({"a": 1}), Event({"a": 1}, EARLIER)], NOW)
    assert [event.time for event in columns_to_events(columns)] == [NOW, EARLIER]


def test_events_that_have_little_in_common_are_kept_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_columns, "CHUNK_CELLS_MAX", 100)
    wide = [Event({f"{i}.{j}": 0 for j in range(10)}) for i in range(20)]
    chunks = list(chunked(wide))
    assert [event for chunk in chunks for event in chunk] == wide
    assert max(map(len, chunks)) == 3


def test_long_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_columns, "EVENT_CHARS_MAX", 10)
    monkeypatch.setattr(event_columns, "CHUNK_CHARS_MAX", 20)
    events = [Event({"a": "x" * 6, "b": "yyyy"})] * 5
    assert [len(chunk) for chunk in chunked(events)] == [2, 2, 1]
    with pytest.raises(EventError, match="have 11 characters"):
        list(chunked([Event({"a": "x" * 6, "b": "yyyyy"})]))
    with pytest.raises(EventError, match="'a': a string has 11 bytes"):
        batch_to_columns(pa.record_batch({"a": ["x" * 11]}), None, NOW)


def test_arrow_columns() -> None:
    columns: dict[str, Any] = {
        "number": pa.array([1.5, float("nan"), None]),
        "small": pa.array([1, 2, None], pa.int8()),
        "nothing": pa.nulls(3),
        "word": pa.array(["a", "b", None]).dictionary_encode(),
        "nested": pa.array([{"deep": {"flag": True}}, {"deep": None}, None]),
    }
    times = pa.array([EARLIER, None, EARLIER], pa.timestamp("us", "UTC"))
    assert columns_to_events(batch_to_columns(pa.record_batch(columns), times, NOW)) == [
        Event({"number": 1.5, "small": 1, "word": "a", "nested.deep.flag": True}, EARLIER),
        Event({"small": 2, "word": "b"}, NOW),
        Event({}, EARLIER),
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"a": pa.array([[1]])}, "'a': a list is not a value"),
        ({"": pa.array([1])}, "the name of an attribute is a string, not empty"),
        ({"a": pa.array([b"\xff"]).view(pa.string())}, "'a': Invalid UTF8"),
        ({f"a{n}": pa.array([n]) for n in range(4097)}, "have 4097 attributes; at most 4096"),
        ({"a.b": pa.array([1]), "a": pa.array([{"b": 1}])}, "the table has two columns 'a.b'"),
    ],
)
def test_columns_that_are_refused(columns: Any, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        batch_to_columns(pa.record_batch(columns), None, NOW)
