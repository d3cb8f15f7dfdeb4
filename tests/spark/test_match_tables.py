"""Matching tables gives the same answers as the engine, partitioned or not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import Engine, EventError, SubscriptionError
from tidegate.experiments.workloads import WORKLOADS
from tidegate.spark import match

pytestmark = pytest.mark.xdist_group("spark")


def test_gives_what_the_engine_gives(spark: SparkSession) -> None:
    workload = WORKLOADS["market"]
    subscriptions, events = workload.subscriptions(2000), workload.events(3000)
    indexed = events.append_column("event", pa.array(range(3000)))
    found = match(spark.createDataFrame(indexed), subscriptions, key="event").toArrow()
    engine = Engine(clock=lambda: None)
    engine.subscribe_batch(subscriptions)
    wanted = engine.match_batch(events)
    assert _pairs(found) == _pairs(wanted)
    assert found.column_names == ["event", "subscription", "subscriber", "version"]


def _pairs(table: pa.Table) -> list[tuple[object, object]]:
    events, ids = table.column("event").to_pylist(), table.column("subscription").to_pylist()
    return sorted(zip(events, ids, strict=True))


def test_names_what_is_wrong(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, [2])], "a int, b array<int>")
    subscriptions = pa.table({"id": ["s"], "filter": ["a > 0 or b > 0"]})
    for attribute in (None, "a"):
        with pytest.raises(EventError, match="column 'b' of the events is of array<int>"):
            match(events, subscriptions, partition_by=attribute)
    with pytest.raises(SubscriptionError, match="no column 'filter'"):
        match(events.select("a"), pa.table({"id": ["s"]}))


@pytest.mark.filterwarnings("ignore::tidegate.errors.MisfitWarning")  # of `symbol = 5`
def test_partitioned_by_an_attribute_it_gives_the_same(spark: SparkSession) -> None:
    texts = [
        "symbol = 'A' and price > 3", "symbol in ('A', 'B', :c)", "price < 4", "symbol = :c",
        "symbol = 'A' or symbol = 'C'", "symbol = 'A' or price = 9", "code = 3", "symbol = 5",
        "code in (1, 2.0, 2.5)", "symbol != 'A'",
    ]  # fmt: skip
    params = ['{"c": "C"}' if ":c" in text else None for text in texts]
    subscriptions = pa.table({"id": texts, "filter": texts, "params": params})
    rows = [
        (number, symbol, price, code)
        for number, (symbol, price, code) in enumerate(
            (symbol, price, code)
            for symbol in ["A", "B", "C", "", None]
            for price in [3.0, 9.0, None]
            for code in [1, 2, 3, None]
        )
    ]
    events = spark.createDataFrame(rows, "event int, symbol string, price double, code long")
    wanted = _pairs(match(events, subscriptions, key="event", partition_by=None).toArrow())
    for attribute in ("symbol", "code"):
        found = match(events, subscriptions, key="event", partition_by=attribute)
        assert _pairs(found.toArrow()) == wanted


def test_a_large_index_is_partitioned_by_the_attribute_that_is_used_most(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.match_tables.SUBSCRIPTIONS_MAX", 999)
    workload = WORKLOADS["market"]
    events = workload.events(500).append_column("event", pa.array(range(500)))
    subscriptions, table = workload.subscriptions(1000), spark.createDataFrame(events)
    found = match(table, subscriptions, key="event")
    assert "PartitionedTask" in found._jdf.queryExecution().toString()
    alone = match(table, subscriptions, key="event", partition_by=None)
    assert _pairs(found.toArrow()) == _pairs(alone.toArrow())


def test_many_subscriptions_without_an_equality(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.match_tables.SUBSCRIPTIONS_MAX", 9)
    monkeypatch.setattr("tidegate.spark.partitioned.plan.SUBSCRIPTIONS_PER_INDEX", 5)
    table = pa.table({"id": list(range(20)), "filter": [f"n > {each}" for each in range(20)]})
    events = spark.range(25).withColumnRenamed("id", "n")
    alone, found = (
        match(events, spark.createDataFrame(table), partition_by=attribute)
        .withColumnRenamed("n", "event")
        .toArrow()
        for attribute in (None, "auto")
    )
    assert _pairs(found) == _pairs(alone)
    grouped = match(events, table, grouped=True).toArrow()
    assert grouped.column("n").to_pylist() == list(range(1, 25))


def test_only_needed_columns_are_read_and_only_they_must_hold_values(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [(n, [n], {"x": [n], "y": n}, Decimal(n) / 10, date(2026, 1, 1 + n)) for n in range(3)]
    schema = "n int, l array<int>, s struct<x array<int>, y int>, d decimal(5,1), day date"
    spark.createDataFrame(rows, schema).write.parquet(str(tmp_path / "events"))
    events = spark.read.parquet(str(tmp_path / "events"))
    filters = ["s.y > 1", "d = 0.1", "day = timestamp '2026-01-01T00:00:00Z'"]
    table = pa.table({"id": filters, "filter": filters})
    for attribute in (None, "n"):
        found = match(events, table, key="n", partition_by=attribute)
        assert "l:array" not in found._jdf.queryExecution().toString().partition("ReadSchema")[2]
        pairs = _pairs(found.withColumnRenamed("n", "event").toArrow())
        assert pairs == sorted(zip((2, 1, 0), filters, strict=True))
        # what is kept need not hold values
        assert match(events, table, key="l", partition_by=attribute).count() == 3


def test_indexes_are_kept_in_the_given_folder(spark: SparkSession, tmp_path: Path) -> None:
    events = spark.range(9).withColumnRenamed("id", "n")
    table = pa.table({"id": ["a", "b"], "filter": ["n = 1", "n > 7"]})
    found = match(events, table, partition_by="n", storage=tmp_path / "kept")
    [folder] = (tmp_path / "kept").iterdir()
    assert len(list(folder.iterdir())) == 2
    assert found.count() == 2


def test_the_column_to_partition_by_must_fit(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1.5,)], "a double")
    subscriptions = pa.table({"id": ["s"], "filter": ["a > 0"]})
    with pytest.raises(SubscriptionError, match="no column 'b' to be partitioned by; they have a"):
        match(events, subscriptions, partition_by="b")
    with pytest.raises(SubscriptionError, match="'a' is of double; events are partitioned by"):
        match(events, subscriptions, partition_by="a")
