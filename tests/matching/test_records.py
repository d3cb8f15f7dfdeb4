from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.matching.records import SubscriptionRecord, decode_object, records_of, rows_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def test_a_record() -> None:
    row = {
        "id": "a",
        "filter": "x < :k",
        "params": {"k": 3},
        "subscriber": "me",
        "since": "2026-01-02T12:00:00Z",
        "until": None,
    }
    assert SubscriptionRecord.of(row) == SubscriptionRecord("a", "x < :k", {"k": 3}, "me", NOON)
    assert SubscriptionRecord.of({"id": "a", "filter": "true"}) == SubscriptionRecord("a", "true")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (pa.array([{"k": 3, "l": None}]), {"k": 3}),
        (pa.array([{"k": NOON}], pa.struct([("k", pa.timestamp("ns", "UTC"))])), {"k": NOON}),
        (pa.array([[("k", 3)]], pa.map_(pa.string(), pa.int64())), {"k": 3}),
        (pa.array(['{"k": 3, "l": null}']), {"k": 3, "l": None}),
        (pa.nulls(1), {}),
    ],
)
def test_params_of_a_table(params: Any, expected: dict[str, object]) -> None:
    table = pa.table({"id": ["a"], "filter": ["true"], "params": params})
    assert list(records_of(table)) == [SubscriptionRecord("a", "true", expected)]
    assert list(records_of(table.to_batches()[0])) == [SubscriptionRecord("a", "true", expected)]


def test_nanoseconds_are_cut_off() -> None:
    nanos = pa.array([1], pa.timestamp("ns", "UTC"))
    assert list(rows_of(pa.table({"since": nanos}))) == [
        {"since": datetime(1970, 1, 1, tzinfo=UTC)}
    ]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": ["a", None], "filter": ["true"] * 2}, "row 1: id: is missing"),
        (
            {"id": ["a"], "filter": ["true"], "params": ["[]"]},
            "row 0: params: must be a JSON object",
        ),
        ({"id": ["a"], "filter": ["true"], "params": [3]}, "row 0: params: must be an object"),
        ({"id": ["a"], "filter": ["true"], "params": [[3]]}, "row 0: params: must be an object"),
        ({"id": [7], "filter": ["true"]}, "row 0: id: must be a string, not the number 7"),
        ({"id": [b"a"], "filter": ["true"]}, "row 0: id: must be a string, not bytes"),
        ({"id": [[]], "filter": ["true"]}, "row 0: id: must be a string, not a list"),
        ({"id": [{"a": 1}], "filter": ["true"]}, "row 0: id: must be a string, not an object"),
    ],
)
def test_bad_rows(columns: Any, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        list(records_of(pa.table(columns)))


def test_a_map_that_names_a_parameter_twice() -> None:
    params = pa.array([[("k", 3), ("k", 4)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(SubscriptionError, match="row 0: params: a name stands there twice"):
        list(records_of(pa.table({"id": ["a"], "filter": ["true"], "params": params})))


def test_integers_of_json() -> None:
    assert decode_object('{"x": 123456789012345678901234}') == {"x": 123456789012345678901234}
    big = decode_object('{"x": ' + "1" * 10_000 + ', "y": 12}')
    assert big == {"x": 2**63, "y": 12}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not valid JSON: expecting value at column 1"),
        ('{"a": 1}}', "not valid JSON: extra data at column 9"),
        ('{"a": {"b": 1, "b": 2}}', "the name 'b' stands twice in one object"),
        ("{} []", "not valid JSON: extra data at column 4"),
        ("1e400", "must be a JSON object, not a number"),
        ("true", "must be a JSON object, not a boolean"),
        ('"a"', "must be a JSON object, not a string"),
        ('{"a":' * 100_000, "is nested too deeply"),
    ],
)
def test_bad_json(text: str, reason: str) -> None:
    with pytest.raises(BadValueError) as caught:
        decode_object(text)
    assert str(caught.value) == reason
