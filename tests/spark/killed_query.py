"""Streams that kill themselves, to be run as a program by `test_kills.py`.

The first finds patterns in files of events. The second matches them with files of changes, one of
each a micro-batch, and delivers to three sinks, one after the other. SIGKILL goes to the whole
process group, Java included, so nothing can be tidied up:

- within a sink: one task of its job has passed its rows on, the other is at its first one;
- ``reported``: the stream has noted that the batch is done, but Spark has not yet;
- ``patterns``: one task has taken its events and given its matches, the other has not;
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

from spark.sessions import start_session
from tidegate.spark import BatchReport, deliver, match_patterns
from tidegate.spark.connectors import kafka_jars
from tidegate.spark.delta import DeltaSink
from tidegate.spark.event_schemas import BAD, RECORD, SOURCE
from tidegate.spark.parquet_writing import Found
from tidegate.spark.sinks import KafkaSink, ParquetSink, Sink, WorkerSink
from tidegate.spark.sources import file_events
from tidegate.spark.worker import Task


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and in which batch and where in it to die.

    ``point`` is the name of a sink or another of those above, or empty for a run that is not
    killed. Sinks of files write to a folder of their name in ``folder``, which has `events` and
    `changes`; what matches patterns is in `patterns`.
    """

    folder: str
    servers: str  # of Kafka
    point: str
    batch: int

    def to_argument(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Killer:
    """Lets the rows of partition 0 pass; partition 1 waits for their end, then kills everything."""

    group: int
    marker: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 0:
            yield from batches
            Path(self.marker).touch()
            return
        while not Path(self.marker).exists():
            time.sleep(0.01)
        os.killpg(self.group, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Chained:
    """One task after another."""

    first: Task
    second: Task

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.second(self.first(batches))


@dataclass(frozen=True, slots=True)
class KilledSinks:
    """Several sinks as one, which dies where the plan says."""

    plan: Plan
    sinks: dict[str, Sink]

    def write_in_workers(self, found: Sequence[Found], batch_id: int) -> int | None:
        point = self.plan.point if batch_id == self.plan.batch else ""
        killer = Killer(os.getpgrp(), f"{self.plan.folder}/passed-{point}")
        for name, sink in self.sinks.items():
            if isinstance(sink, WorkerSink):
                deadly = [replace(each, task=Chained(each.task, killer)) for each in found]
                sink.write_in_workers(deadly if name == point else found, batch_id)
                continue
            rows = reduce(DataFrame.unionByName, (each.deliveries() for each in found))
            rows = rows.repartition(2, "id")
            sink.write(rows.mapInArrow(killer, rows.schema) if name == point else rows, batch_id)
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
"""So many that both tasks have some."""


def events_of(spark: SparkSession, plan: Plan) -> DataFrame:
    schema = "id bigint, a double, time timestamp"
    return file_events(
        spark, f"{plan.folder}/events", "json", schema, options=ONE_AT_A_TIME, drift="error"
    ).drop(BAD, RECORD, SOURCE)


def run_patterns(spark: SparkSession, plan: Plan) -> None:
    """Find the patterns in all that is there."""
    sink = ParquetSink(f"{plan.folder}/patterns")

    def write(matches: DataFrame, batch_id: int) -> None:
        point = plan.point if batch_id == plan.batch else ""
        killer = Killer(os.getpgrp(), f"{plan.folder}/passed-{point}")
        deadly = point == "patterns"
        sink.write(matches.mapInArrow(killer, matches.schema) if deadly else matches, batch_id)
        if point == "patterns written":
            os.killpg(os.getpgrp(), signal.SIGKILL)

    table = pa.table({"id": list(PATTERNS), "pattern": list(PATTERNS.values())})
    found = match_patterns(events_of(spark, plan), table, "time", lateness="0 s", key="id")
    writer = found.writeStream.foreachBatch(write).trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{plan.folder}/patterns-checkpoint")
    writer.start().awaitTermination()


def run(spark: SparkSession, plan: Plan, to: Sink, checkpoint: str) -> None:
    """Run the stream over all that is there."""
    folder = Path(plan.folder)
    events = events_of(spark, plan)
    changes = spark.readStream.options(**ONE_AT_A_TIME).text(f"{folder}/changes")

    def report(told: BatchReport) -> None:
        if plan.point == "reported" and told.batch == plan.batch:
            os.killpg(os.getpgrp(), signal.SIGKILL)

    query = deliver(
        events, changes, to, event_time="time", checkpoint=folder / checkpoint, key="id",
        lateness=timedelta(minutes=10), trigger={"availableNow": True}, report=report,
    )  # fmt: skip
    query.awaitTermination()


def main(plan: Plan) -> None:
    jars = [] if plan.point.startswith("patterns") else kafka_jars()
    spark = start_session(Path(plan.folder) / "spark", jars)
    # so few rows that a batch has several pieces, and both tasks something to do
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "5")
    done = Path(plan.folder) / "patterns-done"
    if not done.exists():
        run_patterns(spark, plan)
        done.touch()
    run(spark, plan, KilledSinks(plan, sinks_of(plan)), "checkpoint")
    spark.stop()


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
