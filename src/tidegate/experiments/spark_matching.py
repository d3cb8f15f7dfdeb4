"""How fast events are matched on Spark, beside what one would write instead of Tidegate.

On `market`, all ways find and materialize every match of the same events, as many of them as take
a few seconds: an identity pass through Python (what Spark costs without matching), Tidegate with a
row for each match and with a list for each event, a join in Spark SQL as one would first write it,
the same split into an equality join and the rest, and a join in DuckDB.
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

from tidegate.experiments.progress import Progress
from tidegate.experiments.workloads import WORKLOADS, subscription_ids
from tidegate.spark import match
from tidegate.spark.session import local_session

WORKLOAD = "market"
KEY = "event"
EVENTS_MAX = 1_000_000
ROUND_S = 4.0
"""A round has as many events as take about so long."""
NO_BOUND = 1e300
"""What stands in a column of bounds where there is none; quicker for SQL than a null."""
FACTORS = tuple(f"f{index}" for index in range(6))


@dataclass(frozen=True, slots=True)
class MethodSpeed:
    """How fast one way of matching is."""

    way: str
    subscriptions: int
    events: int
    matches: int
    """How many matches these events have; an identity pass finds none."""
    first_s: float
    """How long the first pass took, with what is compiled and loaded in it."""
    median_per_s: float
    slowest_per_s: float
    fastest_per_s: float


@dataclass(frozen=True, slots=True)
class _MatchMethod:
    """A way to match the first so many events; gives how many matches there are."""

    name: str
    run: Callable[[int], int]
    first_events: int = 1000


def measure(
    subscriptions: int, rounds: int, progress: Progress = str, *, only_ours: bool = False
) -> Iterator[MethodSpeed]:
    """Measure all ways at one number of subscriptions; answers that differ are an error."""
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as folder:
        trial = _SparkTrial(Path(folder), subscriptions)
        counts: dict[int, int] = {}
        for way in trial.ways(only_ours=only_ours):
            progress(f"{subscriptions:,} subscriptions: {way.name}")
            speed = _measure(way, subscriptions, rounds)
            yield speed
            if way.name != "identity":
                wanted = counts.setdefault(1000, trial.count(1000))
                found = way.run(1000)
                if found != wanted:
                    raise AssertionError(f"{way.name} finds {found} matches, not {wanted}")


def _measure(way: _MatchMethod, subscriptions: int, rounds: int) -> MethodSpeed:
    begun = perf_counter()
    way.run(way.first_events)
    first_s = perf_counter() - begun
    events, seconds = way.first_events, first_s
    while True:  # until a round is long enough
        begun = perf_counter()
        matches = way.run(events)
        seconds = perf_counter() - begun
        if seconds >= ROUND_S / 2 or events >= EVENTS_MAX:
            break
        events = min(EVENTS_MAX, int(events * min(10.0, 1.2 * ROUND_S / max(seconds, 0.01))))
    speeds = []
    for _ in range(rounds):
        begun = perf_counter()
        matches = way.run(events)
        speeds.append(events / (perf_counter() - begun))
    return MethodSpeed(
        way.name, subscriptions, events, matches, first_s, median(speeds), min(speeds), max(speeds)
    )


class _SparkTrial:
    """The same events and subscriptions for all ways."""

    def __init__(self, folder: Path, subscriptions: int) -> None:
        self._folder = folder
        self._count = subscriptions
        workload = WORKLOADS[WORKLOAD]
        events = workload.events(EVENTS_MAX)
        self._events = events.append_column(KEY, pa.array(np.arange(EVENTS_MAX)))
        self._texts = workload.subscriptions(subscriptions)
        self._bounds = _bounds(subscriptions)
        self._spark = local_session("tidegate-bench", settings={"spark.driver.memory": "4g"})
        self._held: dict[int, DataFrame] = {}
        pq.write_table(self._bounds, folder / "bounds.parquet")

    def ways(self, *, only_ours: bool) -> Iterator[_MatchMethod]:
        """All ways, the quickest first."""
        yield _MatchMethod("identity", self._identity, 100_000)
        yield _MatchMethod("tidegate, grouped", self._ours(grouped=True), 10_000)
        yield _MatchMethod("tidegate, rows", self._ours(grouped=False), 10_000)
        if only_ours:
            return
        yield _MatchMethod("duckdb", self._in_duckdb())
        yield _MatchMethod("spark sql, split", self._sql(_SPLIT))
        yield _MatchMethod("spark sql, natural", self._sql(_NATURAL), 200)

    def count(self, events: int) -> int:
        """How many matches the first events have."""
        return self._ours(grouped=False)(events)

    def _first(self, events: int) -> DataFrame:
        """The first so many events, in memory, on all cores."""
        if events not in self._held:
            for old in self._held.values():
                old.unpersist()
            path = self._folder / f"events-{events}.parquet"
            pq.write_table(self._events.slice(0, events), path)
            cores = self._spark.sparkContext.defaultParallelism
            held = self._spark.read.parquet(str(path)).repartition(cores).cache()
            held.count()
            self._held = {events: held}
        return self._held[events]

    def _identity(self, events: int) -> int:
        first = self._first(events)
        _materialize(first.mapInArrow(_unchanged, first.schema))
        return 0

    def _ours(self, *, grouped: bool) -> Callable[[int], int]:
        prepared: dict[int, DataFrame] = {}

        def run(events: int) -> int:
            first = self._first(events)
            if events not in prepared:
                prepared[events] = match(first, self._texts, key=KEY, grouped=grouped)
            found = prepared[events]
            return _materialize(found, "sum(size(deliveries))" if grouped else "count(1)")

        return run

    def _sql(self, query: str) -> Callable[[int], int]:
        def run(events: int) -> int:
            self._first(events).createOrReplaceTempView("events")
            bounds = self._spark.read.parquet(str(self._folder / "bounds.parquet"))
            bounds.createOrReplaceTempView("subscriptions")
            return _materialize(self._spark.sql(query))

        return run

    def _in_duckdb(self) -> Callable[[int], int]:
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"set threads to {self._spark.sparkContext.defaultParallelism}")
        connection.register("given", self._bounds)
        connection.execute("create table subscriptions as select * from given")
        connection.register("all_events", self._events)
        held = 0

        def run(events: int) -> int:
            nonlocal held
            if events != held:
                first = f"select * from all_events where {KEY} < {events}"
                connection.execute(f"create or replace table events as {first}")
                held = events
            connection.execute(f"create or replace temp table found as {_SPLIT}")
            [(count,)] = connection.execute("select count(*) from found").fetchall()
            return int(count)

        return run


def _unchanged(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _materialize(found: DataFrame, count: str = "count(1)") -> int:
    """Have all rows made, as a sink would; gives how many matches there are."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    seen = Observation()
    observed = found.observe(seen, f.expr(count).alias("matches"))
    observed.write.format("noop").mode("overwrite").save()
    return int(seen.get["matches"] or 0)


