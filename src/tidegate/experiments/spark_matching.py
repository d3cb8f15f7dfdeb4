"""Benchmark of matching on Spark, beside the joins that a user would write without Tidegate.

On `market`, all methods find and materialize every match of the same events, as many of them as
take a few seconds: an identity pass through Python (the cost of Spark without matching), Tidegate
with a row for each match and with a list for each event, a join in Spark SQL as one would first
write it, the same split into an equality join and the rest, and a join in DuckDB.

The methods run one after the other and not in turns: each has its own number of events, and only
one set of events at a time is in the memory of Spark.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import WORKLOADS, subscription_ids
from tidegate.spark import match
from tidegate.spark.session import local_session

WORKLOAD = "market"
KEY = "event"
"""The column with the number of an event."""
EVENTS_MAX = 1_000_000
CHECKED_EVENTS = 1_000
"""Number of events for which the methods must find the same number of matches."""
ROUND_S = 4.0
"""Target duration of a round; the number of events is chosen for it."""
NO_BOUND = 1e300
"""The value of a missing bound; SQL compares numbers faster than it checks for nulls."""
FACTORS = tuple(f"f{index}" for index in range(6))


@dataclass(frozen=True, slots=True)
class MethodSpeed:
    """Figures of one method of matching."""

    method: str
    subscriptions: int
    events: int
    matches: int
    """Matches of these events; 0 for the identity pass."""
    first_s: float
    """Duration of the first pass, with compilation and loading."""
    median_per_s: float
    slowest_per_s: float
    fastest_per_s: float


@dataclass(frozen=True, slots=True)
class MatchMethod:
    """A named method; ``run(n)`` matches the first n events and returns the number of matches."""

    name: str
    run: Callable[[int], int]
    first_events: int = 1000
    """Number of events in the first pass; fewer for slow methods."""


def measure(
    subscriptions: int, rounds: int, progress: Progress = silent, *, only_ours: bool = False
) -> Iterator[MethodSpeed]:
    """Measure all methods at one number of subscriptions; raises if their answers differ."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        trial = _SparkTrial(Path(folder), subscriptions)
        for method in trial.methods(only_ours=only_ours):
            progress(f"{subscriptions:,} subscriptions: {method.name}")
            speed = measure_method(method, subscriptions, rounds)
            yield speed
            if method.name != "identity":
                expected = trial.count(CHECKED_EVENTS)
                found = method.run(CHECKED_EVENTS)
                if found != expected:
                    raise AssertionError(f"{method.name} finds {found} matches, not {expected}")


def measure_method(method: MatchMethod, subscriptions: int, rounds: int) -> MethodSpeed:
    """Choose the number of events so that a round is long enough, then time the rounds."""
    start = perf_counter()
    method.run(method.first_events)
    first_s = perf_counter() - start
    events = method.first_events
    while True:
        start = perf_counter()
        matches = method.run(events)
        seconds = perf_counter() - start
        if seconds >= ROUND_S / 2 or events >= EVENTS_MAX:
            break
        # At most ten times as many: a short pass is mostly the fixed cost of a Spark job.
        events = min(EVENTS_MAX, int(events * min(10.0, 1.2 * ROUND_S / max(seconds, 0.01))))
    speeds = []
    for _ in range(rounds):
        start = perf_counter()
        matches = method.run(events)
        speeds.append(events / (perf_counter() - start))
    return MethodSpeed(
        method.name,
        subscriptions,
        events,
        matches,
        first_s,
        median(speeds),
        min(speeds),
        max(speeds),
    )


