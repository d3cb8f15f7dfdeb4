"""Subscriptions are in the buckets of their values or in the rest, events in one bucket."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tidegate import EventError, SubscriptionError
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.records import SubscriptionRecord, subscription_of
from tidegate.spark import match
from tidegate.spark.partitioning import (
    BUCKET,
    EqualityKeys,
    PartitionedTask,
    check_attribute,
    most_used_attribute,
    split_into_buckets,
    with_bucket,
)
from tidegate.spark.worker_tasks import DeliveryLayout

pytestmark = pytest.mark.xdist_group("spark")

BUCKETS = 3


def record(filter: str, **params: object) -> SubscriptionRecord:
    return SubscriptionRecord(filter, filter, params)


@pytest.fixture(scope="module")
def empty(spark: SparkSession) -> DataFrame:
    schema = "s string, n int, big long, x double, when timestamp, flag boolean"
    made = t.StructType.fromDDL(schema)
    assert isinstance(made, t.StructType)
    return spark.createDataFrame([], made)


# -- what filters ask for ---------------------------------------------------------------------


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


# -- buckets ----------------------------------------------------------------------------------


def buckets_of(
    versions: list[SubscriptionRecord], events: DataFrame, attribute: str
) -> tuple[list[str], list[list[str]]]:
    rest, found = split_into_buckets(versions, events, attribute, BUCKETS)
    return [each.filter for each in rest], [[each.filter for each in some] for some in found]


def test_each_subscription_is_in_the_buckets_of_its_values_or_in_the_rest(
    empty: DataFrame,
) -> None:
    wide = record(f"s in ({', '.join(repr(str(n)) for n in range(50))})")
    other = record("x > 1")
    rest, found = buckets_of([wide, other, record("s = 'a'")], empty, "s")
    assert rest == ["x > 1"]
    assert all(wide.filter in each for each in found)
    assert sum(each.count("s = 'a'") for each in found) == 1


@pytest.mark.parametrize(
    ("attribute", "first", "second"),
    [("n", "n = 2", "n = 2.0"), ("n", "n = 0", "n = -0.0"), ("big", "big = -7", "big = -7.0")],
)
def test_equal_numbers_are_in_one_bucket(
    empty: DataFrame, attribute: str, first: str, second: str
) -> None:
    rest, found = buckets_of([record(first), record(second)], empty, attribute)
    assert rest == []
    assert sorted(found) == [[], [], [first, second]]


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
    ],
)
def test_a_value_that_no_event_has(
    empty: DataFrame, attribute: str, filter: str, params: dict[str, object]
) -> None:
    """It goes to the rest, because building an index finds bad subscriptions."""
    rest, found = buckets_of([record(filter, **params)], empty, attribute)
    assert (rest, found) == ([filter], [[], [], []])


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


def test_a_column_of_the_same_name_as_ours(spark: SparkSession) -> None:
    with pytest.raises(EventError, match="have a column '_bucket', which partitioning adds"):
        with_bucket(spark.range(1).withColumnRenamed("id", BUCKET), BUCKET, 2)


def test_events_go_where_their_subscriptions_are(spark: SparkSession) -> None:
    texts = ["", "a", "ä", "Zürich", "🙂", "a b", "0", None]
    rows = [(text, -1 if text is None else len(text) - 2) for text in texts]
    events = spark.createDataFrame(rows, "s string, n int")
    for attribute in ("s", "n"):
        keyed = with_bucket(events, attribute, BUCKETS).toArrow().to_pylist()
        assert len(keyed) == len(rows)
        for row in keyed:
            assert 0 <= row[BUCKET] < BUCKETS
            if row[attribute] is not None:
                filter = f"{attribute} = {row[attribute]!r}"
                _, found = buckets_of([record(filter)], events, attribute)
                assert found[row[BUCKET]] == [filter]


# -- matching ---------------------------------------------------------------------------------


class Held:
    """The handle of an index in this process."""

    def __init__(self, versions: list[SubscriptionRecord]) -> None:
        self._matcher = AsOfMatcher(versions)

    def open(self) -> AsOfMatcher:
        return self._matcher


def test_a_batch_of_several_buckets_gives_what_the_oracle_gives(empty: DataFrame) -> None:
    versions = [
        record("s = 'a'"), record("s in ('a', 'b') and x > 1"), record("x < 2"), record("s = 'c'"),
        record("s is not null"),
    ]  # fmt: skip
    rest, buckets = split_into_buckets(versions, empty, "s", BUCKETS)
    columns: dict[str, Any] = {
        "e": pa.array(range(6)),
        "s": pa.array(["a", "b", "c", None, "d", "a"]),
        "x": pa.array([1.0, 2.0, None, 0.0, 5.0, 9.0]),
    }
    texts = columns["s"].to_pylist()
    numbers = [0 if text is None else zlib.crc32(text.encode()) % BUCKETS for text in texts]
    batch = pa.record_batch({**columns, BUCKET: pa.array(numbers, pa.int32())})
    task = PartitionedTask(
        Held(rest), [Held(each) for each in buckets], DeliveryLayout(None, ("e",), False)
    )
    found = sorted((row["e"], row["subscription"]) for row in _rows(task(iter([batch]))))
    oracle = NaiveMatcher()
    oracle.add(subscription_of(each, None) for each in versions)
    wanted = oracle.match_batch(EventBatch.of(pa.table(columns)))
    ids = [str(each) for each in wanted.subscriptions.to_pylist()]
    assert found == sorted(zip(wanted.events.tolist(), ids, strict=True))


def _rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for each in batches for row in each.to_pylist()]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([("s", "a", None), ("s", "d", None)], "there already is a subscription 's'"),
        ([("s", ":p", '{"p": [1]}')], "subscription 's': parameter :p: a list is not a value"),
        ([("s", "5 and n = :p", '{"q": 1}')], "subscription 's': the filter has no parameter :q"),
    ],
)
def test_bad_subscriptions_are_found_as_without_partitions(
    empty: DataFrame, rows: list[tuple[str, str, str | None]], reason: str
) -> None:
    values = [value if value[0] in ":5" else repr(value) for _, value, _ in rows]
    table = pa.table(
        {
            "id": [id for id, _, _ in rows],
            "filter": [f"s = {value}" for value in values],
            "params": pa.array([params for _, _, params in rows], pa.string()),
        }
    )
    for attribute in (None, "s"):
        with pytest.raises(SubscriptionError, match=reason):
            match(empty, table, partition_by=attribute)
    match(empty, table, partition_by="s", skip_bad=True)


def test_bad_subscriptions_are_left_out_as_without_partitions(spark: SparkSession) -> None:
    ids = ["bad", "first", "first", "bad", "rest"]
    filters = ["s = ", "s = 'a'", "s = 'd'", "s = 'a'", "n = 1"]
    table = pa.table({"id": ids, "filter": filters})
    events = spark.createDataFrame([("a", 0), ("d", 1)], "s string, n int")
    alone, partitioned = (
        match(events, table, key="n", partition_by=attribute, skip_bad=True).toArrow()
        for attribute in (None, "s")
    )
    wanted = [(0, "bad"), (0, "first"), (1, "rest")]
    for found in (alone, partitioned):
        assert sorted((row["n"], row["subscription"]) for row in found.to_pylist()) == wanted
