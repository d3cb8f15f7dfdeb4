"""Benchmark of pauses: how long single matches, updates and additions take while time passes.

Subscriptions of one evolve mode (see `evolving`) are loaded. Then event time passes at the pace of
the clock, a millisecond at a time; in each there are additions, updates and matches at the rates of
the case, one by one and on one thread. Each call is timed from its start to its return. A call that
comes late because the one before took long is not charged for the wait; `late_s` tells how far the
whole run fell behind. On a busy machine calls can be timed by the processor instead: that leaves
out what they wait for, locks included, but is theirs alone.

Where a long call spends its time is found by timers around the steps of the engine that are known
to be long, for the time of the run (`CAUSES`). They count on the thread of the calls only: work
that is done beside it on another thread shows as `beside`, if none of a call's own steps is long.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from tidegate.experiments.evolving import MODES, EvolveMode, ModeTrial
from tidegate.experiments.matching import WARM_UP_SUBSCRIPTIONS
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import EVENT_TIME, SINCE
from tidegate.language.evolve import parse_evolve
from tidegate.matching.columnar import index as columnar_index
from tidegate.matching.columnar import index_pair as columnar_index_pair
from tidegate.matching.engine import Engine
from tidegate.matching.rows.event_matching import EventMatching
from tidegate.matching.tree import index as tree_index

SIZES = (10_000, 100_000, 300_000, 1_000_000)
STEP_S = 0.001
"""Event time between two groups of calls."""
LONG_MS = 1.0
"""Calls that take longer are pauses."""
EDGES_MS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""The edges between the bins of the histogram of durations."""
OPERATIONS = ("match", "update", "add")

