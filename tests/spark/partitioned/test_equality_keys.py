"""The attributes that filters fix, and the values they ask for."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tidegate import SubscriptionError
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.partitioned.equality_keys import (
    EqualityKeys,
    check_attribute,
    is_string_column,
    most_used_attribute,
)

pytestmark = pytest.mark.xdist_group("spark")


def record(filter: str, **params: object) -> SubscriptionRecord:
    return SubscriptionRecord(filter, filter, params)


@pytest.fixture(scope="module")
def empty(spark: SparkSession) -> DataFrame:
    schema = "s string, n int, big long, x double, when timestamp, flag boolean"
    made = t.StructType.fromDDL(schema)
    assert isinstance(made, t.StructType)
    return spark.createDataFrame([], made)


@pytest.mark.parametrize(
    ("filter", "attributes"),
    [
        ("s = 'a'", ["s"]),
        ("s = 'a' and n = 1 and x > 3", ["n", "s"]),
        ("s in ('a', 'b')", ["s"]),
        ("s = :p", ["s"]),
        ("s = 'a' or s = 'b' and n = 1", ["s"]),
        ("s = 'a' or n = 1", []),
        ("s != 'a'", []),
        ("s > 'a'", []),
        ("not s = 'a'", []),
        ("n = 1 + t", []),
        ("n = @load", []),
        ("true", []),
        ("s like 'a%'", []),
        ("s = ", []),  # its index says what is wrong
    ],
)
def test_the_attributes_that_a_filter_needs(filter: str, attributes: list[str]) -> None:
    assert EqualityKeys().attributes(record(filter)) == attributes


@pytest.mark.parametrize(
    ("filter", "params", "values"),
    [
        ("s = 'a' and s = 'b'", {}, {"a"}),  # one of them is enough to know where it can match
        ("s in ('a', :p) or s = 'c'", {"p": "b"}, {"a", "b", "c"}),
        ("s = :p", {}, {None}),
        ("s = 'a' or x > 1", {}, None),
        ("n = 1", {}, None),
        ("s = :p", {"p": [1]}, None),
        ("s = :p", {"p": "\ud800"}, None),
        ("s = 'a'", {"p": "b"}, {"a"}),
    ],
)
def test_the_values_that_a_filter_asks_for(
    filter: str, params: dict[str, object], values: set[object] | None
) -> None:
    assert EqualityKeys().values(record(filter, **params), "s") == values


def test_the_attribute_that_is_used_most(empty: DataFrame) -> None:
    some = [record("s = 'a' and n = 1"), record("s = 'b'"), record("n = 1"), record("s = 'c'")]
    assert most_used_attribute(some, empty) == "s"
    assert (
        most_used_attribute([record("x = 1.5"), record("flag = true"), record("y = 1")], empty)
        is None
    )
    assert most_used_attribute([], empty) is None


@pytest.mark.parametrize(
    ("attribute", "first", "second"),
    [("n", "n = 2", "n = 2.0"), ("n", "n = 0", "n = -0.0"), ("big", "big = -7", "big = -7.0")],
)
def test_equal_numbers_have_one_text(attribute: str, first: str, second: str) -> None:
    texts = [
        EqualityKeys().texts(record(each), attribute, is_string=False) for each in (first, second)
    ]
    assert texts[0] == texts[1] != set()


@pytest.mark.parametrize(
    ("attribute", "filter", "params"),
    [
        ("s", "s = 5", {}),
        ("n", "n = '5'", {}),
        ("n", "n = true", {}),
        ("n", "n = 2.5", {}),
        ("n", "n = 1e300", {}),
        ("n", "n = :p", {"p": float("inf")}),
        ("s", "s = :p", {"p": None}),
        ("s", "x > 1", {}),
    ],
)
def test_a_value_that_no_event_has_gives_no_text(
    empty: DataFrame, attribute: str, filter: str, params: dict[str, object]
) -> None:
    is_string = is_string_column(empty, attribute)
    assert EqualityKeys().texts(record(filter, **params), attribute, is_string=is_string) == set()


def test_the_attributes_that_a_filter_names() -> None:
    assert EqualityKeys().constrained(record("s = 'a' and a.b > 1 or not x = 2")) == {
        "s",
        "a.b",
        "x",
    }
    assert EqualityKeys().constrained(record("true")) == set()


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        ("y", "the events have no column 'y' to be partitioned by; they have s, n, big, x"),
        ("x", "column 'x' is of double; events are partitioned by strings or integers"),
        ("flag", "column 'flag' is of boolean"),
        ("when", "column 'when' is of timestamp"),
    ],
)
def test_what_cannot_be_partitioned_by(empty: DataFrame, attribute: str, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        check_attribute(empty, attribute)
