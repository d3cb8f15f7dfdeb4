from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import NAMES, values
from tidegate.language.events import Event
from tidegate.language.syntax import Operator
from tidegate.language.values import Value, to_us
from tidegate.language.variables import Variables
from tidegate.matching.arrays import F64, NO_TIME
from tidegate.matching.batches import EventBatch
from tidegate.matching.rows.encoding import (
    Encoded,
    encode_batch_variables,
    encode_columns,
    encode_event,
    encode_variables,
    write_event_times,
)
from tidegate.matching.rows.entries.channels import NUMBER, PATTERNS, PRESENT, Channels
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, STRING, TIME
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.store.cells import StringPool

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
KINDS = {"present": PRESENT, "number": NUMBER, "boolean": BOOLEAN, "string": STRING, "time": TIME}


def all_channels(*names: str) -> Channels:
    """Each attribute, seen as each kind."""
    channels = Channels()
    for name in names:
        for kind in KINDS.values():
            channels.channel(name, kind)
    return channels


X = all_channels("x")
NUMBER_AT = X.channel("x", NUMBER)
POOL = StringPool(["a", "b", ""])


def named(row: F64) -> dict[str, float]:
    """The values of a row by kind, for channels of one attribute; without those that are NaN."""
    found = dict(zip(KINDS, row.tolist(), strict=True))
    return {kind: value for kind, value in found.items() if not math.isnan(value)}


def encoded(value: Value) -> dict[str, float]:
    (row,) = encode_event({"x": value}, X, POOL).matrix
    return named(row)


def encoded_column(column: Any) -> list[dict[str, float]]:
    batch = EventBatch.of(pa.table({"x": column}))
    found = encode_columns(batch.columns, 0, batch.length, X, POOL)
    return [named(row) for row in found.matrix]


# -- one event ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, {"present": 1, "number": 3}),
        (2.5, {"present": 1, "number": 2.5}),
        (math.inf, {"present": 1, "number": math.inf}),
        (True, {"present": 1, "boolean": 1}),
        (False, {"present": 1, "boolean": 0}),
        ("b", {"present": 1, "string": 1}),
        ("", {"present": 1, "string": 2}),
        ("unknown", {"present": 1, "string": -1}),
        (NOON, {"present": 1, "time": to_us(NOON)}),
    ],
)
def test_a_value_is_in_the_channels_of_its_kind(value: Value, expected: dict[str, float]) -> None:
    assert encoded(value) == expected
    assert encoded_column(pa.array([value])) == [expected]


@pytest.mark.parametrize("value", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_a_large_integer_becomes_the_nearest_float(value: int) -> None:
    assert encoded(value)["number"] == float(value)
    assert encoded_column(pa.array([value]))[0]["number"] == float(value)


def test_minus_zero_becomes_zero() -> None:
    """Its bits are hashed."""
    (row,) = encode_event({"x": -0.0}, X, POOL).matrix
    assert math.copysign(1, row[NUMBER_AT]) == 1


def test_minus_zero_becomes_zero_in_a_batch() -> None:
    (row,) = encode_columns([("x", pa.array([-0.0]))], 0, 1, X, POOL).matrix
    assert math.copysign(1, row[NUMBER_AT]) == 1


def test_attributes_that_nobody_asks_for_are_left_out() -> None:
    one = encode_event({"y": 3}, X, POOL).matrix
    many = encode_columns([("y", pa.array([3, 4]))], 0, 2, X, POOL).matrix
    assert one.shape == (1, X.columns)
    assert many.shape == (2, X.columns)
    assert np.isnan(one).all()
    assert np.isnan(many).all()


def test_an_event_takes_no_string_into_the_pool() -> None:
    pool = StringPool(["a"])
    encode_event({"x": "new"}, X, pool)
    encode_columns([("x", pa.array(["newer"]))], 0, 1, X, pool)
    assert pool.texts() == ["a"]


# -- columns --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]),
        pa.array([1, None, 3], pa.int8()),
        pa.array([1, None, 3], pa.uint64()),
        pa.array([1.5, None, math.nan, -math.inf]),
        pa.array([1.5, None, 3], pa.float32()),
        pa.array([True, None, False]),
        pa.array(["a", None, "unknown", ""]),
        pa.array(["a", None, "b"], pa.large_string()),
        pa.array([NOON, None], pa.timestamp("us", "UTC")),
        pa.array([NOON, None], pa.timestamp("ns", "Europe/Paris")),
        pa.nulls(2),
        pa.nulls(2, pa.string()),
        pa.nulls(2, pa.float64()),
        pa.array(["a", "a", None, "b"]).dictionary_encode(),
        pa.array([1, 1, None, 2]).dictionary_encode(),
        pa.array([True, None]).dictionary_encode(),
        pa.array([1.5, math.nan, None]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None])),
        pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", "a"])),
        pa.nulls(2).cast(pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_is_encoded_as_its_events(column: Any) -> None:
    batch = EventBatch.of(pa.table({"x": column}))
    events = [batch.event(index).attributes for index in range(batch.length)]
    expected = [named(encode_event(event, X, POOL).matrix[0]) for event in events]
    assert encoded_column(column) == expected


def test_a_chunk_of_a_column() -> None:
    column = pa.array(["a", None, "b", "a", "b"])
    found = encode_columns([("x", column)], 1, 3, X, POOL)
    assert [named(row).get("string") for row in found.matrix] == [None, 1, 0]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, None, 3]),
        pa.array(["a", None, "b"]),
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.array([True, None, False]),
        pa.array([NOON, None, NOON], pa.timestamp("ms")),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_that_is_sliced_already(column: Any) -> None:
    assert encoded_column(column.slice(1, 2)) == encoded_column(column)[1:]


