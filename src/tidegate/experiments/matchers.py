"""Benchmark of matchers side by side: the same subscriptions and events, in turns.

All engines are in one process, and within a round each matches the same events, so that a slow
moment of the machine hits all of them; `matching` measures one engine alone, with its memory. Time
is counted from Arrow input to Arrow output. Updates are calls of `Engine.update`, in turns too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter

import numpy as np
import pyarrow as pa

from tidegate.errors import SubscriptionError
from tidegate.experiments.matching import latency_of
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import EVENT_TIME, SINCE, WORKLOADS, Workload, subscription_ids
from tidegate.matching.engine import Engine

ENGINES = ("columnar", "tree")
EVENTS_MAX = 100_000
ROUND_S = 0.5
"""Target duration of a round of the first engine."""
UPDATES = 1_000
"""Updates of an engine in a round."""


@dataclass(frozen=True, slots=True)
class MatcherSpeed:
    """Figures of one engine: microseconds an event in batches, and microseconds an update."""

    workload: str
    subscriptions: int
    engine: str
    median_us: float
    fastest_us: float
    slowest_us: float
    update_us: float | None
    """Median of the medians of all rounds; None where the workload has no updates."""
    build_s: float
    matches: float
    """Matches an event."""
    is_same: bool
    """Whether the answers are those of the first engine."""


def measure(
    workload: str,
    subscriptions: int,
    engines: Sequence[str] = ENGINES,
    rounds: int = 5,
    *,
    events: int | None = None,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[MatcherSpeed]:
    """Measure engines with one workload; ``events`` are those of a round, None: as many as fit."""
    if len(set(engines)) < len(engines):
        raise SubscriptionError(f"an engine is named twice: {', '.join(engines)}")
    drawn = WORKLOADS[workload]
    table = drawn.subscriptions(subscriptions, seed)
    built: dict[str, Engine] = {}
    build_s: dict[str, float] = {}
    for name in engines:
        progress(f"{workload}, {subscriptions:,} subscriptions: building {name}")
        built[name] = engine = Engine(matcher=name)
        start = perf_counter()
        engine.subscribe_batch(table)
        engine.match({}, time=SINCE)  # engines build their index at the first match
        build_s[name] = perf_counter() - start
    del table
    trial = _Trial(drawn, subscriptions, built, events, seed)
    progress(f"{workload}, {subscriptions:,} subscriptions: matching")
    for _ in range(rounds):
        trial.round()
    answers = {name: trial.answers(engine) for name, engine in built.items()}
    for name in engines:
        times_us, updates_us = trial.times_us[name], trial.updates_us[name]
        yield MatcherSpeed(
            workload,
            subscriptions,
            name,
            median(times_us),
            min(times_us),
            max(times_us),
            median(updates_us) if updates_us else None,
            build_s[name],
            trial.matches / trial.events.num_rows,
            answers[name] == answers[engines[0]],
        )


class _Trial:
    """Engines with the same subscriptions, and the times that they take in turns."""

    def __init__(
        self,
        workload: Workload,
        subscriptions: int,
        engines: dict[str, Engine],
        events: int | None,
        seed: int,
    ) -> None:
        self._workload = workload
        self._engines = engines
        self._ids = subscription_ids(subscriptions)
        self._rng = np.random.default_rng([seed, 2])  # 0, 1: subscriptions and events
        self.times_us: dict[str, list[float]] = {name: [] for name in engines}
        self.updates_us: dict[str, list[float]] = {name: [] for name in engines}
        self.matches = 0
        self.events = workload.events(events or EVENTS_MAX, seed)
        first = next(iter(engines.values()))
        if events is None:
            few = self.events.slice(0, 200)
            self._match(first, few)  # may compile, and do work that was deferred
            start = perf_counter()
            self._match(first, few)
            count = round(200 * ROUND_S / (perf_counter() - start))
            self.events = self.events.slice(0, min(EVENTS_MAX, max(20, count)))
        for engine in engines.values():
            self.matches = self._match(engine, self.events).num_rows

    def round(self) -> None:
        """Let each engine match all events, and make the same updates in each."""
        for name, engine in self._engines.items():
            start = perf_counter()
            self._match(engine, self.events)
            self.times_us[name].append((perf_counter() - start) * 1e6 / self.events.num_rows)
        if not self._workload.is_updated:
            return
        rows = np.arange(len(self._ids))
        chosen, least = self._workload.updates(UPDATES, rows, self._rng)
        for name, engine in self._engines.items():
            calls: list[Callable[[], object]] = [
                partial(engine.update, self._ids[row], least=value)
                for row, value in zip(chosen.tolist(), least.tolist(), strict=True)
            ]
            self.updates_us[name].append(latency_of(calls).p50_us)

    def answers(self, engine: Engine) -> set[tuple[object, object]]:
        """The pairs of the first events, after all updates."""
        pairs = self._match(engine, self.events.slice(0, 200))
        return set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))

    def _match(self, engine: Engine, events: pa.Table) -> pa.Table:
        event_time = EVENT_TIME if self._workload.is_timed else None
        return engine.match_batch(events, event_time=event_time)