CAUSES: tuple[tuple[Any, str, str], ...] = (
    (columnar_index.Index, "enclose", "enclosing"),
    (columnar_index, "lay_out", "layout"),
    (columnar_index.Index, "flush", "flush"),
    (columnar_index_pair, "release_memory", "release of memory"),
    (tree_index.TreeIndex, "enclose", "enclosing"),
    (EventMatching, "matching_pairs", "search"),
)
"""Where an attribute is, its name, and the cause that its time counts as; inner ones go first."""
GARBAGE = "garbage collection of Python"
BESIDE = "beside"
ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class PauseCase:
    """What to measure; rates are per second of event time, which is also that of the clock."""

    mode: str
    subscriptions: int
    seconds: float = 20.0
    matches_per_s: int = 200
    updates_per_s: int = 10_000
    additions_per_s: int = 1_000
    engine: str = "columnar"
    seed: int = 1
    processor_time: bool = False
    """Whether calls are timed by the processor time of their thread."""

    def calls_of_a_step(self, step: int) -> dict[str, int]:
        """How many calls of each operation there are in a step."""
        rates = (self.matches_per_s, self.updates_per_s, self.additions_per_s)
        return {
            operation: int((step + 1) * rate * STEP_S) - int(step * rate * STEP_S)
            for operation, rate in zip(OPERATIONS, rates, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Cause:
    """The calls that took longer than `LONG_MS` mostly for one reason."""

    name: str
    calls: int
    longest_ms: float


@dataclass(frozen=True, slots=True)
class Pauses:
    """The durations of the calls of one operation; ``histogram`` counts them between `EDGES_MS`."""

    mode: str
    engine: str
    subscriptions: int
    operation: str
    calls: int
    p50_us: float
    p99_us: float
    p999_us: float
    longest_ms: float
    histogram: list[int]
    causes: list[Cause]
    late_s: float


class _Timers:
    """Seconds that were spent on each cause since the last call, on one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._thread = threading.get_ident()
        self._inside: list[str] = []
        self._beside = 0
        self.seconds: dict[str, float] = {}
        self._collecting_since = 0.0

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Put timers around the steps in `CAUSES`, and take them away again."""
        with ExitStack() as undo:
            for owner, name, cause in CAUSES:
                original = getattr(owner, name)
                setattr(owner, name, self._timed(original, cause))
                undo.callback(setattr, owner, name, original)
            gc.callbacks.append(self._collecting)
            undo.callback(gc.callbacks.remove, self._collecting)
            yield

    def _timed(self, function: Callable[..., Any], cause: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() != self._thread:
                self._beside += 1
                try:
                    return function(*arguments, **named)
                finally:
                    self._beside -= 1
            start = self._clock()
            before = sum(self.seconds.values())
            try:
                return function(*arguments, **named)
            finally:
                inner = sum(self.seconds.values()) - before
                self._add(cause, self._clock() - start - inner)

        return timed

    def _collecting(self, phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting_since = self._clock()
        else:
            self._add(GARBAGE, self._clock() - self._collecting_since)

    def _add(self, cause: str, seconds: float) -> None:
        self.seconds[cause] = self.seconds.get(cause, 0.0) + seconds

    def main_cause(self, seconds: float) -> str:
        """What most of the time of a call was spent on."""
        known = max(self.seconds, key=self.seconds.__getitem__, default=ELSEWHERE)
        if self.seconds.get(known, 0.0) > seconds / 2:
            return known
        return BESIDE if self._beside else ELSEWHERE


class _Run:
    """A run of one case."""

    def __init__(self, case: PauseCase, mode: EvolveMode, engine: Engine) -> None:
        self._case = case
        self._engine = engine
        self._clock = time.thread_time if case.processor_time else perf_counter
        self._steps = round(case.seconds / STEP_S)
        totals = dict.fromkeys(OPERATIONS, 0)
        for step in range(self._steps):
            for operation, count in case.calls_of_a_step(step).items():
                totals[operation] += count
        rng = np.random.default_rng([case.seed, 2])  # 0 and 1 draw subscriptions and events
        events = mode.workload.events(max(1, totals["match"]), case.seed)
        self._events = iter(events.drop_columns([EVENT_TIME]).to_pylist())
        rows = rng.integers(0, case.subscriptions, totals["update"]).tolist()
        self._updates = zip(rows, mode.workload.windows(totals["update"], rng), strict=True)
        table = mode.workload.subscriptions(max(1, totals["add"]), case.seed + 1)
        self._additions = iter(table.select(["filter", "params"]).to_pylist())
        self._evolve = None if mode.evolve is None else parse_evolve(mode.evolve)
        self._added = 0
        self.milliseconds: dict[str, list[float]] = {each: [] for each in OPERATIONS}
        self.long: dict[str, list[tuple[str, float]]] = {each: [] for each in OPERATIONS}

    def go(self) -> float:
        """Make all calls; returns by how many seconds the last came late."""
        timers = _Timers(self._clock)
        late_s = 0.0
        with timers.installed():
            start = perf_counter()
            for step in range(self._steps):
                late_s = perf_counter() - start - step * STEP_S
                if late_s < 0:
                    time.sleep(-late_s)
                for operation, count in self._case.calls_of_a_step(step).items():
                    for _ in range(count):
                        self._time(operation, self._call(operation, step), timers)
        return max(0.0, late_s)

    def _call(self, operation: str, step: int) -> Callable[[], object]:
        at = SINCE + timedelta(seconds=step * STEP_S)
        match operation:
            case "match":
                return partial(self._engine.match, next(self._events), time=at)
            case "update":
                row, window = next(self._updates)
                return partial(self._engine.update, f"s{row}", window)
            case _:
                new = next(self._additions)
                self._added += 1
                return partial(
                    self._engine.subscribe, new["filter"], id=f"new{self._added}", since=at,
                    evolve=self._evolve, parameters=new["params"],
                )  # fmt: skip

    def _time(self, operation: str, call: Callable[[], object], timers: _Timers) -> None:
        timers.seconds.clear()
        start = self._clock()
        call()
        taken_ms = (self._clock() - start) * 1000
        self.milliseconds[operation].append(taken_ms)
        if taken_ms > LONG_MS:
            self.long[operation].append((timers.main_cause(taken_ms / 1000), taken_ms))


def measure(case: PauseCase, progress: Progress = silent) -> list[Pauses]:
    """Measure one case; returns a row for each operation."""
    (mode,) = [each for each in MODES if each.name == case.mode]
    progress(f"{case.subscriptions:,} subscriptions, {mode.name}: building")
    warm_up = ModeTrial.build(mode, WARM_UP_SUBSCRIPTIONS, case.engine, case.seed)
    warm_up.verify(WARM_UP_SUBSCRIPTIONS, case.seed)
    warm_up.update(WARM_UP_SUBSCRIPTIONS, case.seed)
    engine = ModeTrial.build(mode, case.subscriptions, case.engine, case.seed).engine
    run = _Run(case, mode, engine)
    gc.collect()
    progress(f"{case.subscriptions:,} subscriptions, {mode.name}: {case.seconds:g} s")
    late_s = run.go()
    return [_pauses(case, each, run, late_s) for each in OPERATIONS if run.milliseconds[each]]


def _pauses(case: PauseCase, operation: str, run: _Run, late_s: float) -> Pauses:
    taken_ms = np.array(run.milliseconds[operation])
    p50_us, p99_us, p999_us = np.percentile(taken_ms, [50, 99, 99.9]) * 1000
    longest: dict[str, list[float]] = {}
    for cause, each_ms in run.long[operation]:
        longest.setdefault(cause, []).append(each_ms)
    causes = [Cause(name, len(found), max(found)) for name, found in longest.items()]
    return Pauses(
        case.mode,
        case.engine,
        case.subscriptions,
        operation,
        len(taken_ms),
        float(p50_us),
        float(p99_us),
        float(p999_us),
        float(taken_ms.max()),
        np.bincount(np.digitize(taken_ms, EDGES_MS), minlength=len(EDGES_MS) + 1).tolist(),
        sorted(causes, key=lambda each: -each.longest_ms),
        late_s,
    )