def test_a_dictionary_that_is_full() -> None:
    """As many texts as its indexes can number, and a null."""
    texts = pa.array([f"s{number}" for number in range(128)])
    column = pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), texts)
    first, second = encode_columns([("x", column)], 0, 2, X, StringPool(["s1"])).matrix
    assert named(first) == {"present": 1, "string": 0}
    assert named(second) == {}


# -- both -----------------------------------------------------------------------------------------


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), values), max_size=8), st.data())
def test_events_have_the_same_rows_alone_and_in_a_batch(
    events: list[dict[str, Value]], data: st.DataObject
) -> None:
    """Attributes that change their type from event to event included."""
    channels = all_channels(*NAMES[:2])  # and one that nobody asks for
    texts = sorted({v for event in events for v in event.values() if isinstance(v, str)})
    pool = StringPool(data.draw(st.lists(st.sampled_from(texts), unique=True)) if texts else [])
    batch = EventBatch.of_events([Event(each) for each in events])
    found = encode_columns(batch.columns, 0, batch.length, channels, pool)
    for row, event in zip(found.matrix, events, strict=True):
        (alone,) = encode_event(event, channels, pool).matrix
        assert np.array_equal(row, alone, equal_nan=True)


def test_an_attribute_that_changes_its_type() -> None:
    events = [Event({"x": value}) for value in (1, "a", 2.5, True, NOON)] + [Event({})]
    batch = EventBatch.of_events(events)
    found = encode_columns(batch.columns, 0, batch.length, X, POOL)
    assert [named(row) for row in found.matrix] == [
        {"present": 1, "number": 1},
        {"present": 1, "string": 0},
        {"present": 1, "number": 2.5},
        {"present": 1, "boolean": 1},
        {"present": 1, "time": to_us(NOON)},
        {},
    ]


# -- sets of patterns -----------------------------------------------------------------------------


def sets_of(encoded: Encoded, channel: int) -> list[list[float] | None]:
    """The set of each event in a channel."""
    numbers = encoded.matrix[:, channel ^ SET].tolist()
    return [
        None
        if math.isnan(number)
        else encoded.set_value[
            encoded.set_first[int(number)] : encoded.set_first[int(number) + 1]
        ].tolist()
        for number in numbers
    ]


