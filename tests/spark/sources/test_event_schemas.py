"""Schemas of events: which are accepted, and what the errors say."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from tidegate.errors import ConnectorError
from tidegate.spark.sources.event_schemas import arrow_schema, event_schema

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
