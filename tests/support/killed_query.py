"""Streams that kill themselves, run as a program by `test_kills.py`.

One finds patterns in files of events. The other matches the events with files of changes, one file
of each in a micro-batch, and delivers to three sinks, one after the other. Each may have a point at
which to die; when all such points are reached, SIGKILL goes to the whole process group, including
Java, so no process can clean up. The points:

- the name of a sink: one task of its job has finished, the other is at its first row;
- ``reported``: the stream has noted that the batch is done, but Spark has not;
- ``patterns``: one task has processed its events, the other has not;
- ``patterns written``: all matches are written, but Spark has not noted it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import reduce
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from support.spark_sessions import start_session
from tidegate.spark import BatchReport, deliver, match_patterns
from tidegate.spark.connectors import kafka_jars
from tidegate.spark.sinks.delta import DeltaSink
from tidegate.spark.sinks.kafka import KafkaSink
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.sink import PendingDeliveries, Sink, WorkerSink
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE
from tidegate.spark.sources.event_streams import file_events
from tidegate.spark.worker_tasks import Task


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and the points at which to die, each with its batch; possibly none.

    ``folder`` has the files in `events` and `changes`. File sinks write to a subfolder of their
    name, matches of patterns go to `patterns`. ``servers`` are those of Kafka.
    """

    folder: str
    servers: str
    points: dict[str, int]

    def to_argument(self) -> str:
        return json.dumps(asdict(self))

    def is_deadly(self, point: str, batch: int) -> bool:
        return self.points.get(point) == batch

    @property
    def has_patterns(self) -> bool:
        return any(point.startswith("patterns") for point in self.points)

    def killer(self, point: str) -> Killer:
        return Killer(os.getpgrp(), self.folder, point, tuple(self.points))


@dataclass(frozen=True, slots=True)
class Killer:
    """A task that passes the rows of partition 0 on; partition 1 waits for that, then kills."""

    group: int
    folder: str
    point: str
    points: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            yield from batches
            self._marker("passed", self.point).touch()
            return
        _wait_for([self._marker("passed", self.point)])
        self.kill()

    def kill(self) -> None:
        """Kill the process group, once the other points are reached too."""
        self._marker("reached", self.point).touch()
        _wait_for([self._marker("reached", point) for point in self.points])
        os.killpg(self.group, signal.SIGKILL)

    def _marker(self, state: str, point: str) -> Path:
        return Path(self.folder) / f"{state}-{point}"


def _wait_for(files: Sequence[Path]) -> None:
    while not all(file.exists() for file in files):
        time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class Chained:
    """Runs one task on the output of another."""

    first: Task
    second: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.second(self.first(batches))


@dataclass(frozen=True, slots=True)
class KilledSinks:
    """Several sinks as one, which dies at the points of the plan."""

    plan: Plan
    sinks: dict[str, Sink]

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        for name, sink in self.sinks.items():
            is_deadly, killer = self.plan.is_deadly(name, batch_id), self.plan.killer(name)
            if isinstance(sink, WorkerSink):
                deadly = [replace(each, task=Chained(each.task, killer)) for each in pending]
                sink.write_in_workers(deadly if is_deadly else pending, batch_id)
                continue
            rows = reduce(DataFrame.unionByName, (each.deliveries() for each in pending))
            rows = rows.repartition(2, "id")
            sink.write(rows.mapInArrow(killer, rows.schema) if is_deadly else rows, batch_id)
        return 0

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        raise NotImplementedError


def sinks_of(plan: Plan) -> dict[str, Sink]:
    return {
        "parquet": ParquetSink(f"{plan.folder}/parquet"),
        "delta": DeltaSink(f"{plan.folder}/delta"),
        "kafka": KafkaSink(plan.servers, Path(plan.folder).name, key=["id"]),
    }


ONE_AT_A_TIME = {"maxFilesPerTrigger": "1"}
PATTERNS = {
    f"p{first}{last}": f"a = {first} then a = {last} within 15 s"
    for first, last in ((3, 7), (7, 3), (9, 0), (5, 1), (0, 9), (2, 2))
}
"""Enough patterns for both tasks to have some."""


def events_of(spark: SparkSession, plan: Plan) -> DataFrame:
    schema = "id bigint, a double, time timestamp"
    return file_events(
        spark, f"{plan.folder}/events", "json", schema, options=ONE_AT_A_TIME, drift="error"
    ).drop(BAD, RECORD, SOURCE)


def start_patterns(spark: SparkSession, plan: Plan) -> StreamingQuery:
    """Find the patterns in all files."""
    sink = ParquetSink(f"{plan.folder}/patterns")

    def write(matches: DataFrame, batch_id: int) -> None:
        if plan.is_deadly("patterns", batch_id):
            matches = matches.mapInArrow(plan.killer("patterns"), matches.schema)
        sink.write(matches, batch_id)
        if plan.is_deadly("patterns written", batch_id):
            plan.killer("patterns written").kill()

    table = pa.table({"id": list(PATTERNS), "pattern": list(PATTERNS.values())})
    matches = match_patterns(events_of(spark, plan), table, "time", lateness="0 s", key="id")
    writer = matches.writeStream.foreachBatch(write).trigger(availableNow=True)
    return writer.option("checkpointLocation", f"{plan.folder}/patterns-checkpoint").start()


def start(spark: SparkSession, plan: Plan, to: Sink, checkpoint: str) -> StreamingQuery:
    """Match and deliver all files."""
    folder = Path(plan.folder)
    events = events_of(spark, plan)
    changes = spark.readStream.options(**ONE_AT_A_TIME).text(f"{folder}/changes")

    def kill_after(report: BatchReport) -> None:
        if plan.is_deadly("reported", report.batch):
            plan.killer("reported").kill()

    return deliver(
        events, changes, to, event_time="time", checkpoint=folder / checkpoint, key="id",
        lateness=timedelta(minutes=10), trigger={"availableNow": True}, report=kill_after,
    )  # fmt: skip


def run(spark: SparkSession, plan: Plan, *, patterns: bool) -> None:
    """Run the stream that delivers, and on request the one that finds patterns, to their ends."""
    queries = [start(spark, plan, KilledSinks(plan, sinks_of(plan)), "checkpoint")]
    if patterns:
        queries.append(start_patterns(spark, plan))
    for query in queries:
        query.awaitTermination()


def main(plan: Plan) -> None:
    spark = start_session(Path(plan.folder) / "spark", kafka_jars())
    # Few rows per Arrow batch, so that a micro-batch has several chunks and both tasks get some.
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    run(spark, plan, patterns=plan.has_patterns)


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
