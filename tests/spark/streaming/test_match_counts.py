"""Matches are counted once, however often and in however many pieces they are made."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.sinks.parquet_writing import PendingDeliveries
from tidegate.spark.streaming.match_counts import MatchCounts

pytestmark = pytest.mark.xdist_group("spark")

Batches = Iterator[pa.RecordBatch]


def doubled(batches: Batches) -> Batches:
    for each in batches:
        yield each
        yield each


def found(spark: SparkSession, rows: int) -> PendingDeliveries:
    places = spark.range(0, rows, 1, 3).selectExpr("concat('f', id) as file", "int(id) as index")
    return PendingDeliveries(places, doubled, places.schema)


def made(counted: list[PendingDeliveries]) -> list[DataFrame]:
    return [each.deliveries() for each in counted]


def test_matches_are_counted_by_batch_and_once(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    first = made(counts.counted([found(spark, 5), found(spark, 2)], 7))
    assert counts.of(7) == 0  # nothing was made yet, and nothing is waited for
    assert first[0].union(first[1]).count() == 14
    assert counts.of(7) == 14
    first[0].collect()
    first[0].coalesce(1).collect()
    first[1].repartition(2).collect()
    assert counts.of(7) == 14
    [second] = made(counts.counted([found(spark, 3)], 8))
    assert (counts.of(7), counts.of(8)) == (0, 0)
    first[0].count()  # a task of an earlier batch that is still under way
    second.count()
    assert counts.of(8) == 6


def test_what_is_made_in_part_is_counted_in_part(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    [rows] = made(counts.counted([found(spark, 9)], 0))
    assert len(rows.take(2)) == 2
    assert counts.of(0) <= 6
    assert rows.count() == 18
    assert counts.of(0) == 18


def test_no_rows_are_no_matches(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    [rows] = made(counts.counted([found(spark, 0)], 0))
    assert rows.count() == 0
    assert counts.of(0) == 0