def _bounds(count: int) -> pa.Table:
    """The subscriptions as SQL takes them: a column for each bound, and a symbol or null."""
    columns: dict[str, pa.Array] = {"subscription": pa.array(subscription_ids(count))}  # type: ignore[type-arg]
    for each in WORKLOADS[WORKLOAD].conditions(count):
        if each.names:
            names = np.full(count, None, np.object_)
            names[each.rows] = [each.names[int(code)] for code in each.low]
            columns[each.attribute] = pa.array(names, pa.string())
            continue
        for side, values, none in (("low", each.low, -NO_BOUND), ("high", each.high, NO_BOUND)):
            spread = np.full(count, none)
            spread[each.rows] = values
            columns[f"{each.attribute}_{side}"] = pa.array(spread)
    return pa.table(columns)


_RANGES = "e.price between s.price_low and s.price_high and e.volume >= s.volume_low and " + (
    " and ".join(f"e.{name} between s.{name}_low and s.{name}_high" for name in FACTORS)
)
_NATURAL = (
    f"select e.{KEY}, s.subscription from events e join subscriptions s "
    f"on (s.symbol is null or e.symbol = s.symbol) and {_RANGES}"
)
_SPLIT = (
    f"select e.{KEY}, s.subscription from events e join subscriptions s "
    f"on e.symbol = s.symbol and {_RANGES} union all "
    f"select e.{KEY}, s.subscription from events e "
    f"join (select * from subscriptions where symbol is null) s on {_RANGES}"
)
