"""Streams of events and changes: the same answers as a table of both, however they are split."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate import EventError
from tidegate.spark import BatchReport, deliver, match
from tidegate.spark.sinks import Sink
from tidegate.spark.stream import LATENESS_MAX

pytestmark = pytest.mark.xdist_group("spark")

START = datetime(2026, 1, 1, tzinfo=UTC)
EVENT_SCHEMA = "number long, time timestamp, a double, b string"
CHANGE_SCHEMA = "time timestamp, op string, id string, filter string, params string"
FILTERS = [
    "a < :p", "a between :p and :p + 3", "a > :p + t", "b = 'x' and a < :q",
    "b in ('x', 'y') or a = :p", "a <= 2 + t / 5", "b like '%x' and a > 1",
]  # fmt: skip

Row = dict[str, object]


def at(seconds: float) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


@dataclass
class Collected:
    """A sink that keeps batches in memory, each once."""

    batches: dict[int, list[Row]] = field(default_factory=dict)

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        self.batches[batch_id] = deliveries.toArrow().to_pylist()

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches.values() for row in batch]


def net(rows: Sequence[Row]) -> Counter[tuple[object, ...]]:
    """What is left of deliveries when all that was taken back is gone."""
    found: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        key = row["number"], row["subscription"], row["version"]
        found[key] += -1 if row["operation"] == "retract" else 1
    assert all(count >= 0 for count in found.values())
    return +found


def drawn_events(rng: random.Random, count: int) -> list[Row]:
    return [
        {
            "number": number,
            "time": at(number * 60 / count + rng.uniform(-8, 0)),
            "a": rng.choice([None, float(rng.randint(0, 9)), rng.uniform(0, 9)]),
            "b": rng.choice([None, "x", "y", "xx"]),
        }
        for number in range(count)
    ]


def drawn_changes(rng: random.Random, count: int) -> list[Row]:
    found: list[Row] = []
    for number in range(count):
        time = at(number * 60 / count + rng.choice([0, rng.uniform(-8, 2)]))
        id, kind = f"s{rng.randint(0, 9)}", rng.random()
        if kind < 0.8:
            filter = rng.choice(FILTERS) if kind < 0.5 else None
            names = [name for name in "pq" if filter is None or f":{name}" in filter]
            params = {name: rng.choice([rng.randint(0, 9), 2.5, "x"]) for name in names[:1]}
            op = "subscribe" if kind < 0.4 else "update"
            found.append({"time": time, "op": op, "id": id, "params": json.dumps(params)})
            if filter is not None:
                found[-1]["filter"] = filter
        else:
            found.append({"time": time, "op": "unsubscribe", "id": id})
    return found


def splits(rng: random.Random, rows: list[Row], parts: int) -> Iterator[list[Row]]:
    borders = sorted(rng.randint(0, len(rows)) for _ in range(parts - 1))
    for begin, end in zip([0, *borders], [*borders, len(rows)], strict=True):
        yield rows[begin:end]


@dataclass
class Folders:
    """Where a stream reads from, and its checkpoint."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("events", "changes"):
            (self.root / name).mkdir()

    def add(self, kind: str, number: int, rows: list[Row]) -> None:
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        if rows:
            (self.root / kind / f"{number}.json").write_text(lines)

    def run(
        self, spark: SparkSession, to: Sink, table: pa.Table | None = None, **options: object
    ) -> list[BatchReport]:
        """Deliver all that is there and not yet delivered, to the changes or to a table."""
        events = spark.readStream.schema(EVENT_SCHEMA).json(str(self.root / "events"))
        changes = spark.readStream.schema(CHANGE_SCHEMA).json(str(self.root / "changes"))
        reports: list[BatchReport] = []
        given = {"lateness": timedelta(seconds=20), "key": ["number"], **options}
        query = deliver(
            events, changes if table is None else table, to, event_time="time",
            checkpoint=self.root / "checkpoint",
            trigger={"availableNow": True}, report=reports.append, **given,  # type: ignore[arg-type]
        )  # fmt: skip
        query.awaitTermination()
        return reports


def as_of(
    spark: SparkSession, events: list[Row], changes: list[Row]
) -> Counter[tuple[object, ...]]:
    """The answer that a table of all events and changes gives."""
    timed = [{**row, "time": datetime.fromisoformat(str(row["time"]))} for row in events]
    table = spark.createDataFrame(timed, EVENT_SCHEMA)  # type: ignore[type-var]
    names = ("time", "op", "id", "filter", "params")
    log = pa.table(
        {name: pa.array([row.get(name) for row in changes], pa.string()) for name in names}
    )
    found = match(table, log, "time", key="number", skip_bad=True).toArrow().to_pylist()
    return net([{**row, "operation": "assert"} for row in found])