def test_a_string_has_the_set_of_the_patterns_that_it_satisfies() -> None:
    channels = Channels()
    channel = channels.channel("x", PATTERNS)
    starts = channels.pattern("x", Operator.STARTS_WITH, "a")
    contains = channels.pattern("x", Operator.CONTAINS, "b")
    channels.flush()
    values: list[Value] = ["ab", "c", 7, "a", "ab", ""]
    expected = [[starts, contains], [], None, [starts], [starts, contains], []]
    batch = EventBatch.of_events([Event({"x": value}) for value in values])
    found = encode_columns(batch.columns, 0, batch.length, channels, POOL)
    assert sets_of(found, channel) == expected
    alone = [encode_event({"x": value}, channels, POOL) for value in values]
    assert [sets_of(each, channel)[0] for each in alone] == expected


# -- variables ------------------------------------------------------------------------------------


def test_variables_stand_where_programs_look_for_them() -> None:
    channels = Channels()
    for name in ("load", "mode", "open", "gone", "limit"):
        channels.variable(name)
    known: dict[str, Value] = {
        "limit": 3, "other": 4, "load": 0.5, "mode": "busy", "open": True,
    }  # fmt: skip
    (found,) = encode_variables(known, channels).tolist()
    assert found[0] == 0.5
    assert found[4] == 3
    assert all(math.isnan(each) for each in found[1:4])


def test_without_variables_there_is_one_without_a_value() -> None:
    ((only,),) = encode_variables({"load": 1}, Channels()).tolist()
    assert math.isnan(only)


def test_a_provided_variable_has_a_value_for_each_event() -> None:
    channels = Channels()
    for name in ("load", "time_of_day"):
        channels.variable(name)
    time_us = np.array([7_000_000, NO_TIME, 86_400_000_000, 7_000_000], np.int64)
    batch = EventBatch(4, [], time_us)
    found = encode_batch_variables(batch.with_variables({"load": 0.5}), time_us, channels)
    assert found[:, 0].tolist() == [0.5] * 4
    assert found[[0, 2, 3], 1].tolist() == [7.0, 0.0, 7.0]
    assert math.isnan(found[1, 1])
    fixed = encode_batch_variables(batch.with_variables({"time_of_day": 1}), time_us, channels)
    assert fixed[:, 1].tolist() == [1.0]  # one row for all: what is set goes first


def test_a_provider_is_asked_once_for_each_time() -> None:
    asked: list[datetime | None] = []
    variables = Variables()

    def load(time: datetime | None) -> int:
        asked.append(time)
        return len(asked)

    variables.provide("load", load)
    channels = Channels()
    channels.variable("load")
    time_us = np.array([5, 6, 5], np.int64)
    batch = EventBatch(3, [], time_us).with_variables(variables.state)
    for _ in range(2):
        assert encode_batch_variables(batch, time_us, channels).tolist() == [[1], [2], [1]]
    assert batch.moment(1).variables["load"] == 2
    assert len(asked) == 2


# -- times ----------------------------------------------------------------------------------------


def test_lifetimes_see_the_times_of_events() -> None:
    channels = all_channels("x")
    lifetime = channels.lifetime()
    columns = [("x", pa.array([1, 2, 3, 4])), ("", pa.array([NOON] * 4))]
    found = encode_columns(columns, 0, 4, channels, POOL)
    time_us = np.array([5, NO_TIME, -(2**55) - 1, 2**53 + 1], np.int64)
    write_event_times(found, channels, time_us)
    assert found.matrix[:, lifetime].tolist()[::2] == [5.0, -(2.0**55)]
    assert math.isnan(found.matrix[1, lifetime])
    assert found.matrix[3, lifetime] == 2.0**53
    assert found.matrix[:, NUMBER_AT].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_without_lifetimes_nobody_is_told_the_times() -> None:
    found = encode_event({"x": 1}, X, POOL)
    before = found.matrix.copy()
    write_event_times(found, X, np.array([5], np.int64))
    assert np.array_equal(found.matrix, before, equal_nan=True)


def test_the_channel_of_lifetimes_is_one_and_made_when_it_is_asked_for() -> None:
    channels = all_channels("x")
    count = channels.columns
    before = channels.known_lifetime
    made = channels.lifetime()
    assert (before, made, channels.lifetime(), channels.known_lifetime) == (None, *[count] * 3)
    assert channels.columns == count + 1