class _SparkTrial:
    """The events and subscriptions that all methods share."""

    def __init__(self, folder: Path, subscriptions: int) -> None:
        self._folder = folder
        self._count = subscriptions
        workload = WORKLOADS[WORKLOAD]
        events = workload.events(EVENTS_MAX)
        self._events = events.append_column(KEY, pa.array(np.arange(EVENTS_MAX)))
        self._texts = workload.subscriptions(subscriptions)
        self._bounds = bounds_table(subscriptions)
        self._spark = local_session("tidegate-bench", settings={"spark.driver.memory": "4g"})
        self._cached: dict[int, DataFrame] = {}
        """The cached DataFrame, by its number of events; at most one."""
        pq.write_table(self._bounds, folder / "bounds.parquet")

    def methods(self, *, only_ours: bool) -> Iterator[MatchMethod]:
        """All methods, the fastest first."""
        yield MatchMethod("identity", self._identity, 100_000)
        yield MatchMethod("tidegate, grouped", self._tidegate(grouped=True), 10_000)
        yield MatchMethod("tidegate, rows", self._tidegate(grouped=False), 10_000)
        if only_ours:
            return
        yield MatchMethod("duckdb", self._duckdb())
        yield MatchMethod("spark sql, split", self._spark_sql(SPLIT_JOIN))
        yield MatchMethod("spark sql, natural", self._spark_sql(NATURAL_JOIN), 200)

    def count(self, events: int) -> int:
        """The number of matches of the first events."""
        return self._tidegate(grouped=False)(events)

    def _first(self, events: int) -> DataFrame:
        """The first events as a cached DataFrame, spread over all cores."""
        if events not in self._cached:
            for old in self._cached.values():
                old.unpersist()
            path = self._folder / f"events-{events}.parquet"
            pq.write_table(self._events.slice(0, events), path)
            cores = self._spark.sparkContext.defaultParallelism
            frame = self._spark.read.parquet(str(path)).repartition(cores).cache()
            frame.count()  # fills the cache, so that reading the file is not timed
            self._cached = {events: frame}
        return self._cached[events]

    def _identity(self, events: int) -> int:
        first = self._first(events)
        _materialize(first.mapInArrow(_unchanged, first.schema))
        return 0

    def _tidegate(self, *, grouped: bool) -> Callable[[int], int]:
        # Prepared once for each number of events, because `match` builds and ships the index.
        prepared: dict[int, DataFrame] = {}

        def run(events: int) -> int:
            first = self._first(events)
            if events not in prepared:
                prepared[events] = match(first, self._texts, key=KEY, grouped=grouped)
            matches = prepared[events]
            return _materialize(matches, "sum(size(deliveries))" if grouped else "count(1)")

        return run

    def _spark_sql(self, query: str) -> Callable[[int], int]:
        def run(events: int) -> int:
            self._first(events).createOrReplaceTempView("events")
            bounds = self._spark.read.parquet(str(self._folder / "bounds.parquet"))
            bounds.createOrReplaceTempView("subscriptions")
            return _materialize(self._spark.sql(query))

        return run

    def _duckdb(self) -> Callable[[int], int]:
        import duckdb  # of the extra `bench`; not needed with only_ours

        connection = duckdb.connect()
        connection.execute(f"set threads to {self._spark.sparkContext.defaultParallelism}")
        connection.register("given", self._bounds)
        connection.execute("create table subscriptions as select * from given")
        connection.register("all_events", self._events)
        loaded_events = 0

        def run(events: int) -> int:
            nonlocal loaded_events
            if events != loaded_events:
                first = f"select * from all_events where {KEY} < {events}"
                connection.execute(f"create or replace table events as {first}")
                loaded_events = events
            # A table, because a plain count(*) would not materialize the matches.
            connection.execute(f"create or replace temp table matches as {SPLIT_JOIN}")
            [(count,)] = connection.execute("select count(*) from matches").fetchall()
            return int(count)

        return run


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _materialize(frame: DataFrame, count: str = "count(1)") -> int:
    """Compute all rows, as a sink would; returns the number of matches.

    Spark would leave out columns that a `count()` does not need, so the rows are written to a sink
    that drops them, and counted on the way.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    observation = Observation()
    observed = frame.observe(observation, f.expr(count).alias("matches"))
    observed.write.format("noop").mode("overwrite").save()
    return int(observation.get["matches"] or 0)


def bounds_table(count: int) -> pa.Table:
    """The subscriptions as a table for SQL: a column for each bound, and a symbol or null."""
    columns: dict[str, pa.Array] = {"subscription": pa.array(subscription_ids(count))}  # type: ignore[type-arg]
    for each in WORKLOADS[WORKLOAD].conditions(count):
        if each.names:
            names = np.full(count, None, np.object_)
            names[each.rows] = [each.names[int(code)] for code in each.low]
            columns[each.attribute] = pa.array(names, pa.string())
            continue
        for side, bounds, missing in (("low", each.low, -NO_BOUND), ("high", each.high, NO_BOUND)):
            column = np.full(count, missing)
            column[each.rows] = bounds
            columns[f"{each.attribute}_{side}"] = pa.array(column)
    return pa.table(columns)


_RANGES = "e.price between s.price_low and s.price_high and e.volume >= s.volume_low and " + (
    " and ".join(f"e.{name} between s.{name}_low and s.{name}_high" for name in FACTORS)
)
NATURAL_JOIN = (
    f"select e.{KEY}, s.subscription from events e join subscriptions s "
    f"on (s.symbol is null or e.symbol = s.symbol) and {_RANGES}"
)
"""The join in one condition. Its `or` keeps Spark from a hash join on the symbol."""
SPLIT_JOIN = (
    f"select e.{KEY}, s.subscription from events e join subscriptions s "
    f"on e.symbol = s.symbol and {_RANGES} union all "
    f"select e.{KEY}, s.subscription from events e "
    f"join (select * from subscriptions where symbol is null) s on {_RANGES}"
)
"""A hash join on the symbol, and a second join for the subscriptions without a symbol."""