@pytest.mark.parametrize("seed", range(4))
def test_any_split_gives_what_a_table_gives(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    events, changes = drawn_events(rng, 300), drawn_changes(rng, 120)
    folders, to = Folders(tmp_path), Collected()
    reports: list[BatchReport] = []
    parts = 1 + seed * 2
    pairs = zip(splits(rng, events, parts), splits(rng, changes, parts), strict=True)
    for number, (some_events, some_changes) in enumerate(pairs):
        folders.add("events", number, some_events)
        folders.add("changes", number, some_changes)
        reports += folders.run(spark, to, lateness=timedelta(hours=1))
    assert net(to.rows) == as_of(spark, events, changes)
    assert sum(each.events for each in reports) == 300
    assert not any(each.late for each in reports)


def subscribe(seconds: float, id: str, filter: str, **params: object) -> Row:
    row: Row = {"time": at(seconds), "op": "subscribe", "id": id, "filter": filter}
    return {**row, "params": json.dumps(params)} if params else row


def update(seconds: float, id: str, **params: object) -> Row:
    return {"time": at(seconds), "op": "update", "id": id, "params": json.dumps(params)}


def event(number: int, seconds: float, a: float | None) -> Row:
    return {"number": number, "time": at(seconds), "a": None if a is None else float(a)}


def test_a_late_change_takes_back_and_adds(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < :p", p=5)])
    folders.add("events", 0, [event(0, 1, 4), event(1, 10, 4), event(2, 10, 7)])
    folders.run(spark, to)
    folders.add("changes", 1, [update(10, "s", p=1), subscribe(10, "u", "a > 6")])
    [report] = folders.run(spark, to)
    told = [(row["operation"], row["number"], row["subscription"]) for row in to.batches[1]]
    assert sorted(told) == [("assert", 2, "u"), ("retract", 1, "s")]
    assert (report.corrected, report.events, report.changes) == (2, 0, 2)
    assert {row["version"] for row in to.batches[1]} == {START, START + timedelta(seconds=10)}


def test_what_comes_too_late_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    aside = Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < 5")])
    folders.add("events", 0, [event(0, 100, 4)])
    folders.run(spark, to, aside=aside)
    assert aside.rows == []
    folders.add("changes", 1, [subscribe(79, "late", "a < 5"), subscribe(80, "last", "a < 5")])
    folders.add("events", 1, [event(1, 79.999999, 4), event(2, 80, 4), {"number": 3, "a": 4.0}])
    [report] = folders.run(spark, to, aside=aside)
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
    folders.add("events", 0, [event(0, 1, 4)])
    folders.run(spark, to, aside=aside)
    assert [row["reason"] for row in aside.rows] == [
        "op: there is no 'begin'; there are subscribe, update, unsubscribe"
    ]
    folders.add("events", 1, [event(1, 30, 4)])
    folders.run(spark, to, aside=aside)
    assert len(aside.rows) == 1
    folders.add("events", 2, [event(2, 31, 4)])
    folders.run(spark, to, aside=aside)
    assert "there is no subscription 's'" in str(aside.rows[-1]["reason"])


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
    monkeypatch.setattr("tidegate.spark.state.DELTA_MIN", 3)
    rng = random.Random(9)
    events, changes = drawn_events(rng, 60), drawn_changes(rng, 60)
    folders, to = Folders(tmp_path), Collected()
    for number in range(4):
        folders.add("events", number, events[number * 15 : number * 15 + 15])
        folders.add("changes", number, changes[number * 15 : number * 15 + 15])
        folders.run(spark, to, lateness=timedelta(hours=1))
    snapshots = list((tmp_path / "checkpoint/tidegate/snapshot").iterdir())
    assert len(snapshots) in (1, 2)
    assert net(to.rows) == as_of(spark, events, changes)


class Deaf:
    """A sink that takes nothing of some batches, and of others a part, or all of it twice."""

    def __init__(self) -> None:
        self.rows = 0

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        if batch_id == 1:
            self.rows = deliveries.count() + deliveries.count()
        elif batch_id == 2:
            self.rows = len(deliveries.coalesce(1).collect())


@pytest.mark.parametrize("changing", [True, False])
def test_a_sink_may_do_with_a_batch_what_it_likes(
    spark: SparkSession, tmp_path: Path, changing: bool
) -> None:
    """It is waited for no action, and what is bad is set aside whatever the sink does."""
    folders, to, aside = Folders(tmp_path), Deaf(), Collected()
    log = [subscribe(0, "s", "a < 5"), subscribe(0, "u", "a < 9")]
    folders.add("changes", 0, log)
    steady = pa.table({name: [row[name] for row in log] for name in ("id", "filter")})
    told: list[tuple[int, int, int]] = []
    for batch in range(3):
        some = [event(n, batch * 10 + n, n) for n in range(8)]
        folders.add("events", batch, [*some, {"number": 99, "a": 1.0}])
        options = {} if changing else {"table": steady}
        [report] = folders.run(spark, to, aside=aside, **options)
        told.append((report.events, report.matches, to.rows))
        assert report.bad == 1
    assert told == [(9, 0, 0), (9, 13, 26), (9, 13, 13)]
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
