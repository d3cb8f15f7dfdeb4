"""Columns of a log as columns of a DataFrame: which values fit which types."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from support import strategies
from tidegate import Event, EventError, LogError
from tidegate.language.values import Value, to_us
from tidegate.spark.log.event_columns import events_to_columns
from tidegate.spark.log.part_files import BATCH_EVENTS_MAX
from tidegate.spark.log.projection import Projection, check_columns, infer_columns

TYPES: dict[str, DataType] = {
    kind.simpleString(): kind
    for kind in [
        BooleanType(), ByteType(), ShortType(), IntegerType(), LongType(), FloatType(),
        DoubleType(), StringType(), TimestampType(), TimestampNTZType(), DecimalType(3, 1),
    ]
}  # fmt: skip
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def struct(**columns: Any) -> StructType:
    schema = StructType()
    for name, kind in columns.items():
        schema.add(name.replace("__", "."), TYPES[kind] if isinstance(kind, str) else kind)
    return schema


def rows(
    schema: StructType, *events: dict[str, Value], first: int = 0, to_null: bool = False
) -> list[dict[str, Any]]:
    batch = events_to_columns([Event(event) for event in events], NOW)
    found = Projection(schema, mismatch_to_null=to_null).project(first, batch)
    found.validate(full=True)
    assert found.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    return found.to_pylist()


def test_columns_are_attributes() -> None:
    schema = struct(b="string", quote__price="double", a="bigint", none="boolean")
    assert rows(schema, {"a": 1, "quote.price": 9.5}, {"b": "x", "more": 1}) == [
        {"b": None, "quote.price": 9.5, "a": 1, "none": None},
        {"b": "x", "quote.price": None, "a": None, "none": None},
    ]


def test_structs() -> None:
    schema = struct(a=struct(b="int", c=struct(d="string")))
    assert rows(schema, {"a.b": 1, "a.c.d": "x"}, {"a.b": 1}, {"a.c.d": "x"}, {"a": 1}) == [
        {"a": {"b": 1, "c": {"d": "x"}}},
        {"a": {"b": 1, "c": None}},
        {"a": {"b": None, "c": {"d": "x"}}},
        {"a": None},
    ]


def test_special_columns() -> None:
    schema = struct(_time="timestamp", _offset="bigint")
    assert rows(schema, {"a": 1}, {}, first=7) == [
        {"_time": NOW, "_offset": 7},
        {"_time": NOW, "_offset": 8},
    ]


def test_an_attribute_of_several_types() -> None:
    events: list[dict[str, Value]] = [{"a": 1}, {"a": 2.5}, {}, {"a": "x"}]
    with pytest.raises(EventError, match=r"'a' is of double, .* at offset 13 has the string 'x'"):
        rows(struct(a="double"), *events, first=10)
    found = rows(struct(a="double"), *events, to_null=True)
    assert [row["a"] for row in found] == [1.0, 2.5, None, None]


def holds(kind: str, value: Value) -> bool:
    """Whether a column of a Spark type can hold a value, in plain Python."""
    bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
    if kind in ("float", "double"):
        if type(value) not in (int, float):
            return False
        try:
            number = float(value)  # type: ignore[arg-type]
            return number == value and (kind == "double" or float(np.float32(number)) == value)
        except OverflowError:
            return False
    if kind in bits:
        bound = 2 ** (bits[kind] - 1)
        number_kind = isinstance(value, int | float) and not isinstance(value, bool)
        return number_kind and -bound <= value < bound and value == int(value)  # type: ignore[arg-type]
    return kind == {bool: "boolean", str: "string", datetime: "timestamp"}.get(type(value))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")  # in holds
@given(
    st.sampled_from(list(TYPES)[:9]),
    st.lists(strategies.values | st.sampled_from([2.0**63, -(2.0**63), 127, 128, 2**31, -129])),
)
def test_a_column_has_what_it_can_hold_exactly(kind: str, values: list[Value]) -> None:
    events: list[dict[str, Value]] = [{"a": value} for value in values]
    batch = events_to_columns([Event(event) for event in events], NOW)
    array = Projection(struct(a=kind), mismatch_to_null=True).project(0, batch).column(0)
    found = (array.cast(pa.int64()) if kind == "timestamp" else array).to_pylist()
    plain = [to_us(v) if isinstance(v, datetime) else v for v in values]
    expected = [p if holds(kind, v) else None for v, p in zip(values, plain, strict=True)]
    assert found == expected
    refused = [index for index, value in enumerate(values) if not holds(kind, value)]
    if refused:
        with pytest.raises(EventError, match=f"'a' is of {kind}, .* at offset \\d+ has the "):
            rows(struct(a=kind), *events)
    else:
        rows(struct(a=kind), *events)


def test_local_timestamps_are_of_utc() -> None:
    found = rows(struct(a="timestamp_ntz"), {"a": NOW})
    assert found == [{"a": NOW.replace(tzinfo=None)}]


def test_columns_that_must_not_be_null() -> None:
    schema = struct(b="int")
    schema.add(StructField("a", schema["b"].dataType, nullable=False))
    assert rows(schema, {"a": 1}) == [{"b": None, "a": 1}]
    with pytest.raises(EventError, match="'a' must not be null, but the event at offset 4"):
        rows(schema, {"a": 1}, {"b": 1}, first=3)


def test_small_batches_are_joined() -> None:
    batches = [(n, events_to_columns([Event({"a": n})] * 4_000, NOW)) for n in range(5)]
    found = list(Projection(struct(a="bigint"), mismatch_to_null=False).apply(batches))
    assert [batch.num_rows for batch in found] == [8_000, 8_000, 4_000]
    assert max(batch.num_rows for batch in found) <= BATCH_EVENTS_MAX
    assert not list(Projection(struct(a="int"), mismatch_to_null=False).apply([]))


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (struct(), "no columns"),
        (
            struct(a=ArrayType(IntegerType())),
            "'a' is of array<int>, which no value of an event has",
        ),
        (struct(a=struct(b="decimal(3,1)")), r"'a.b' is of decimal\(3,1\)"),
        (struct(a=struct(b="int"), a__b="int"), "two columns for the attribute 'a.b'"),
        (struct(_offset="int"), "'_offset' is of int, but must be of bigint"),
        (struct(_time="string"), "'_time' is of string, but must be of timestamp"),
    ],
)
def test_columns_that_events_cannot_have(schema: StructType, reason: str) -> None:
    with pytest.raises(LogError, match=reason):
        check_columns(schema)


def test_inferred_columns() -> None:
    events = [Event({"b": True, "a": 1, "q.x": "s"}), Event({"a": 2.5, "t": NOW, "n": 7})]
    special = struct(_offset="bigint", _time="timestamp")
    expected = struct(a="double", b="boolean", n="bigint", q__x="string", t="timestamp")
    whole = infer_columns([events_to_columns(events, NOW).schema])
    parts = infer_columns(events_to_columns([event], NOW).schema for event in events)
    assert whole == parts == StructType(special.fields + expected.fields)


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([], "no events to infer columns from; give a schema"),
        ([{"a": 1}, {"a": "x"}], "'a' is bigint in some events and string in others"),
        ([{"a": 1, "_time": 1}], "the name of attribute '_time' is taken"),
    ],
)
def test_columns_that_cannot_be_inferred(events: list[dict[str, Value]], reason: str) -> None:
    with pytest.raises(LogError, match=reason):
        infer_columns([events_to_columns([Event(event) for event in events], NOW).schema])
