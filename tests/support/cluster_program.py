"""Programs for `spark-submit`: they match on a cluster while processes of it are killed.

Run as ``cluster_program.py tables <folder>`` or ``cluster_program.py stream <folder> <place>
[<batch>:<victim> ...]``; the checkpoint and the deliveries are at the place. A victim is an
`executor`, a `worker` or the `driver`, and a task kills it with SIGKILL in the middle of its work.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from support.spark_streams import (
    Folders,
    Row,
    as_of,
    change_log,
    drawn_changes,
    drawn_events,
    event_table,
    net,
    splits,
)
from tidegate.spark import match
from tidegate.spark.session import local_session
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.streaming import stream_state

BATCHES = 7


def drawn(seed: int) -> tuple[list[Row], list[Row]]:
    """The events and changes that a program matches."""
    rng = random.Random(seed)
    return drawn_events(rng, 200), drawn_changes(rng, 100)


def ancestors() -> Iterator[tuple[int, str]]:
    """The processes above this one, the nearest first: the id and the command line of each."""
    process = os.getpid()
    while process > 1:
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.split("PPid:")[1].split()[0])
        command = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
        yield process, command.replace("\0", " ")


@dataclass(frozen=True, slots=True)
class Killer:
    """A task that passes rows on; the first one that comes to a row kills the victim, once."""

    victim: str
    marker: str
    driver: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                self._kill()
            yield batch

    def _kill(self) -> None:
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        if self.victim == "driver":
            os.killpg(os.getpgid(self.driver), signal.SIGKILL)
            return
        kind = {"executor": "CoarseGrainedExecutorBackend", "worker": "deploy.worker.Worker"}
        pids = [pid for pid, command in ancestors() if kind[self.victim] in command]
        os.kill(pids[0], signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class KillingTask:
    """Runs a task on events that pass by a killer."""

    task: object
    killer: Killer

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.killer(self.task(batches))  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class KillingSink:
    """Parquet files, during whose writing processes die."""

    sink: ParquetSink
    killers: dict[int, Killer]

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        self.sink.write(deliveries, batch_id)

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int | None:
        killer = self.killers.get(batch_id)
        if killer is not None:
            pending = [replace(each, task=KillingTask(each.task, killer)) for each in pending]
        return self.sink.write_in_workers(pending, batch_id)


def killer(folder: Path, name: str, victim: str) -> Killer:
    return Killer(victim, str(folder / f"killed-{name}"), os.getpid())


def run_tables(spark: SparkSession, folder: Path) -> None:
    """Match tables, whole and partitioned, before and after an executor is replaced."""
    events, changes = drawn(1)
    found = [as_of(spark, events, changes), as_of(spark, events, changes, partition_by="b")]
    table = event_table(spark, events).repartition(4)
    kill = killer(folder, "tables", "executor")
    matched = match(
        table.mapInArrow(kill, table.schema), change_log(changes), "time",
        key="number", skip_bad=True,
    )  # fmt: skip
    rows = matched.toArrow().to_pylist()
    found.append(net([{**row, "operation": "assert"} for row in rows]))
    found.append(as_of(spark, events, changes))
    document = {
        "found": [_as_json(each) for each in found],
        "others": spark.range(100).repartition(4).count(),
        "settings": dict(spark.sparkContext.getConf().getAll()),
        "files": list(spark.sparkContext.listFiles),
    }
    (folder / "tables.json").write_text(json.dumps(document))


def _as_json(found: Counter[tuple[object, ...]]) -> list[list[object]]:
    return sorted([number, id, str(version)] for number, id, version in found.elements())


def run_stream(spark: SparkSession, folder: Path, place: str, points: Sequence[str]) -> None:
    """Match the files of a stream that were not matched yet, with snapshots of the few changes."""
    stream_state.DELTA_MIN = 10
    killers = {
        int(batch): killer(folder, batch, victim)
        for batch, victim in (point.split(":") for point in points)
    }
    to = KillingSink(ParquetSink(f"{place}/out"), killers)
    lateness, checkpoint = timedelta(hours=1), f"{place}/checkpoint"
    reports = Folders(folder).run(spark, to, files=1, lateness=lateness, checkpoint=checkpoint)
    document = {
        "corrected": sum(each.corrected for each in reports),
        "late": sum(each.late for each in reports),
        "others": spark.range(100).repartition(4).count(),
        "files": list(spark.sparkContext.listFiles),
    }
    (folder / "stream.json").write_text(json.dumps(document))


def write_stream(folder: Path) -> tuple[list[Row], list[Row]]:
    """Write the files that `run_stream` reads; changes come late, each a part behind its events."""
    events, changes = drawn(2)
    folders, rng = Folders(folder), random.Random(3)
    for number, some in enumerate(splits(rng, events, BATCHES)):
        folders.add("events", number, some)
    for number, some in enumerate([[], *splits(rng, changes, BATCHES - 1)]):
        folders.add("changes", number, some)
    return events, changes


def main(kind: str, folder: Path, more: Sequence[str]) -> None:
    spark = local_session("tidegate-cluster-test")
    if kind == "tables":
        run_tables(spark, folder)
    else:
        run_stream(spark, folder, more[0], more[1:])
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
