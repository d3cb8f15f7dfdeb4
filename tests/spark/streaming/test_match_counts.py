"""Matches are counted once, however often and in however many partitions they are computed."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.streaming.match_counts import MatchCounts

pytestmark = pytest.mark.xdist_group("spark")

Batches = Iterator[pa.RecordBatch]


def doubled(batches: Batches) -> Batches:
    for each in batches:
        yield each
        yield each


def pending(spark: SparkSession, rows: int) -> PendingDeliveries:
    locations = spark.range(0, rows, 1, 3).selectExpr("concat('f', id) as file", "int(id) as index")
    return PendingDeliveries(locations, doubled, locations.schema)


def deliveries(counted: list[PendingDeliveries]) -> list[DataFrame]:
    return [each.deliveries() for each in counted]


def test_matches_are_counted_by_batch_and_once(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    first = deliveries(counts.with_counting([pending(spark, 5), pending(spark, 2)], 7))
    assert counts.total(7) == 0  # nothing was computed yet, and nothing is waited for
    assert first[0].union(first[1]).count() == 14
    assert counts.total(7) == 14
    first[0].collect()
    first[0].coalesce(1).collect()
    first[1].repartition(2).collect()
    assert counts.total(7) == 14
    [second] = deliveries(counts.with_counting([pending(spark, 3)], 8))
    assert (counts.total(7), counts.total(8)) == (0, 0)
    first[0].count()  # a task of an earlier batch that still runs
    second.count()
    assert counts.total(8) == 6


def test_a_part_of_the_rows_is_counted_in_part(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    [rows] = deliveries(counts.with_counting([pending(spark, 9)], 0))
    assert len(rows.take(2)) == 2
    assert counts.total(0) <= 6
    assert rows.count() == 18
    assert counts.total(0) == 18


def test_no_rows_are_no_matches(spark: SparkSession) -> None:
    counts = MatchCounts(spark)
    [rows] = deliveries(counts.with_counting([pending(spark, 0)], 0))
    assert rows.count() == 0
    assert counts.total(0) == 0
