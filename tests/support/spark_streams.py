"""Streams for tests: random events and changes, files to read them from, sinks in memory."""

from __future__ import annotations

import json
import os
import random
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import MisfitWarning
from tidegate.spark import BatchReport, deliver, match
from tidegate.spark.sinks.sink import Sink

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
    """The deliveries that remain after all retractions."""
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
    """The folders that a stream reads from, and its checkpoint."""

    root: Path

    def __post_init__(self) -> None:
        for name in ("events", "changes"):
            (self.root / name).mkdir(exist_ok=True)

    def add(self, kind: str, number: int, rows: list[Row]) -> None:
        path = self.root / kind / f"{number}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (number + 1, number + 1))  # Spark reads the oldest file first

    def run(
        self,
        spark: SparkSession,
        to: Sink,
        table: pa.Table | None = None,
        *,
        files: int = 1_000,
        checkpoint: str | None = None,
        **options: object,
    ) -> list[BatchReport]:
        """Match all files that were not read yet with the changes, or with a table.

        The checkpoint is in the same folder, or at the location given. A micro-batch reads at most
        ``files`` files of events and of changes.
        """
        reader = spark.readStream.option("maxFilesPerTrigger", files)
        events = reader.schema(EVENT_SCHEMA).json(str(self.root / "events"))
        changes = reader.schema(CHANGE_SCHEMA).json(str(self.root / "changes"))
        reports: list[BatchReport] = []
        defaults = {"lateness": timedelta(seconds=20), "key": ["number"], "report": reports.append}
        all_options = {**defaults, **options}
        query = deliver(
            events, changes if table is None else table, to, event_time="time",
            checkpoint=checkpoint or self.root / "checkpoint",
            trigger={"availableNow": True}, **all_options,  # type: ignore[arg-type]
        )  # fmt: skip
        query.awaitTermination()
        return reports


def event_table(spark: SparkSession, events: list[Row]) -> DataFrame:
    """Events as a table of Spark."""
    timed = [{**row, "time": datetime.fromisoformat(str(row["time"]))} for row in events]
    return spark.createDataFrame(timed, EVENT_SCHEMA)  # type: ignore[type-var]


def change_log(changes: list[Row]) -> pa.Table:
    """Changes as a table."""
    names = ("time", "op", "id", "filter", "params")
    return pa.table(
        {name: pa.array([row.get(name) for row in changes], pa.string()) for name in names}
    )


def as_of(
    spark: SparkSession, events: list[Row], changes: list[Row], **options: Any
) -> Counter[tuple[object, ...]]:
    """The answer of `match` for tables of all events and changes."""
    table, log = event_table(spark, events), change_log(changes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisfitWarning)  # drawn filters compare numbers with strings
        matches = match(table, log, "time", key="number", skip_bad=True, **options)
    found = matches.toArrow().to_pylist()
    return net([{**row, "operation": "assert"} for row in found])


def subscribe(seconds: float, id: str, filter: str, **params: object) -> Row:
    row: Row = {"time": at(seconds), "op": "subscribe", "id": id, "filter": filter}
    return {**row, "params": json.dumps(params)} if params else row


def update(seconds: float, id: str, **params: object) -> Row:
    return {"time": at(seconds), "op": "update", "id": id, "params": json.dumps(params)}


def unsubscribe(seconds: float, id: str) -> Row:
    return {"time": at(seconds), "op": "unsubscribe", "id": id}


def event(number: int, seconds: float, a: float | None) -> Row:
    return {"number": number, "time": at(seconds), "a": None if a is None else float(a)}
