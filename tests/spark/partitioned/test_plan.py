"""Each subscription is in the indexes of its values or in one of the rest."""

from __future__ import annotations

import zlib

import pytest

from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.partitioned import plan as planning
from tidegate.spark.partitioned.equality_keys import EqualityKeys
from tidegate.spark.partitioned.plan import PartitionPlan

BUCKETS = 3


def record(filter: str, id: str | None = None, **params: object) -> SubscriptionRecord:
    return SubscriptionRecord(id or filter, filter, params)


def plan(
    sample: list[SubscriptionRecord],
    subscriptions: int = 100,
    events: tuple[str | None, ...] = (),
    attribute: str | None = "s",
) -> PartitionPlan:
    return PartitionPlan.of(
        attribute,
        is_string=True,
        buckets=BUCKETS,
        subscriptions=subscriptions,
        sample=sample,
        event_texts=events,
    )


def test_an_in_list_is_in_the_bucket_of_each_value() -> None:
    wide = record(f"s in ({', '.join(repr(str(n)) for n in range(50))})")
    even, keys = plan([wide]), EqualityKeys()
    assert even.indexes_of(wide, keys) == {1, 2, 3}
    assert even.indexes_of(record("x > 1"), keys) == {0}
    text = "a"
    assert even.indexes_of(record("s = 'a'"), keys) == {1 + zlib.crc32(text.encode()) % BUCKETS}


def test_without_an_attribute_all_belong_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "SUBSCRIPTIONS_PER_INDEX", 10)
    rest = plan([record("s = 'a'")], attribute=None)
    assert (rest.indexes, rest.buckets) == (10, 0)
    keys = EqualityKeys()
    found = [rest.indexes_of(record("s = 'a'", str(n)), keys) for n in range(200)]
    assert set.union(*found) == set(range(10))


def test_a_value_that_most_subscriptions_ask_for_has_several_indexes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planning, "SUBSCRIPTIONS_PER_INDEX", 1000)
    often = [record("s = 'a'", str(n)) for n in range(80)]
    others = [record("x > 1", f"o{n}") for n in range(20)]
    skewed, keys = plan([*often, *others], subscriptions=10_000), EqualityKeys()
    bucket = skewed.bucket_of("a")
    assert skewed.shards == tuple(8 if each == bucket else 1 for each in range(BUCKETS))
    assert skewed.rest_shards == 2
    # each subscription is in one of them, each of them has some
    found = [skewed.indexes_of(each, keys) for each in often]
    assert all(len(each) == 1 for each in found)
    assert set.union(*found) == set(skewed.of_bucket(bucket))
    assert skewed.indexes == 2 + sum(skewed.shards)


def test_a_value_that_most_events_have_has_several_partitions() -> None:
    # of 300 events 200 are in one bucket: twice the average
    texts = ["a"] * 200 + [str(n) for n in range(100)]
    skewed = plan([], events=(*texts, None))
    bucket = skewed.bucket_of("a")
    assert skewed.replicas[bucket] == 2
    assert skewed.first_replicas[-1] == sum(skewed.replicas) == BUCKETS + 1


def test_a_plan_without_samples() -> None:
    empty = plan([], subscriptions=0)
    assert (empty.rest_shards, empty.shards, empty.replicas) == (1, (1,) * 3, (1,) * 3)
