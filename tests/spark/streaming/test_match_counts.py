"""Matches are counted once, however often and in however many partitions they are computed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming.match_counts import total_count, with_counting

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


def test_matches_are_counted_once(spark: SparkSession, tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "counts")
    first, second = deliveries(with_counting([pending(spark, 5), pending(spark, 2)], folder))
    assert total_count(folder) == 0  # nothing was computed yet, and nothing is waited for
    assert first.union(second).count() == 14
    assert total_count(folder) == 14
    first.collect()
    first.coalesce(1).collect()
    second.repartition(2).collect()
    assert total_count(folder) == 14


def test_a_part_of_the_rows_is_counted_in_part(spark: SparkSession, tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    [rows] = deliveries(with_counting([pending(spark, 9)], folder))
    assert len(rows.take(2)) == 2
    assert total_count(folder) <= 6
    assert rows.count() == 18
    assert total_count(folder) == 18


def test_no_rows_are_no_matches(spark: SparkSession, tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path / "counts")
    [rows] = deliveries(with_counting([pending(spark, 0)], folder))
    assert rows.count() == 0
    assert total_count(folder) == 0
