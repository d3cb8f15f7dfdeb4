"""Schemas of events: which are accepted, and what the errors say."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from tidegate.errors import ConnectorError
from tidegate.language.spaces import Space
from tidegate.spark.sources.event_schemas import arrow_schema, check_in_space, event_schema

# Spark reads DDL in its Java side, which a session starts.
pytestmark = [pytest.mark.xdist_group("connectors"), pytest.mark.usefixtures("spark")]


def test_ddl_and_struct_are_the_same() -> None:
    struct = t.StructType().add("price", "double").add("at", t.StructType().add("x", "long"))
    assert event_schema("price double, at struct<x: bigint>") == event_schema(struct) == struct


def test_any_attribute_may_be_absent() -> None:
    checked = event_schema("price double not null, at struct<x: bigint not null>")
    assert checked == event_schema("price double, at struct<x: bigint>")


def test_the_types_in_arrow() -> None:
    checked = event_schema("a boolean, b int, c float, d string, e timestamp, f struct<g: double>")
    assert {field.name: field.type for field in arrow_schema(checked)} == {
        "a": pa.bool_(),
        "b": pa.int32(),
        "c": pa.float32(),
        "d": pa.string(),
        "e": pa.timestamp("us", "UTC"),
        "f": pa.struct([("g", pa.float64())]),
    }


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("price duble", "the schema 'price duble' is not DDL"),
        ("double", "the schema 'double' has no columns; write 'name type, ...'"),
        (t.StructType(), "the schema of events has no columns"),
        ("tags array<string>", "column 'tags' is array<string>; a list is not a value"),
        ("at struct<x: array<int>>", "column 'at.x' is array<int>; a list is not a value"),
        ("price decimal(9,2)", "column 'price' is decimal(9,2); an attribute is a boolean, an"),
        ("_bad string", "column '_bad' of the schema has the name of a column that the source"),
        ("key string", "column 'key' of the schema has the name of a column that the source"),
        (t.StructType().add("a", "long").add("a", "long"), "column 'a' is in the schema twice"),
    ],
)
def test_what_cannot_be_a_schema(schema: str | t.StructType, message: str) -> None:
    with pytest.raises(ConnectorError) as caught:
        event_schema(schema, frozenset(["key"]))
    assert str(caught.value).startswith(message)


SPACE = Space(
    "trades",
    {"symbol": str, "price": float, "volume": int, "open": bool, "at": datetime, "q.bid": float},
)


def test_a_schema_that_fits_a_space() -> None:
    schema = "symbol string, price float, volume tinyint, open boolean, at timestamp"
    check_in_space(event_schema(schema), SPACE)
    check_in_space(event_schema("price long, q struct<bid: int>"), SPACE)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("prize double", "space 'trades' has no attribute 'prize' (did you mean 'price'?)"),
        ("q struct<bit: int>", "space 'trades' has no attribute 'q.bit' (did you mean 'q.bid'?)"),
        ("volume double", "column 'volume' is double here and integer in space 'trades'"),
        ("q struct<bid: string>", "column 'q.bid' is string here and float in space 'trades'"),
        ("at string", "column 'at' is string here and timestamp in space 'trades'"),
    ],
)
def test_a_schema_that_does_not_fit_a_space(schema: str, reason: str) -> None:
    with pytest.raises(ConnectorError) as raised:
        check_in_space(event_schema(schema), SPACE)
    assert str(raised.value) == reason
