"""Micro-batches of events and changes: corrections, rejected rows, and attempts that fail."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from support.spark_streams import (
    EVENT_SCHEMA,
    START,
    Collected,
    Folders,
    as_of,
    at,
    drawn_changes,
    drawn_events,
    event,
    net,
    subscribe,
    unsubscribe,
    update,
)
from tidegate.spark import BatchReport, deliver

pytestmark = pytest.mark.xdist_group("spark")


def test_a_late_change_retracts_and_asserts(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < :p", p=5)])
    folders.add("events", 0, [event(0, 1, 4), event(1, 10, 4), event(2, 10, 7)])
    folders.add("changes", 1, [update(10, "s", p=1), subscribe(10, "u", "a > 6")])
    _, report = folders.run(spark, to, files=1)
    told = [(row["operation"], row["number"], row["subscription"]) for row in to.batches[1]]
    assert sorted(told) == [("assert", 2, "u"), ("retract", 1, "s")]
    assert (report.corrected, report.events, report.changes) == (2, 0, 2)
    assert {row["version"] for row in to.batches[1]} == {START, START + timedelta(seconds=10)}


def test_late_events_are_rejected_and_late_changes_hold_from_the_border_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders, to = Folders(tmp_path), Collected()
    rejected = Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < 5"), subscribe(0, "ended", "a < 5")])
    folders.add("events", 0, [event(0, 100, 4), event(9, 50, 4)])
    # the border is at 80
    late = [subscribe(79, "late", "a < 5"), update(-1, "s", p=3), unsubscribe(60, "ended")]
    folders.add("changes", 1, [*late, subscribe(80, "last", "a < 5")])
    folders.add("events", 1, [event(1, 79.999999, 4), event(2, 80, 4), {"number": 3, "a": 4.0}])
    _, report = folders.run(spark, to, files=1, rejected=rejected)
    assert list(rejected.batches) == [1]
    assert (report.late, report.bad) == (4, 1)
    told = [(row["kind"], row["reason"]) for row in rejected.rows]
    assert sorted(told) == [
        ("change", "came too late: a newer change of the subscription holds"),
        ("event", "came too late"), ("event", "has no time"),
    ]  # fmt: skip
    records = [json.loads(str(row["record"])) for row in rejected.rows]
    assert {record.get("id", record.get("number")) for record in records} == {"s", 1, 3}
    found = sorted((r["operation"], r["number"], r["subscription"]) for r in to.batches[1])
    assert found == [
        ("assert", 0, "last"), ("assert", 0, "late"), ("assert", 2, "last"), ("assert", 2, "late"),
        ("assert", 2, "s"), ("retract", 0, "ended"),
    ]  # fmt: skip
    since = {row["subscription"]: row["version"] for row in to.batches[1]}
    border = START + timedelta(seconds=80)
    assert since == {"last": border, "late": border, "s": START, "ended": START}


def test_changes_that_cannot_be_applied_are_rejected_when_their_time_is_final(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders, to, rejected = Folders(tmp_path), Collected(), Collected()
    folders.add("changes", 0, [update(1, "s", p=1), {"time": at(1), "op": "begin", "id": "s"}])
    for number, second in enumerate([1, 30, 31]):
        folders.add("events", number, [event(number, second, 4)])
    assert len(folders.run(spark, to, files=1, rejected=rejected)) == 3
    reasons = {batch: [row["reason"] for row in rows] for batch, rows in rejected.batches.items()}
    assert list(reasons) == [0, 2]
    assert reasons[0] == ["op: there is no 'begin'; there are subscribe, update, unsubscribe"]
    assert "there is no subscription 's'" in str(reasons[2])


def test_a_batch_that_failed_is_run_again_with_the_same_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Failing(Collected):
        def write(self, deliveries: DataFrame, batch_id: int) -> None:
            super().write(deliveries, batch_id)
            raise RuntimeError("the sink has failed")

    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < :p", p=5)])
    folders.add("events", 0, [event(0, 1, 4)])
    folders.run(spark, to)
    folders.add("changes", 1, [update(1, "s", p=1)])
    folders.add("events", 1, [event(1, 30, 0), event(2, 30, 4)])
    with pytest.raises(Exception, match="the sink has failed"):
        folders.run(spark, Failing())
    folders.add("events", 2, [event(3, 31, 0)])
    folders.run(spark, to)
    assert net(to.rows) == as_of(
        spark,
        [event(0, 1, 4), event(1, 30, 0), event(2, 30, 4), event(3, 31, 0)],
        [subscribe(0, "s", "a < :p", p=5), update(1, "s", p=1)],
    )


def test_a_snapshot_replaces_deltas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.streaming.stream_state.DELTA_MIN", 3)
    rng = random.Random(9)
    events, changes = drawn_events(rng, 60), drawn_changes(rng, 60)
    folders, to = Folders(tmp_path), Collected()
    for number in range(4):
        folders.add("events", number, events[number * 15 : number * 15 + 15])
        folders.add("changes", number, changes[number * 15 : number * 15 + 15])
    folders.run(spark, to, files=1, lateness=timedelta(hours=1))
    snapshots = list((tmp_path / "checkpoint/tidegate/snapshot").iterdir())
    assert len(snapshots) in (1, 2)
    assert net(to.rows) == as_of(spark, events, changes)


class CarelessSink:
    """A sink that ignores one batch, computes one twice, and computes one in a single partition."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            self.rows.append(deliveries.count() + deliveries.count())
        elif batch_id == 2:
            self.rows.append(len(deliveries.coalesce(1).collect()))


