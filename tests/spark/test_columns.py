"""Columns of events are checked before anything runs, and the message says what would be right."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tidegate import BadValueError, EventError
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_events,
    check_time_zone,
    checked_variables,
    kept_columns,
    result_schema,
)

pytestmark = pytest.mark.xdist_group("spark")

VALUES = (
    "a boolean, b byte, c short, d int, e long, f float, g double, h string, i timestamp, "
    "j timestamp_ntz, k void, l struct<m: struct<n: string>>"
)


def events(spark: SparkSession, schema: str) -> DataFrame:
    made = t.StructType.fromDDL(schema)
    assert isinstance(made, t.StructType)
    return spark.createDataFrame([], made)


def test_all_kinds_of_values_are_taken(spark: SparkSession) -> None:
    check_events(events(spark, VALUES), None)
    for name in ("i", "j"):
        check_events(events(spark, VALUES), name)
    check_events(events(spark, ""), None)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("a int, b array<int>", r"column 'b' of the events is of array<int>, .*; drop it, or take"),
        ("a variant", "column 'a' of the events is of variant, .*; drop it, or take"),
        ("a map<string, int>", "column 'a' of the events is of map<string,int>"),
        ("a binary", "column 'a' of the events is of binary"),
        ("a struct<b: struct<c: binary>>", r"column 'a\.b\.c' of the events is of binary"),
    ],
)
def test_a_column_that_holds_no_values(spark: SparkSession, schema: str, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        check_events(events(spark, schema), None)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("when", "the events have no column 'when' with their time; they have a, b, c"),
        ("A", "the events have no column 'A'"),  # names of attributes have a case
        ("l.m", r"the events have no column 'l\.m'"),
        ("h", "column 'h' holds the time of events and must be of timestamps, not string"),
        ("e", "column 'e' holds the time of events and must be of timestamps, not bigint"),
        ("k", "column 'k' holds the time of events and must be of timestamps, not void"),
    ],
)
def test_what_cannot_be_the_time(spark: SparkSession, name: str, reason: str) -> None:
    with pytest.raises(EventError, match=reason):
        check_events(events(spark, VALUES), name)


def test_the_time_of_a_stream_has_a_zone(spark: SparkSession) -> None:
    check_time_zone(events(spark, VALUES), "i")
    with pytest.raises(EventError, match=r"'j' .* timestamp_ntz, .*; cast it to timestamp"):
        check_time_zone(events(spark, VALUES), "j")


def test_what_stands_in_the_result(spark: SparkSession) -> None:
    table = events(spark, "a int, b string, version int")
    added = {field.name for field in DELIVERY_FIELDS}
    assert kept_columns(table, "a", added) == ["a"]
    assert kept_columns(table, ["b", "a"], added) == ["b", "a"]
    assert kept_columns(table, [], added) == []
    assert kept_columns(table, None, set()) == ["a", "b", "version"]
    with pytest.raises(EventError, match="no column 'c' for the key; they have a, b, version"):
        kept_columns(table, ["a", "c"], added)
    with pytest.raises(EventError, match="a column 'version', which the result adds; rename it"):
        kept_columns(table, None, added)


def test_the_schema_of_the_result(spark: SparkSession) -> None:
    table = events(spark, "a int not null, b string")
    single = result_schema(table, ["b", "a"], grouped=False)
    assert single.names == ["b", "a", "subscription", "subscriber", "version"]
    assert not single["a"].nullable
    grouped = result_schema(table, [], grouped=True)
    assert grouped.simpleString() == (
        "struct<deliveries:array<struct<subscription:string,subscriber:string,version:timestamp>>>"
    )


def test_variables() -> None:
    assert checked_variables(None) == {}
    nan = float("nan")
    assert checked_variables({"load": 1, "gone": None, "nan": nan}) == {"load": 1}
    with pytest.raises(BadValueError, match="variable @load: a list is not a value"):
        checked_variables({"load": [1]})
