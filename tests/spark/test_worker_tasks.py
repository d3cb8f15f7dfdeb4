"""The output of workers: bounded chunks of rows, single or grouped, and corrections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.worker_tasks import CorrectionTask, DeliveryLayout, MatchTask

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Held:
    """The handle of an index in this process."""

    matcher: AsOfMatcher

    def open(self) -> AsOfMatcher:
        return self.matcher


def held(*filters: str, since: datetime | None = None) -> Held:
    records = [SubscriptionRecord(text, text, since=since, origin=since) for text in filters]
    return Held(AsOfMatcher(records))


def batch(values: Sequence[float | None]) -> pa.RecordBatch:
    times = [START + timedelta(seconds=number) for number in range(len(values))]
    columns: dict[str, Any] = {
        "n": pa.array(range(len(values))),
        "a": pa.array(values, pa.float64()),
        "time": pa.array(times, pa.timestamp("us", "UTC")),
    }
    return pa.record_batch(columns)


def rows_of(batches: Sequence[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for each in batches for row in each.to_pylist()]


@pytest.mark.parametrize("most", [1, 2, 3, 1000])
def test_chunks_together_are_the_whole(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.spark.delivery_rows.OUTPUT_ROWS_MAX", most)
    index, events = held("a > 0", "a > 1", "a > 2"), batch([3, None, 0, 2, 1, 3])
    single = list(MatchTask(index, DeliveryLayout("time", ("n",), False))(iter([events])))
    assert all(each.num_rows <= most for each in single)
    pairs = sorted((row["n"], row["subscription"]) for row in rows_of(single))
    wanted = [
        (n, f"a > {low}") for n, a in enumerate([3, -1, 0, 2, 1, 3]) for low in range(3) if a > low
    ]
    assert pairs == wanted
    grouped = list(MatchTask(index, DeliveryLayout("time", ("n",), True))(iter([events])))
    found = [
        (row["n"], each["subscription"])
        for row in rows_of(grouped)
        for each in row["deliveries"]  # type: ignore[attr-defined]
    ]
    assert sorted(found) == wanted


def test_columns_may_hold_attributes_of_other_names() -> None:
    layout = DeliveryLayout("time", ("n",), False, attributes={"a": "price"})
    found = list(MatchTask(held("price > 1", "a > 1", "n > 1"), layout)(iter([batch([2])])))
    assert [row["subscription"] for row in rows_of(found)] == ["price > 1"]


def test_corrections_are_what_differs() -> None:
    before = held("a > 1", "a > 2", since=START)
    after = held("a > 1", "a < 2", since=START)
    task = CorrectionTask(before, after, DeliveryLayout("time", ("n",), False))
    found = rows_of(list(task(iter([batch([3, 1.5])]))))
    told = [(row["operation"], row["n"], row["subscription"]) for row in found]
    assert told == [("retract", 0, "a > 2"), ("assert", 1, "a < 2")]
    assert all(row["version"] == START for row in found)


def test_another_version_is_another_delivery() -> None:
    before = held("a > 1", since=START)
    after = held("a > 1", since=START + timedelta(seconds=1))
    task = CorrectionTask(before, after, DeliveryLayout("time", ("n",), False))
    found = rows_of(list(task(iter([batch([0, 3])]))))
    assert [(row["operation"], row["n"]) for row in found] == [("retract", 1), ("assert", 1)]