@pytest.mark.parametrize("changing", [True, False])
def test_a_sink_may_do_with_a_batch_what_it_likes(
    spark: SparkSession, tmp_path: Path, changing: bool
) -> None:
    """Nothing waits for an action of the sink, and bad rows are rejected whatever it does."""
    folders, to, rejected = Folders(tmp_path), CarelessSink(), Collected()
    log = [subscribe(0, "s", "a < 5"), subscribe(0, "u", "a < 9")]
    folders.add("changes", 0, log)
    steady = pa.table({name: [row[name] for row in log] for name in ("id", "filter")})
    for batch in range(3):
        some = [event(n, batch * 10 + n, n) for n in range(8)]
        folders.add("events", batch, [*some, {"number": 99, "a": 1.0}])
    reports = folders.run(spark, to, None if changing else steady, files=1, rejected=rejected)
    assert [(each.events, each.matches, each.bad) for each in reports] == [
        (9, 0, 1), (9, 13, 1), (9, 13, 1),
    ]  # fmt: skip
    assert to.rows == [26, 13]
    assert [row["reason"] for row in rejected.rows] == ["has no time"] * 3
    assert not list((tmp_path / "checkpoint").glob("spool/*"))


def test_grouped_deliveries(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < 5"), subscribe(0, "u", "a < 6")])
    folders.add("events", 0, [event(0, 1, 4), event(1, 1, 5), event(2, 1, 6)])
    folders.run(spark, to, grouped=True)
    found = {row["number"]: row["deliveries"] for row in to.rows}
    ids = {
        number: [each["subscription"] for each in some]  # type: ignore[attr-defined]
        for number, some in found.items()
    }
    assert ids == {0: ["s", "u"], 1: ["u"]}


def test_a_table_of_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("events", 0, [event(0, 1, 4), event(1, 1, 7), {"number": 2, "a": 4.0}])
    events = spark.readStream.schema(EVENT_SCHEMA).json(str(tmp_path / "events"))
    table = pa.table({"id": ["s"], "filter": ["a < 5"], "subscriber": ["me"]})
    reports: list[BatchReport] = []
    rejected = Collected()
    query = deliver(
        events, table, to, event_time="time", checkpoint=tmp_path / "checkpoint", key="number",
        trigger={"availableNow": True}, report=reports.append, rejected=rejected,
    )  # fmt: skip
    query.awaitTermination()
    assert to.rows == [{"number": 0, "subscription": "s", "subscriber": "me", "version": None}]
    assert [row["reason"] for row in rejected.rows] == ["has no time"]
    assert (reports[0].events, reports[0].bad, reports[0].subscriptions) == (3, 1, 1)
