"""Streams of events and changes: corrections, what is set aside, and tries that fail."""

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
    Row,
    as_of,
    at,
    drawn_changes,
    drawn_events,
    event,
    net,
    subscribe,
    update,
)
from tidegate import EventError
from tidegate.spark import BatchReport, deliver
from tidegate.spark.streaming.stream import LATENESS_MAX

pytestmark = pytest.mark.xdist_group("spark")


def test_a_late_change_takes_back_and_adds(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < :p", p=5)])
    folders.add("events", 0, [event(0, 1, 4), event(1, 10, 4), event(2, 10, 7)])
    folders.add("changes", 1, [update(10, "s", p=1), subscribe(10, "u", "a > 6")])
    _, report = folders.run(spark, to, files=1)
    told = [(row["operation"], row["number"], row["subscription"]) for row in to.batches[1]]
    assert sorted(told) == [("assert", 2, "u"), ("retract", 1, "s")]
    assert (report.corrected, report.events, report.changes) == (2, 0, 2)
    assert {row["version"] for row in to.batches[1]} == {START, START + timedelta(seconds=10)}


def test_what_comes_too_late_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    aside = Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < 5")])
    folders.add("events", 0, [event(0, 100, 4)])
    folders.add("changes", 1, [subscribe(79, "late", "a < 5"), subscribe(80, "last", "a < 5")])
    folders.add("events", 1, [event(1, 79.999999, 4), event(2, 80, 4), {"number": 3, "a": 4.0}])
    _, report = folders.run(spark, to, files=1, aside=aside)
    assert list(aside.batches) == [1]
    assert (report.late, report.bad) == (2, 1)
    told = [(row["kind"], row["reason"]) for row in aside.rows]
    assert sorted(told) == [
        ("change", "came too late"), ("event", "came too late"), ("event", "has no time"),
    ]  # fmt: skip
    records = [json.loads(str(row["record"])) for row in aside.rows]
    assert {record.get("id", record.get("number")) for record in records} == {"late", 1, 3}
    found = sorted((row["number"], row["subscription"]) for row in to.batches[1])
    assert found == [(0, "last"), (2, "last"), (2, "s")]


def test_changes_that_cannot_be_made_are_set_aside_when_that_is_final(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders, to, aside = Folders(tmp_path), Collected(), Collected()
    folders.add("changes", 0, [update(1, "s", p=1), {"time": at(1), "op": "begin", "id": "s"}])
    for number, second in enumerate([1, 30, 31]):
        folders.add("events", number, [event(number, second, 4)])
    assert len(folders.run(spark, to, files=1, aside=aside)) == 3
    reasons = {batch: [row["reason"] for row in rows] for batch, rows in aside.batches.items()}
    assert list(reasons) == [0, 2]
    assert reasons[0] == ["op: there is no 'begin'; there are subscribe, update, unsubscribe"]
    assert "there is no subscription 's'" in str(reasons[2])


def test_a_batch_that_failed_is_tried_again_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
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


def test_a_snapshot_takes_the_place_of_deltas(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.streaming.state.DELTA_MIN", 3)
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


class Deaf:
    """A sink that takes nothing of some batches, and of others a part, or all of it twice."""

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
    """It is waited for no action, and what is bad is set aside whatever the sink does."""
    folders, to, aside = Folders(tmp_path), Deaf(), Collected()
    log = [subscribe(0, "s", "a < 5"), subscribe(0, "u", "a < 9")]
    folders.add("changes", 0, log)
    steady = pa.table({name: [row[name] for row in log] for name in ("id", "filter")})
    for batch in range(3):
        some = [event(n, batch * 10 + n, n) for n in range(8)]
        folders.add("events", batch, [*some, {"number": 99, "a": 1.0}])
    reports = folders.run(spark, to, None if changing else steady, files=1, aside=aside)
    assert [(each.events, each.matches, each.bad) for each in reports] == [
        (9, 0, 1), (9, 13, 1), (9, 13, 1),
    ]  # fmt: skip
    assert to.rows == [26, 13]
    assert [row["reason"] for row in aside.rows] == ["has no time"] * 3
    assert not list((tmp_path / "checkpoint").glob("spool/*"))


@pytest.mark.parametrize(
    ("column", "options", "reason"),
    [
        ("cast(time as string)", {}, "'time' holds the time .* must be of timestamps, not string"),
        ("a", {}, "no column 'time' with their time; they have a"),
        ("time", {"event_time": None}, "a stream of changes needs `event_time`"),
        ("time", {"lateness": timedelta(microseconds=-1)}, "the lateness is -1 day.*must be from"),
        ("time", {"lateness": LATENESS_MAX + timedelta(days=1)}, "the lateness is 36501 days"),
    ],
)
def test_what_cannot_be_the_time_of_a_stream_is_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path, column: str, options: Row, reason: str
) -> None:
    folders = Folders(tmp_path)
    events = spark.readStream.schema(EVENT_SCHEMA).json(str(folders.root / "events"))
    alias = column if column == "a" else f"{column} as time"
    changes = spark.readStream.text(str(folders.root / "changes"))
    given = {"event_time": "time", "checkpoint": tmp_path / "checkpoint", **options}
    with pytest.raises(EventError, match=reason):
        deliver(events.selectExpr(alias), changes, Collected(), **given)  # type: ignore[arg-type]
    assert not (tmp_path / "checkpoint").exists()


def test_a_table_of_events_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": ["s"], "filter": ["id < 5"]})
    with pytest.raises(EventError, match=r"takes a stream of events; tidegate\.spark\.match"):
        deliver(spark.range(1), table, Collected(), checkpoint=tmp_path)


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
    aside = Collected()
    query = deliver(
        events, table, to, event_time="time", checkpoint=tmp_path / "checkpoint", key="number",
        trigger={"availableNow": True}, report=reports.append, aside=aside,
    )  # fmt: skip
    query.awaitTermination()
    assert to.rows == [{"number": 0, "subscription": "s", "subscriber": "me", "version": None}]
    assert [row["reason"] for row in aside.rows] == ["has no time"]
    assert (reports[0].events, reports[0].bad, reports[0].subscriptions) == (3, 1, 1)
