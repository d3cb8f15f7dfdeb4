"""Events go to the partitions of their bucket."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidegate import EventError
from tidegate.spark.partitioned.event_buckets import BUCKET, event_texts, with_bucket
from tidegate.spark.partitioned.plan import PartitionPlan

pytestmark = pytest.mark.xdist_group("spark")

BUCKETS = 3
EVEN = PartitionPlan("s", True, 1, (1,) * BUCKETS, (1,) * BUCKETS)


def test_a_column_of_the_same_name_as_ours(spark: SparkSession) -> None:
    events = spark.range(1).withColumnRenamed("id", BUCKET)
    with pytest.raises(EventError, match="have a column '_bucket', which partitioning adds"):
        with_bucket(events, replace(EVEN, attribute=BUCKET))


def test_events_go_where_their_subscriptions_are(spark: SparkSession) -> None:
    texts = ["", "a", "ä", "Zürich", "🙂", "a b", "0", None]
    rows = [(text, -1 if text is None else len(text) - 2) for text in texts]
    events = spark.createDataFrame(rows, "s string, n int")
    for attribute in ("s", "n"):
        plan = replace(EVEN, attribute=attribute)
        keyed = with_bucket(events, plan).toArrow().to_pylist()
        assert len(keyed) == len(rows)
        for row in keyed:
            assert 0 <= row[BUCKET] < BUCKETS
            if row[attribute] is not None:
                assert row[BUCKET] == plan.bucket_of(str(row[attribute]))
    assert sorted(event_texts(events, "n"), key=str) == sorted((str(n) for _, n in rows), key=str)


def test_a_bucket_with_many_events_is_divided(spark: SparkSession) -> None:
    bucket = EVEN.bucket_of("a")
    plan = replace(EVEN, replicas=tuple(3 if each == bucket else 1 for each in range(BUCKETS)))
    maps = f.create_map(f.lit("k"), f.lit(1))  # a column that cannot be hashed
    events = spark.range(300).withColumn("s", f.lit("a")).withColumn("m", maps)
    divided = with_bucket(events, plan)
    sizes = divided.groupBy(f.spark_partition_id()).count().collect()
    assert len(sizes) == 3
    assert sum(row["count"] for row in sizes) == 300


def test_without_an_attribute_events_stay_where_they_are(spark: SparkSession) -> None:
    events = spark.range(3)
    assert with_bucket(events, PartitionPlan(None, False, 2, (), ())) is events
