"""Rows of subscriptions, checked field by field, and the subscriptions that they are."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.evolve import Periodic
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.values import to_us
from tidegate.matching import records
from tidegate.matching.records import (
    SubscriptionRecord,
    checked_parameters,
    decode_object,
    records_of,
    rows_of,
    subscription_of,
)

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


@pytest.mark.parametrize("parser", [None, BulkParser()], ids=["one by one", "in bulk"])
def test_the_subscription_of_a_record(parser: BulkParser | None) -> None:
    later = NOON.replace(hour=13)
    params = {"k": 3, "l": None}
    record = SubscriptionRecord(
        "a", "x < :k + t and y = :l", params, "me", NOON, later, NOON, Periodic(1.0)
    )
    made = subscription_of(record, parser)
    assert (made.id, made.parameters, made.subscriber) == ("a", {"k": 3}, "me")
    assert set(made.filter.parameters) == {"k", "l"}
    assert (made.since, made.until, made.origin) == (to_us(NOON), to_us(later), to_us(NOON))
    assert (made.evolve, made.pinned_at_us) == (Periodic(1.0), None)
    timeless = subscription_of(SubscriptionRecord("a", "true"), parser)
    assert (timeless.since, timeless.until, timeless.origin) == (None, None, None)


@pytest.mark.parametrize("parser", [None, BulkParser()], ids=["one by one", "in bulk"])
@pytest.mark.parametrize(
    ("filter", "params", "reason"),
    [
        ("x <", {}, "a value must follow"),
        ("x < :k", {"l": 1}, "the filter has no parameter :l; it has :k"),
        ("x < 1", {"l": 1}, "the filter has no parameter :l; it has none"),
        ("x < :k", {"k": [1]}, "parameter :k: a list is not a value"),
    ],
)
def test_a_bad_filter_is_reported_with_its_subscription(
    parser: BulkParser | None, filter: str, params: dict[str, object], reason: str
) -> None:
    with pytest.raises(SubscriptionError, match=f"^subscription 'a': {reason}"):
        subscription_of(SubscriptionRecord("a", filter, params), parser)


def test_parameters_are_checked_and_converted() -> None:
    given = {"k": np.float64(1.5), "l": None}
    assert checked_parameters(["k", "l", "m"], given) == {"k": 1.5, "l": None}
    with pytest.raises(SubscriptionError, match=r"no parameter :n; it has :k, :l$"):
        checked_parameters(["k", "l", "k"], {"n": 1})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"filter": "true"}, "id: is missing"),
        ({"id": "a"}, "filter: is missing"),
        ({"id": "a", "filter": ""}, "filter: is empty"),
        ({"id": "a", "filter": "true", "since": 5}, "since: must be a timestamp, as 2026-"),
        ({"id": "a", "filter": "true", "until": "soon"}, "until: 'soon' is not a timestamp"),
        ({"id": "a", "filter": "true", "evolve": "often"}, "evolve: 'often' is not an evolve mode"),
        ({"id": "a", "filter": "true", "origin": NOON}, "there is no field 'origin'; a subscri"),
    ],
)
def test_a_bad_field_is_named(row: dict[str, object], reason: str) -> None:
    with pytest.raises(SubscriptionError) as raised:
        SubscriptionRecord.of(row)
    assert str(raised.value).startswith(reason)


def test_rows_are_the_same_whatever_the_length_of_chunks() -> None:
    table = pa.table({"id": [f"n{n}" for n in range(7)], "n": range(7)})
    with mock.patch.object(records, "CHUNK_ROWS", 3):
        assert list(rows_of(table)) == table.to_pylist()


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
    with pytest.raises(SubscriptionError, match="row 0: params: a name occurs twice"):
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
        ('{"a": {"b": 1, "b": 2}}', "the name 'b' occurs twice in one object"),
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
