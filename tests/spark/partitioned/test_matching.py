"""Events matched with the indexes of their bucket give what the oracle gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest

from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.records import SubscriptionRecord, subscription_of
from tidegate.spark.partitioned.equality_keys import EqualityKeys
from tidegate.spark.partitioned.event_buckets import BUCKET
from tidegate.spark.partitioned.matching import PartitionedTask
from tidegate.spark.partitioned.plan import PartitionPlan
from tidegate.spark.worker_tasks import DeliveryLayout

SKEWED = PartitionPlan("s", True, 2, (1, 3, 2), (1, 1, 1))


class Held:
    """The handle of an index in this process."""

    def __init__(self, versions: Sequence[SubscriptionRecord]) -> None:
        self._matcher = AsOfMatcher(versions)

    def open(self) -> AsOfMatcher:
        return self._matcher


def task_for(
    versions: list[SubscriptionRecord], plan: PartitionPlan, layout: DeliveryLayout
) -> PartitionedTask:
    keys = EqualityKeys()
    found = [plan.indexes_of(each, keys) for each in versions]
    held = [
        Held([each for each, numbers in zip(versions, found, strict=True) if index in numbers])
        for index in range(plan.indexes)
    ]
    buckets = [[held[each] for each in plan.of_bucket(bucket)] for bucket in range(plan.buckets)]
    return PartitionedTask(held[: plan.rest_shards], buckets, layout)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("plan", [SKEWED, PartitionPlan(None, False, 3, (), ())])
def test_a_batch_of_several_buckets(plan: PartitionPlan, grouped: bool) -> None:
    filters = ["s = 'a'", "s in ('a', 'b') and x > 1", "x < 2", "s = 'c'", "s is not null"]
    versions = [
        SubscriptionRecord(f"{filter} {n}", filter, {}) for filter in filters for n in range(5)
    ]
    columns: dict[str, Any] = {
        "e": pa.array(range(6)),
        "s": pa.array(["a", "b", "c", None, "d", "a"]),
        "x": pa.array([1.0, 2.0, None, 0.0, 5.0, 9.0]),
        "unused": pa.array([[1]] * 6),  # no value, and nobody asks for it
    }
    batch = pa.record_batch(columns)
    if plan.attribute is not None:
        texts = columns["s"].to_pylist()
        numbers = [0 if text is None else plan.bucket_of(text) for text in texts]
        batch = batch.append_column(BUCKET, pa.array(numbers, pa.int32()))
    layout = DeliveryLayout(None, ("e", "unused"), grouped, used=frozenset({"s", "x"}))
    rows = _rows(task_for(versions, plan, layout)(iter([batch])))
    if grouped:
        assert len({row["e"] for row in rows}) == len(rows)  # one row for an event
        rows = [{**row, **each} for row in rows for each in row["deliveries"]]
    found = sorted((row["e"], row["subscription"]) for row in rows)
    oracle = NaiveMatcher()
    oracle.add(subscription_of(each, None) for each in versions)
    wanted = oracle.match_batch(EventBatch.of(pa.table(columns), {"s", "x"}))
    ids = [str(each) for each in wanted.subscriptions.to_pylist()]
    assert found == sorted(zip(wanted.events.tolist(), ids, strict=True))


def test_no_subscriptions_at_all() -> None:
    batch = pa.record_batch({"s": ["a"]})
    layout = DeliveryLayout(None, ("s",), False)
    assert _rows(PartitionedTask([], [], layout)(iter([batch]))) == []
    keyed = batch.append_column(BUCKET, pa.array([0], pa.int32()))
    assert _rows(PartitionedTask([], [[]], layout)(iter([keyed]))) == []


def _rows(batches: Iterator[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for each in batches for row in each.to_pylist()]
