"""What it costs that filters evolve: the same subscriptions static, lazy, periodic and cached.

The static ones have the bounds that the others have after some seconds, and keep them.

All ways stand in one process and take turns within a round, so that a slow moment of the machine
hits all of them. From round to round event time goes on, as it does in life: stretches of time end,
intervals pass and versions expire within the rounds, and what that costs is counted. Before the
rounds each way's answers are compared with the yardstick's, as of the times that the way goes by.
After them, the bounds of ranges are updated one by one.

Everything from Arrow in to Arrow out is counted, by one thread.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np
import pyarrow as pa

from tidegate.experiments.matching import (
    VERIFIED_EVENTS,
    WARM_UP_SUBSCRIPTIONS,
    Latency,
    latency_of,
)
from tidegate.experiments.numpy_baseline import NumpyBaseline
from tidegate.experiments.progress import Progress
from tidegate.experiments.workloads import (
    EVENT_TIME,
    EVENTS_PER_S,
    EVOLVING,
    SINCE,
    STILL,
    Workload,
    subscription_ids,
)
from tidegate.matching.engine import Engine

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SECONDS = 1.0
"""The interval of what is periodic, the threshold of what is cached."""
EVENTS_MIN, EVENTS_MAX = 100, 100_000
UPDATES = 20_000


@dataclass(frozen=True, slots=True)
class EvolveMethod:
    """A way to have subscriptions: what they are, and when their filters are evaluated."""

    name: str
    workload: Workload
    evolve: str | None = None

    def judged_at(self, times: list[float]) -> list[float]:
        """The `t` for which filters are evaluated, for events that come one after the other."""
        match (self.evolve or "").partition(" ")[0]:
            case "periodic":
                return [t // SECONDS * SECONDS for t in times]
            case "cached":
                return list(_cached(times))
            case _:
                return times


def _cached(times: list[float]) -> Iterator[float]:
    version: float | None = None
    for t in times:
        if version is None or t > version + SECONDS:
            version = t
        yield version


WAYS = (
    EvolveMethod("static", STILL),
    EvolveMethod("lazy", EVOLVING, "lazy"),
    EvolveMethod("periodic", EVOLVING, f"periodic {SECONDS:g} s"),
    EvolveMethod("cached", EVOLVING, f"cached {SECONDS:g} s"),
)


@dataclass(frozen=True, slots=True)
class EvolvingSpeed:
    """What was measured of a way: the median of the rounds, the slowest and the fastest of them.

    ``times_static`` is how often an event of the static way can be matched in the time of one of
    this way. An update gives a range other bounds, two parameters of one subscription.
    ``wrong_pairs`` must be 0.
    """

    way: str
    engine: str
    subscriptions: int
    events: int
    matches_per_event: float
    median_per_s: float
    slowest_per_s: float
    fastest_per_s: float
    times_static: float
    update: Latency
    build_s: float
    wrong_pairs: int


@dataclass(slots=True)
class _Running:
    """A way with its engine, and how far it has come."""

    way: EvolveMethod
    matcher: str
    engine: Engine
    build_s: float
    wrong_pairs: int = 0
    matches: int = 0

    @classmethod
    def built(cls, way: EvolveMethod, subscriptions: int, matcher: str, seed: int) -> _Running:
        table = way.workload.subscriptions(subscriptions, seed)
        if way.evolve is not None:
            table = table.append_column("evolve", pa.array([way.evolve] * subscriptions))
        made = Engine(matcher=matcher)
        start = perf_counter()
        made.subscribe_batch(table)
        made.match({}, time=SINCE)  # which is when the index has to be ready
        return cls(way, matcher, made, perf_counter() - start)

    def match(self, events: pa.Table) -> pa.Table:
        return self.engine.match_batch(events, event_time=EVENT_TIME)

    def verify(self, subscriptions: int, seed: int) -> None:
        """Compare some events, spread over a few seconds, with the yardstick."""
        some = self.way.workload.events(4 * EVENTS_PER_S, seed)
        step = some.num_rows // VERIFIED_EVENTS
        events = some.take(list(range(0, some.num_rows, step)))
        conditions = self.way.workload.conditions(subscriptions, seed)
        yardstick = NumpyBaseline(subscriptions, conditions)
        points = list(yardstick.points(events))
        judged = self.way.judged_at([point.t for point in points])
        ids = subscription_ids(subscriptions)
        right = {
            (index, ids[row])
            for index, (point, t) in enumerate(zip(points, judged, strict=True))
            for row in yardstick.match(replace(point, t=t)).tolist()
        }
        pairs = self.match(events)
        found = zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True)
        self.wrong_pairs = len(set(found) ^ right)

    def seconds(self, events: pa.Table) -> float:
        start = perf_counter()
        self.matches = self.match(events).num_rows
        return perf_counter() - start

    def update(self, subscriptions: int, seed: int) -> Latency:
        """Update subscriptions one by one."""
        rng = np.random.default_rng([seed, 2])
        ids = subscription_ids(subscriptions)
        rows = rng.integers(0, subscriptions, UPDATES).tolist()
        windows = self.way.workload.windows(UPDATES, rng)
        return latency_of(
            [
                partial(self.engine.update, ids[row], window)
                for row, window in zip(rows, windows, strict=True)
            ]
        )


def measure(
    subscriptions: int,
    rounds: int = 5,
    *,
    engine: str = "columnar",
    events: int | None = None,
    seed: int = 1,
    progress: Progress = str,
) -> list[EvolvingSpeed]:
    """Measure all ways side by side; without a number of events, half a second's for the first."""
    for way in WAYS:  # nothing is compiled while it counts
        few = _Running.built(way, WARM_UP_SUBSCRIPTIONS, engine, seed)
        few.verify(WARM_UP_SUBSCRIPTIONS, seed)
        few.update(WARM_UP_SUBSCRIPTIONS, seed)
    running: list[_Running] = []
    for way in WAYS:
        progress(f"{subscriptions:,} subscriptions, {way.name}: building")
        running.append(_Running.built(way, subscriptions, engine, seed))
        running[-1].verify(subscriptions, seed)
    done = 4 * EVENTS_PER_S  # the events that were verified
    count = events or _events_of_a_round(running[0], done, seed)
    seconds: list[list[float]] = []
    for number in range(rounds + 1):
        progress(f"{subscriptions:,} subscriptions: round {number} of {rounds}")
        batch = EVOLVING.events(count, seed, first=done)
        seconds.append([each.seconds(batch) for each in running])
        done += count
    del seconds[0]  # in which what was put off is done
    progress(f"{subscriptions:,} subscriptions: updates")
    return [
        _speed(
            each,
            count,
            [of_round[place] / of_round[0] for of_round in seconds],
            [of_round[place] for of_round in seconds],
            each.update(subscriptions, seed),
        )
        for place, each in enumerate(running)
    ]


def _events_of_a_round(running: _Running, first: int, seed: int) -> int:
    count = EVENTS_MIN
    while True:
        taken = min(
            running.seconds(running.way.workload.events(count, seed, first)) for _ in range(2)
        )
        if taken > 0.1:
            return min(EVENTS_MAX, max(EVENTS_MIN, round(count * 0.5 / taken)))
        count *= 4


def _speed(
    each: _Running, count: int, ratios: list[float], times: list[float], update: Latency
) -> EvolvingSpeed:
    return EvolvingSpeed(
        each.way.name,
        each.matcher,
        len(each.engine),
        count,
        matches_per_event=each.matches / count,
        median_per_s=count / statistics.median(times),
        slowest_per_s=count / max(times),
        fastest_per_s=count / min(times),
        times_static=statistics.median(ratios),
        update=update,
        build_s=each.build_s,
        wrong_pairs=each.wrong_pairs,
    )
