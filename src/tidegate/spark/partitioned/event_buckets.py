"""Events in partitions by the bucket of an attribute."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import EventError
from tidegate.spark.columns import quoted_column
from tidegate.spark.partitioned.plan import PartitionPlan

BUCKET = "_bucket"
"""The column with the bucket of an event."""
SAMPLE_SIZE = 10_000
"""The number of events that are looked at to find the buckets with the most events."""


def event_texts(events: DataFrame, attribute: str) -> list[str | None]:
    """The values of an attribute in the first events; none of a stream.

    The first events are a cheap sample: a random one would read all events.
    """
    if events.isStreaming:
        return []
    texts = events.select(quoted_column(attribute).cast("string").alias("text"))
    found: list[str | None] = texts.limit(SAMPLE_SIZE).toArrow().column("text").to_pylist()
    return found


def with_bucket(events: DataFrame, plan: PartitionPlan) -> DataFrame:
    """Events with the number of their bucket in a column, each bucket in partitions of its own.

    Without an attribute to partition by, the events stay as they are.
    """
    if plan.attribute is None:
        return events
    if BUCKET in events.columns:
        raise EventError(
            f"the events have a column {BUCKET!r}, which partitioning adds; rename it, "
            "or rule partitioning out with `partition_by=None`"
        )
    checksum = f.crc32(quoted_column(plan.attribute).cast("string").cast("binary"))
    # A hash of all columns is the same when a task is run again, as a random number is not.
    spread = f.xxhash64(*map(quoted_column, _hashable(events)))
    # An event without the attribute matches only the rest, so any bucket will do. One fixed bucket
    # would get all of them.
    bucket: Column = f.pmod(f.coalesce(checksum, spread), f.lit(plan.buckets)).cast("int")
    numbered = events.withColumn(BUCKET, bucket)
    firsts, replicas = (
        f.element_at(f.array(*map(f.lit, some)), f.col(BUCKET) + f.lit(1))
        for some in (plan.first_replicas, plan.replicas)
    )
    replica = (firsts + f.pmod(spread, replicas)).cast("int")
    partitions = plan.first_replicas[-1]
    if not hasattr(numbered, "repartitionById"):  # new in Spark 4.1
        return numbered.repartition(partitions, replica)  # several may share a partition
    return numbered.repartitionById(partitions, replica)


def _hashable(events: DataFrame) -> list[str]:
    """The columns that Spark can hash: not maps and variants, which may be in structs and lists."""
    return [each.name for each in events.schema if not _has_map(each.dataType)]


def _has_map(kind: t.DataType) -> bool:
    if isinstance(kind, t.StructType):
        return any(_has_map(each.dataType) for each in kind)
    if isinstance(kind, t.ArrayType):
        return _has_map(kind.elementType)
    return isinstance(kind, (t.MapType, t.VariantType))
