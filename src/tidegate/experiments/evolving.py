"""Benchmark of evolving filters: the same subscriptions static, lazy, periodic and cached.

The static subscriptions have the bounds that the evolving ones reach after some seconds.

All modes run in one process and take turns within a round, so that a slow moment of the machine
hits all of them. Event time advances from round to round: time windows end, intervals pass and
versions expire within the rounds, and their cost is counted. Before the rounds the answers of each
mode are compared with the baseline, evaluated as of the times that the mode prescribes. After the
rounds the bounds of ranges are updated one by one.

Time is counted from Arrow input to Arrow output, on one thread.
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
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import (
    EVENT_TIME,
    EVENTS_PER_S,
    EVOLVING,
    SINCE,
    STATIC,
    Workload,
    subscription_ids,
)
from tidegate.matching.engine import Engine

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SECONDS = 1.0
"""The interval of `periodic` and the threshold of `cached`."""
EVENTS_MIN, EVENTS_MAX = 100, 100_000
"""Limits of the number of events in a round."""
ROUND_S = 0.5
"""Target duration of a round of the static mode, if the number of events is not given."""
VERIFIED_S = 4
"""Span of event time over which verified events are spread: several intervals and thresholds."""
UPDATES = 20_000
"""Number of updates that are timed."""


@dataclass(frozen=True, slots=True)
class EvolveMode:
    """A workload, and the evolve mode of its subscriptions; None for static filters."""

    name: str
    workload: Workload
    evolve: str | None = None

    def evaluation_times(self, times: list[float]) -> list[float]:
        """The `t` at which filters are evaluated for events at the given `t`, which ascend.

        It is computed from the definition in docs/filters.md and not by the engine, to check it.
        """
        match (self.evolve or "").partition(" ")[0]:
            case "periodic":
                return [t // SECONDS * SECONDS for t in times]
            case "cached":
                return list(_cached_times(times))
            case _:
                return times


def _cached_times(times: list[float]) -> Iterator[float]:
    version: float | None = None
    for t in times:
        if version is None or t > version + SECONDS:
            version = t
        yield version


MODES = (
    EvolveMode("static", STATIC),
    EvolveMode("lazy", EVOLVING, "lazy"),
    EvolveMode("periodic", EVOLVING, f"periodic {SECONDS:g} s"),
    EvolveMode("cached", EVOLVING, f"cached {SECONDS:g} s"),
)


@dataclass(frozen=True, slots=True)
class EvolvingSpeed:
    """Figures of a mode: events per second, the median of the rounds and their extremes.

    ``times_static`` is the time per event over that of the static mode. An update sets both bounds
    of a range, which are two parameters of one subscription.
    ``wrong_pairs`` must be 0.
    """

    mode: str
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
class ModeTrial:
    """A mode with its engine, and its results so far."""

    mode: EvolveMode
    matcher: str
    engine: Engine
    build_s: float
    wrong_pairs: int = 0
    matches: int = 0
    """Matches of the last round."""

    @classmethod
    def build(cls, mode: EvolveMode, subscriptions: int, matcher: str, seed: int) -> ModeTrial:
        """Add the subscriptions of the workload to a new engine."""
        table = mode.workload.subscriptions(subscriptions, seed)
        if mode.evolve is not None:
            table = table.append_column("evolve", pa.array([mode.evolve] * subscriptions))
        engine = Engine(matcher=matcher)
        start = perf_counter()
        engine.subscribe_batch(table)
        engine.match({}, time=SINCE)  # builds the index
        return cls(mode, matcher, engine, perf_counter() - start)

    def match(self, events: pa.Table) -> pa.Table:
        return self.engine.match_batch(events, event_time=EVENT_TIME)

    def verify(self, subscriptions: int, seed: int) -> None:
        """Compare the answers for some events, spread over a few seconds, with the baseline."""
        all_events = self.mode.workload.events(VERIFIED_S * EVENTS_PER_S, seed)
        step = all_events.num_rows // VERIFIED_EVENTS
        events = all_events.take(list(range(0, all_events.num_rows, step)))
        conditions = self.mode.workload.conditions(subscriptions, seed)
        baseline = NumpyBaseline(subscriptions, conditions)
        baseline_events = list(baseline.baseline_events(events))
        times = self.mode.evaluation_times([event.t for event in baseline_events])
        ids = subscription_ids(subscriptions)
        expected = {
            (index, ids[row])
            for index, (event, t) in enumerate(zip(baseline_events, times, strict=True))
            for row in baseline.match(replace(event, t=t)).tolist()
        }
        pairs = self.match(events)
        found = zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True)
        self.wrong_pairs = len(set(found) ^ expected)

    def seconds(self, events: pa.Table) -> float:
        """Match events; returns the seconds it took."""
        start = perf_counter()
        self.matches = self.match(events).num_rows
        return perf_counter() - start

    def update(self, subscriptions: int, seed: int) -> Latency:
        """Update subscriptions one by one, and time each call."""
        rng = np.random.default_rng([seed, 2])  # 0 and 1 draw subscriptions and events
        ids = subscription_ids(subscriptions)
        rows = rng.integers(0, subscriptions, UPDATES).tolist()
        windows = self.mode.workload.windows(UPDATES, rng)
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
    progress: Progress = silent,
) -> list[EvolvingSpeed]:
    """Measure all modes side by side; ``events`` None: half a second of the static mode."""
    for mode in MODES:  # so that nothing is compiled in the rounds
        warm_up = ModeTrial.build(mode, WARM_UP_SUBSCRIPTIONS, engine, seed)
        warm_up.verify(WARM_UP_SUBSCRIPTIONS, seed)
        warm_up.update(WARM_UP_SUBSCRIPTIONS, seed)
    trials: list[ModeTrial] = []
    for mode in MODES:
        progress(f"{subscriptions:,} subscriptions, {mode.name}: building")
        trials.append(ModeTrial.build(mode, subscriptions, engine, seed))
        trials[-1].verify(subscriptions, seed)
    # Event time goes on as in a stream: the rounds begin after the verified events, and each round
    # begins where the one before ended.
    events_done = VERIFIED_S * EVENTS_PER_S
    count = events or _events_of_a_round(trials[0], events_done, seed)
    # For each round the seconds of each mode, in the order of `MODES`: static is the first.
    seconds: list[list[float]] = []
    for number in range(rounds + 1):
        progress(f"{subscriptions:,} subscriptions: round {number} of {rounds}")
        batch = EVOLVING.events(count, seed, first=events_done)
        seconds.append([trial.seconds(batch) for trial in trials])
        events_done += count
    del seconds[0]  # round 0 includes work that engines had deferred
    progress(f"{subscriptions:,} subscriptions: updates")
    return [
        _speed(
            trial,
            count,
            [of_round[position] / of_round[0] for of_round in seconds],
            [of_round[position] for of_round in seconds],
            trial.update(subscriptions, seed),
        )
        for position, trial in enumerate(trials)
    ]


def _events_of_a_round(static: ModeTrial, first: int, seed: int) -> int:
    """The number of events that take `ROUND_S`, found by growing trials.

    Each is run twice, because the first may do work that the engine had deferred.
    """
    count = EVENTS_MIN
    while True:
        taken_s = min(
            static.seconds(static.mode.workload.events(count, seed, first)) for _ in range(2)
        )
        if taken_s > ROUND_S / 5:
            return min(EVENTS_MAX, max(EVENTS_MIN, round(count * ROUND_S / taken_s)))
        count *= 4


def _speed(
    trial: ModeTrial, count: int, ratios: list[float], seconds: list[float], update: Latency
) -> EvolvingSpeed:
    return EvolvingSpeed(
        trial.mode.name,
        trial.matcher,
        len(trial.engine),
        count,
        matches_per_event=trial.matches / count,
        median_per_s=count / statistics.median(seconds),
        slowest_per_s=count / max(seconds),
        fastest_per_s=count / min(seconds),
        times_static=statistics.median(ratios),
        update=update,
        build_s=trial.build_s,
        wrong_pairs=trial.wrong_pairs,
    )
