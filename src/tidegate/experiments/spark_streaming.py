"""Benchmark of a stream of events while subscriptions change all the time.

Each micro-batch has a file of events and a file of updates of parameters, whose number follows from
the span of event time that the events cover. Measured beside it: the same source with an empty
micro-batch, which is the cost of Spark itself, and matching such a batch from memory, without a
stream.
"""

from __future__ import annotations

import json
import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import WORKLOADS
from tidegate.spark import BatchReport, deliver, match
from tidegate.spark.session import local_session
from tidegate.spark.sinks.parquet import ParquetSink

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
WARM_UP = 3
"""Number of micro-batches that are not counted; the first one subscribes all subscriptions."""

_VOLUME = re.compile(r"volume > (\d+)")


@dataclass(frozen=True, slots=True)
class StreamCase:
    """Size and rates of the stream."""

    subscriptions: int = 100_000
    events_per_batch: int = 100_000
    events_per_s: int = 40_000
    """Events per second of event time."""
    changes_per_s: int = 1_000
    """Updates per second of event time."""
    batches: int = 30
    """Number of micro-batches that are counted."""

    @property
    def changes_per_batch(self) -> int:
        return self.events_per_batch * self.changes_per_s // self.events_per_s


@dataclass(frozen=True, slots=True)
class StreamSpeed:
    """Figures of a stream."""

    subscriptions: int
    batches: int
    events_per_batch: int
    changes_per_batch: int
    matches_per_event: float
    events_per_s: float
    """Over all counted batches, from the end of one to the end of the next."""
    batch_s: float
    """The median time from the end of one batch to the end of the next; then the extremes."""
    fastest_s: float
    slowest_s: float
    empty_batch_s: float
    """The same with an empty micro-batch."""
    matching_s: float
    """Seconds to match such a batch from memory, without a stream."""


def measure(case: StreamCase, progress: Progress = silent) -> StreamSpeed:
    """Run the stream and its two comparisons."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as name:
        folder = Path(name)
        progress("writing events and changes")
        write_files(case, folder)
        spark = local_session("tidegate-bench", settings={"spark.driver.memory": "4g"})
        progress("empty micro-batches")
        empty_s = _empty_batches(spark, folder)
        progress("matching a batch from memory")
        matching_s = _matching_s(spark, case, folder)
        progress("the stream")
        reports, ends = _stream(spark, folder)
    # From end to end, so that the time of Spark between two batches is counted. The first batch has
    # no gap before it, so there is one gap less than batches.
    gaps = np.diff(ends)[WARM_UP - 1 :].tolist()
    counted = reports[WARM_UP:]
    events = sum(each.events for each in counted)
    return StreamSpeed(
        case.subscriptions, len(counted), case.events_per_batch, case.changes_per_batch,
        sum(each.matches for each in counted) / events, events / sum(gaps), median(gaps),
        min(gaps), max(gaps), median(empty_s[WARM_UP:]), matching_s,
    )  # fmt: skip


def write_files(case: StreamCase, folder: Path) -> None:
    """Write the files of events and of changes, one of each for a micro-batch."""
    rng = np.random.default_rng(5)  # any fixed seed, so that runs can be compared
    for name in ("events", "changes"):
        (folder / name).mkdir()
    texts = WORKLOADS["market"].subscriptions(case.subscriptions).column("filter").to_pylist()
    subscribed_at = (SINCE - timedelta(hours=1)).isoformat()  # before the first event
    with open(folder / "changes" / "000.json", "w") as out:
        for number, text in enumerate(texts):
            least = int(_VOLUME.search(str(text))[1])  # type: ignore[index]
            row = {
                "time": subscribed_at, "op": "subscribe", "id": f"s{number}",
                "filter": _VOLUME.sub("volume > :least", str(text)), "params": {"least": least},
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")
    for batch in range(case.batches + WARM_UP):
        first = batch * case.events_per_batch
        events = WORKLOADS["market"].events(case.events_per_batch, seed=batch)
        numbers = np.arange(first, first + case.events_per_batch)
        start_us = int(SINCE.timestamp() * 1e6)
        times = pa.array(start_us + numbers * 1_000_000 // case.events_per_s)
        table = events.append_column("time", times.cast(pa.timestamp("us", "UTC")))
        table = table.append_column("number", pa.array(numbers))
        pq.write_table(table, folder / "events" / f"{batch:03}.parquet", row_group_size=20_000)
        if batch:
            _write_updates(case, folder, batch, first, rng)


def _write_updates(
    case: StreamCase, folder: Path, batch: int, first: int, rng: np.random.Generator
) -> None:
    """Write the updates of a micro-batch, evenly spread over the time of its events."""
    count = case.changes_per_batch
    seconds = (first + np.arange(count) * case.events_per_batch / count) / case.events_per_s
    with open(folder / "changes" / f"{batch:03}.json", "w") as out:
        for second in seconds.tolist():
            row = {
                "time": (SINCE + timedelta(seconds=second)).isoformat(), "op": "update",
                "id": f"s{rng.integers(case.subscriptions)}",
                "params": {"least": int(rng.integers(1_000_001))},
            }  # fmt: skip
            out.write(json.dumps(row) + "\n")


def _sources(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    schema = spark.read.parquet(str(folder / "events" / "000.parquet")).schema
    # One file of each source is one micro-batch.
    reader = spark.readStream.option("maxFilesPerTrigger", 1)
    return (
        reader.schema(schema).parquet(str(folder / "events")),
        spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "changes")),
    )


def _empty_batches(spark: SparkSession, folder: Path) -> list[float]:
    """The seconds of each micro-batch of a stream that does nothing with its events."""
    events, _ = _sources(spark, folder)
    ends: list[float] = []

    def record_end(rows: DataFrame, batch: int) -> None:  # noqa: ARG001 - Spark's signature
        ends.append(perf_counter())

    writer = events.writeStream.foreachBatch(record_end).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "empty")).start().awaitTermination()
    return np.diff(ends).tolist()


def _matching_s(spark: SparkSession, case: StreamCase, folder: Path) -> float:
    """The median seconds to match a batch that is in memory."""
    events = spark.read.parquet(str(folder / "events" / "000.parquet")).cache()
    events.count()
    subscriptions = WORKLOADS["market"].subscriptions(case.subscriptions)
    matches = match(events, subscriptions, key="number", grouped=True)
    seconds: list[float] = []
    for _ in range(4):
        start = perf_counter()
        matches.write.format("noop").mode("overwrite").save()
        seconds.append(perf_counter() - start)
    events.unpersist()
    return median(seconds[1:])  # the first pass loads the index


def _stream(spark: SparkSession, folder: Path) -> tuple[list[BatchReport], list[float]]:
    """Run the stream; returns the report and the end time of each micro-batch."""
    events, changes = _sources(spark, folder)
    reports: list[BatchReport] = []
    ends: list[float] = []

    def record(report: BatchReport) -> None:
        reports.append(report)
        ends.append(perf_counter())

    query = deliver(
        events, changes, ParquetSink(str(folder / "deliveries")), event_time="time",
        checkpoint=folder / "checkpoint", key="number", grouped=True, report=record,
        trigger={"availableNow": True}, lateness=timedelta(seconds=5),
    )  # fmt: skip
    query.awaitTermination()
    return reports, ends
