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

from tidegate.spark import BatchReport, deliver, match

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

    def run(self, spark: SparkSession, to: Collected, **options: object) -> list[BatchReport]:
        """Deliver all that is there and not yet delivered."""
        events = spark.readStream.schema(EVENT_SCHEMA).json(str(self.root / "events"))
        changes = spark.readStream.schema(CHANGE_SCHEMA).json(str(self.root / "changes"))
        reports: list[BatchReport] = []
        given = {"lateness": timedelta(seconds=20), "key": ["number"], **options}
        query = deliver(
            events, changes, to, event_time="time", checkpoint=self.root / "checkpoint",
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
