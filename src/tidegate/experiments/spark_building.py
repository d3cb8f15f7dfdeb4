"""Benchmark of large tables on Spark: how long workers take to index them, and who needs memory.

Subscriptions of `market` are written to Parquet in pieces, each drawn with a seed of its own. Then
`match` indexes them in partitions, and matches some events. Meanwhile the memory of all processes
is sampled: the driver's Python, the JVM (which on one machine is driver and executor), and the
Python workers. Shared pages, as those of mapped indexes, count for each process by its share.

Each size is measured in a process of its own. The number of matches is compared with that of the
baseline, which compares the events with each piece by brute force.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq

from tidegate.experiments.numpy_baseline import NumpyBaseline
from tidegate.experiments.process_memory import proportional_bytes
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import WORKLOADS

PIECE = 250_000
"""The number of subscriptions that are drawn at once."""
EVENTS = 20_000
CHECKED_EVENTS = 20
"""Number of events whose matches are compared with those of the baseline."""
SAMPLE_S = 0.5


@dataclass(frozen=True, slots=True)
class BuildSpeed:
    """Figures of one number of subscriptions."""

    subscriptions: int
    build_s: float
    build_us: float
    """Microseconds for a subscription, of all processes together."""
    match_s: float
    """Duration of a pass over the events after a first one, all matches counted."""
    events: int
    matches: int
    driver_mb: int
    """The most memory of the driver's Python process."""
    jvm_mb: int
    workers_mb: int
    """The most memory of all Python workers together."""
    all_mb: int
    """The most memory of all processes together."""


def measure(
    counts: tuple[int, ...], memory: str, progress: Progress = silent
) -> Iterator[BuildSpeed]:
    """Measure each number of subscriptions; ``memory`` is that of the JVM, as Spark takes it."""
    for count in counts:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            yield pool.submit(_measure, count, memory, progress).result()


def _measure(count: int, memory: str, progress: Progress) -> BuildSpeed:
    from tidegate.spark.session import local_session

    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as name:
        folder = Path(name)
        progress(f"{count:,} subscriptions: writing the table")
        # In another process, so that its memory does not count.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            expected = pool.submit(_write_tables, folder, count).result()
        spark = local_session(
            "tidegate-bench",
            settings={"spark.driver.memory": memory, "spark.local.dir": str(folder / "local")},
        )
        try:
            progress(f"{count:,} subscriptions: building")
            return _build_and_match(spark, folder, count, expected, progress)
        finally:
            spark.stop()


def _write_tables(folder: Path, count: int) -> int:
    """Write subscriptions and events; returns the number of matches of the first events."""
    workload = WORKLOADS["market"]
    events = workload.events(EVENTS)
    pq.write_table(
        events.append_column("event", pa.array(range(EVENTS))), folder / "events.parquet"
    )
    matches = 0
    (folder / "subscriptions").mkdir()
    for piece, begin in enumerate(range(0, count, PIECE)):
        size = min(PIECE, count - begin)
        table = workload.subscriptions(size, seed=piece + 1)
        ids = pa.array([f"s{number}" for number in range(begin, begin + size)])
        path = folder / "subscriptions" / f"{piece}.parquet"
        pq.write_table(table.set_column(0, "id", ids), path)
        baseline = NumpyBaseline(size, workload.conditions(size, seed=piece + 1))
        checked = baseline.baseline_events(events.slice(0, CHECKED_EVENTS))
        matches += sum(len(baseline.match(event)) for event in checked)
    return matches


def _build_and_match(
    spark: object, folder: Path, count: int, expected: int, progress: Progress
) -> BuildSpeed:
    from pyspark.sql import SparkSession

    from tidegate.spark import match

    assert isinstance(spark, SparkSession)
    events = spark.read.parquet(str(folder / "events.parquet"))
    subscriptions = spark.read.parquet(str(folder / "subscriptions"))
    with _MemorySamples() as samples:
        start = perf_counter()
        deliveries = match(events, subscriptions, key="event", partition_by="symbol")
        build_s = perf_counter() - start
        progress(f"{count:,} subscriptions: matching")
        first = deliveries.where(f"event < {CHECKED_EVENTS}").count()
        if first != expected:
            raise AssertionError(f"{first} matches, not {expected}")
        start = perf_counter()
        matches = deliveries.count()
        match_s = perf_counter() - start
    return BuildSpeed(
        count,
        build_s,
        build_s / count * 1e6,
        match_s,
        EVENTS,
        matches,
        samples.driver // 2**20,
        samples.jvm // 2**20,
        samples.workers // 2**20,
        samples.all // 2**20,
    )


class _MemorySamples:
    """The most memory of this process and those below it, while it is a context."""

    def __init__(self) -> None:
        self.driver = self.jvm = self.workers = self.all = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> _MemorySamples:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_S):
            driver = jvm = workers = 0
            for process, command, held in proportional_bytes(os.getpid()):
                if process == os.getpid():
                    driver += held
                elif command == "java":
                    jvm += held
                else:
                    workers += held
            self.driver, self.jvm = max(self.driver, driver), max(self.jvm, jvm)
            self.workers = max(self.workers, workers)
            self.all = max(self.all, driver + jvm + workers)
