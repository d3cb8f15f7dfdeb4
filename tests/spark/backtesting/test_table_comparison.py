"""Comparing two tables: the deliveries that only one of them makes, checked by the oracle."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.language.values import to_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.records import SubscriptionRecord, subscription_of
from tidegate.spark.backtesting.table_comparison import (
    COUNT_SCHEMA,
    COUNTED,
    CountTask,
    Effect,
    EffectTask,
    TableComparison,
)
from tidegate.spark.backtesting.time_buckets import TimeBuckets
from tidegate.spark.index_files import DriverFile, IndexFile
from tidegate.spark.worker_tasks import DeliveryLayout

START = datetime(2026, 1, 1, tzinfo=UTC)
Row = dict[str, Any]
Triple = tuple[int, str, str | None]
"""An event by its number, a subscription and its subscriber."""


def record(id: str, filter: str, subscriber: str | None = None) -> SubscriptionRecord:
    return SubscriptionRecord(id, filter, subscriber=subscriber)


def batch(values: Sequence[int | None], first: int = 0) -> pa.RecordBatch:
    numbers = range(first, first + len(values))
    columns: dict[str, Any] = {
        "n": pa.array(numbers, pa.int64()),
        "a": pa.array(values, pa.int64()),
        "time": pa.array(
            [START + timedelta(seconds=n) for n in numbers], pa.timestamp("us", "UTC")
        ),
    }
    return pa.record_batch(columns)


class Tables:
    """A live table and a changed one, in files as workers open them."""

    def __init__(
        self, folder: Path, live: list[SubscriptionRecord], changed: list[SubscriptionRecord]
    ) -> None:
        self.live, self.changed = live, changed
        self._folder = folder

    def comparison(self) -> TableComparison:
        live, changed = self._saved("live", self.live), self._saved("changed", self.changed)
        return TableComparison(live, changed, DeliveryLayout("time", ("n",), grouped=False))

    def _saved(self, name: str, records: list[SubscriptionRecord]) -> IndexFile:
        path = str(self._folder / f"{name}.arrow")
        AsOfMatcher(records).save(path)
        return IndexFile(path, DriverFile(path))

    def effects(self, *batches: pa.RecordBatch) -> list[Row]:
        return rows_of(EffectTask(self.comparison())(iter(batches)))

    def counts(self, buckets: TimeBuckets | None, *batches: pa.RecordBatch) -> list[Row]:
        return rows_of(CountTask(self.comparison(), buckets)(iter(batches)))

    def wanted(self, events: pa.RecordBatch) -> dict[str, Counter[Triple]]:
        """The deliveries with each effect, by the oracle."""
        live, changed = naive(self.live, events), naive(self.changed, events)
        return {
            "leaving": live - changed,
            "entering": changed - live,
            "staying": live & changed,
        }


def naive(records: list[SubscriptionRecord], events: pa.RecordBatch) -> Counter[Triple]:
    matcher = NaiveMatcher()
    matcher.add(subscription_of(each, None) for each in records)
    found = matcher.match_batch(EventBatch.of(events))
    subscriber_of = {each.id: each.subscriber for each in records}
    numbers = events.column("n").to_pylist()
    ids = [str(each) for each in found.subscriptions.to_pylist()]
    pairs = zip(found.events.tolist(), ids, strict=True)
    return Counter((numbers[event], id, subscriber_of[id]) for event, id in pairs)


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[Row]:
    return [row for each in batches for row in each.to_pylist()]


def by_effect(rows: list[Row]) -> dict[str, Counter[Triple]]:
    found: dict[str, Counter[Triple]] = {each.value: Counter() for each in Effect}
    for row in rows:
        found[row["effect"]][row["n"], row["subscription"], row["subscriber"]] += 1
    return found


@pytest.mark.parametrize("seed", range(3))
def test_effects_are_what_the_oracle_says(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)

    def some_records() -> list[SubscriptionRecord]:
        return [
            record(f"s{n}", f"a < {rng.randint(1, 4)}", rng.choice([None, "ann"]))
            for n in rng.sample(range(24), 16)
        ]

    tables = Tables(tmp_path, some_records(), some_records())
    values = [rng.choice([None, 0, 1, 2, 3]) for _ in range(40)]
    found = by_effect(tables.effects(batch(values[:25]), batch(values[25:], 25)))
    assert found == tables.wanted(batch(values))
    assert all(found.values())


def test_equal_events_are_different_ones(tmp_path: Path) -> None:
    tables = Tables(tmp_path, [record("s", "a < 2")], [record("s", "a < 3")])
    columns: dict[str, Any] = {"n": [7] * 3, "a": [1, 1, 2], "time": pa.array([START] * 3)}
    rows = tables.effects(pa.record_batch(columns))
    assert Counter(row["effect"] for row in rows) == {"staying": 2, "entering": 1}


def test_counts_of_buckets_and_of_subscribers(tmp_path: Path) -> None:
    tables = Tables(
        tmp_path,
        [record("low", "a < 2", "ann"), record("one", "a = 1", "ann"), record("mine", "a > 2")],
        [record("low", "a < 3", "ann"), record("one", "a = 1", "bob")],
    )
    first_us = to_us(START)
    buckets = TimeBuckets.over(first_us, first_us + 5_000_000, timedelta(seconds=2))
    rows = tables.counts(buckets, batch([0, 1]), batch([], 2), batch([None, None, 2, 3], 2))
    of_buckets = {row["bucket"]: row for row in rows if row["bucket"] is not None}
    counts = {place: tuple(row[name] for name in COUNTED) for place, row in of_buckets.items()}
    # live, changed, entering, leaving
    assert counts == {0: (3, 3, 1, 1), 1: (0, 0, 0, 0), 2: (1, 1, 1, 1)}
    assert [row["events"] for row in of_buckets.values()] == [2, 2, 2]
    of_subscribers = [
        (row["subscriber"], row["subscription"], *(row[name] for name in COUNTED))
        for row in rows
        if row["bucket"] is None
    ]
    assert sorted(of_subscribers, key=str) == [
        ("ann", None, 1, 0, 0, 1),
        ("ann", None, 2, 3, 1, 0),  # of each subscription a row, which Spark adds up
        ("bob", None, 0, 1, 1, 0),
        (None, "mine", 1, 0, 0, 1),
    ]
    assert [list(row) for row in rows] == [COUNT_SCHEMA.names] * len(rows)


def test_without_buckets_all_is_in_one(tmp_path: Path) -> None:
    tables = Tables(tmp_path, [], [record("s", "a < 2")])
    rows = tables.counts(None, batch([0, 1, 2]))
    assert [(row["bucket"], row["events"], row["entering"]) for row in rows] == [
        (0, 3, 2), (None, None, 2),
    ]  # fmt: skip


def test_nothing_to_compare(tmp_path: Path) -> None:
    tables = Tables(tmp_path, [], [])
    assert tables.effects(batch([1, 2])) == []
    assert [row["events"] for row in tables.counts(None, batch([1, 2]))] == [2]
    assert tables.counts(None) == []  # a partition without events


@pytest.mark.parametrize("most", [1, 2])
def test_output_chunks_are_bounded(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = Tables(
        tmp_path,
        [record(f"s{n}", "a < 3") for n in range(3)],
        [record(f"s{n}", "a < 2") for n in range(1, 5)],
    )
    events = batch([0, 1, 2, 3])
    monkeypatch.setattr("tidegate.spark.backtesting.table_comparison.OUTPUT_ROWS_MAX", most)
    chunks = list(EffectTask(tables.comparison())(iter([events])))
    assert max(each.num_rows for each in chunks) == most
    assert by_effect(rows_of(chunks)) == tables.wanted(events)
    counted = tables.counts(None, events)
    assert sorted(row["subscription"] for row in counted[1:]) == [f"s{n}" for n in range(5)]
