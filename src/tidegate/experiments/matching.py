"""Benchmark of matching: events per second, updates, build time and memory.

Each case is measured in a process of its own, because memory that an earlier case has freed stays
with the process and would be counted; the subscriptions are drawn in the parent process and passed
in a file, so that the memory for drawing them is not counted either. A small engine is used first,
so that no compilation is counted. Within a round, one thread, several threads and the baseline take
turns, so that a slow moment of the machine hits all of them. Before and after the rounds the
answers of the engine are compared with those of the baseline.

Time is counted from Arrow input to Arrow output. For `moving` that includes an update for each
event, through the Python API: 1,000 of them, then a batch of 1,000 events, and so on.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import statistics
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc

from tidegate.experiments.numpy_baseline import NumpyBaseline
from tidegate.experiments.process_memory import peak_resident_bytes, resident_bytes
from tidegate.experiments.progress import Progress, silent
from tidegate.experiments.workloads import (
    EVENT_TIME,
    I64,
    SINCE,
    WORKLOADS,
    Workload,
    subscription_ids,
)
from tidegate.matching.engine import Engine

EVENTS_MIN = 4
EVENTS_MAX = 100_000
"""Limits of the number of events in a round."""
SINGLE_EVENTS_MAX = 20_000
UPDATES_MAX = 20_000
FIRST_CALLS = 20
"""Calls that are timed first, to choose how many fit into a round."""
BASELINE_EVENTS_MAX = 1_000
VERIFIED_EVENTS = 16
"""Number of events whose answers are compared with the baseline; it is slow."""
BATCH_EVENTS = 1_000
"""Events in a batch of `moving`; as many updates are made before each batch."""
WARM_UP_SUBSCRIPTIONS = 2_000
"""Size of the engine that is used first, so that kernels are compiled and loaded."""
ROUND_S = 0.5
"""Target duration of a round, if the number of events is not given."""
BASELINE_S = 0.1
"""Time for the baseline in a round."""

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Numbers of subscriptions in a sweep."""
SLOWEST_PER_S = 5
"""A sweep ends at the first size at which the engine is slower than this."""


@dataclass(frozen=True, slots=True)
class MatchingCase:
    """A workload, its size and an engine.

    ``events`` is the number in a round; None: as many as fit into a round.
    """

    workload: str
    subscriptions: int
    engine: str = "columnar"
    events: int | None = None
    rounds: int = 5
    threads: int = 2
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.workload}, {self.subscriptions:,} subscriptions, {self.engine}"


@dataclass(frozen=True, slots=True)
class Latency:
    """Sequential calls: how many per second, and the percentiles of their duration."""

    per_s: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of the process, and the share of each subscription."""

    bytes_per_subscription: float
    resident_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class MatchingSpeed:
    """Figures of a case.

    ``median_per_s`` and its extremes are events per second of one thread with the batch API, over
    the rounds. ``cpu_share`` is CPU time over wall time of that thread: if it is well below 1, the
    machine was busy. ``update_share`` is the share of time in updates. ``threads_ratio`` is the
    speed-up of several threads, ``threads_cpu_ratio`` their CPU time over that of one thread for
    the same work, ``baseline_ratio`` the speed-up against the baseline. ``wrong_pairs`` must be 0.
    """

    workload: str
    engine: str
    subscriptions: int
    events: int
    matches_per_event: float
    median_per_s: float
    slowest_per_s: float
    fastest_per_s: float
    cpu_share: float
    update_share: float
    threads: int
    threads_ratio: float
    threads_cpu_ratio: float
    baseline_per_s: float
    baseline_ratio: float
    single: Latency
    update: Latency | None
    build_s: float
    memory: Memory
    verified_events: int
    wrong_pairs: int


@dataclass(frozen=True, slots=True)
class Goal:
    """A speed goal: events per second, or a share of the events per second of another workload."""

    workload: str
    subscriptions: int
    events_per_s: float | None = None
    share: float = 1.0
    share_of: str = ""

    def events_per_s_given(self, speeds: Iterable[MatchingSpeed]) -> float | None:
        """The goal in events per second; None if it depends on a workload that was not measured."""
        if self.events_per_s is not None:
            return self.events_per_s
        for speed in speeds:
            if (speed.workload, speed.subscriptions) == (self.share_of, self.subscriptions):
                return self.share * speed.median_per_s
        return None


GOALS = (
    Goal("market", 10_000, 450_000),
    Goal("market", 100_000, 80_000),
    Goal("market", 1_000_000, 8_000),
    Goal("ranges", 100_000, 60_000),
    Goal("equalities", 100_000, 200_000),
    Goal("equalities", 1_000_000, 50_000),
    Goal("wide", 100_000, 50_000),
    Goal("moving", 100_000, share=2 / 3, share_of="market"),
)


def measure(case: MatchingCase, progress: Progress = silent) -> MatchingSpeed:
    """Measure a case in a process of its own."""
    Engine(matcher=case.engine)  # refuses an unknown name before the work
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
        path = Path(directory) / "subscriptions.arrow"
        progress(f"{case}: drawing the subscriptions")
        table = WORKLOADS[case.workload].subscriptions(case.subscriptions, case.seed)
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        del table
        # Not "fork": a forked process would begin with the memory of this one.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as process:
            return process.submit(_measure_here, case, path, progress).result()


def sweep(case: MatchingCase, progress: Progress = silent) -> Iterator[MatchingSpeed]:
    """Measure a case at growing sizes up to its own, until the engine gets too slow."""
    for size in SIZES:
        if size > case.subscriptions:
            return
        speed = measure(replace(case, subscriptions=size), progress)
        yield speed
        if speed.median_per_s < SLOWEST_PER_S:
            return


def _measure_here(case: MatchingCase, path: Path, progress: Progress) -> MatchingSpeed:
    """Measure a case in this process; ``path`` is the file of its subscriptions."""
    _warm_up(case)
    before = resident_bytes()
    progress(f"{case}: building")
    engine = Engine(matcher=case.engine)
    build_s = _build(engine, path)
    gc.collect()
    resident = resident_bytes()
    memory = Memory(
        (resident - before) / case.subscriptions, resident / 1e6, peak_resident_bytes() / 1e6
    )
    progress(f"{case}: matching")
    trial = _MatchingTrial(engine, case)
    wrong_pairs = trial.wrong_pairs()
    rounds = trial.rounds(case.rounds)
    single = trial.single()
    update = trial.update() if trial.workload.is_updated else None
    wrong_pairs += trial.wrong_pairs()
    seconds = [each.alone_s for each in rounds]
    median_per_s = trial.events.num_rows / statistics.median(seconds)
    baseline_per_s = statistics.median(each.baseline_per_s for each in rounds)
    return MatchingSpeed(
        case.workload,
        case.engine,
        case.subscriptions,
        trial.events.num_rows,
        matches_per_event=rounds[-1].alone.matches / trial.events.num_rows,
        median_per_s=median_per_s,
        slowest_per_s=trial.events.num_rows / max(seconds),
        fastest_per_s=trial.events.num_rows / min(seconds),
        cpu_share=sum(each.alone.cpu_s for each in rounds) / sum(seconds),
        update_share=sum(each.alone.update_s for each in rounds) / sum(seconds),
        threads=case.threads,
        threads_ratio=statistics.median(each.alone_s / each.together_s for each in rounds),
        threads_cpu_ratio=statistics.median(
            each.together.cpu_s / each.alone.cpu_s for each in rounds
        ),
        baseline_per_s=baseline_per_s,
        baseline_ratio=median_per_s / baseline_per_s,
        single=single,
        update=update,
        build_s=build_s,
        memory=memory,
        verified_events=min(VERIFIED_EVENTS, trial.events.num_rows),
        wrong_pairs=wrong_pairs,
    )


def _warm_up(case: MatchingCase) -> None:
    """Compile and load everything that the case uses."""
    workload = WORKLOADS[case.workload]
    engine = Engine(matcher=case.engine)
    engine.subscribe_batch(workload.subscriptions(WARM_UP_SUBSCRIPTIONS, case.seed))
    small = replace(case, subscriptions=WARM_UP_SUBSCRIPTIONS, events=VERIFIED_EVENTS)
    trial = _MatchingTrial(engine, small)
    trial.rounds(1)
    trial.single()
    if workload.is_updated:
        trial.update()


def _build(engine: Engine, path: Path) -> float:
    """Subscribe everything in a file, which is memory-mapped; returns the seconds it took.

    One event is matched too, because engines build their index at the first match. Its time is that
    of the subscriptions, because the layout of moving bounds depends on it.
    """
    with pa.memory_map(str(path)) as source:
        table = ipc.open_file(source).read_all()
        start = perf_counter()
        engine.subscribe_batch(table)
        engine.match({}, time=SINCE)
        return perf_counter() - start


@dataclass(frozen=True, slots=True)
class _Round:
    """Results of a round: one thread alone, several threads together, and the baseline."""

    alone_s: float
    alone: _PassResult
    together_s: float
    together: _PassResult
    baseline_per_s: float


@dataclass(frozen=True, slots=True)
class _ThreadWork:
    """Batches of events for one thread, and the updates to make before each batch."""

    batches: list[pa.Table]
    updates: list[list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _PassResult:
    """Results of a pass over the events: sums over all threads."""

    matches: int
    update_s: float
    cpu_s: float


class _MatchingTrial:
    """An engine with the subscriptions of a case, its events, and the baseline."""

    def __init__(self, engine: Engine, case: MatchingCase) -> None:
        self.workload: Workload = WORKLOADS[case.workload]
        self._engine = engine
        self._threads = case.threads
        self._count = case.subscriptions
        self._ids = subscription_ids(case.subscriptions)
        self._rng = np.random.default_rng([case.seed, 2])  # 0, 1: subscriptions and events
        conditions = self.workload.conditions(case.subscriptions, case.seed)
        self._baseline = NumpyBaseline(case.subscriptions, conditions)
        self.events = self.workload.events(case.events or EVENTS_MAX, case.seed)
        if case.events is None:
            self.events = self.workload.events(self._events_of_a_round(), case.seed)
        self._baseline_events = list(
            self._baseline.baseline_events(self.events.slice(0, BASELINE_EVENTS_MAX))
        )

    def _events_of_a_round(self) -> int:
        """The number of events that fit into a round, found by growing trials.

        Each trial is run twice, because the first may do work that the engine had deferred.
        """
        count = 1
        while True:
            few = self.events.slice(0, count)
            seconds = min(self._pass(few)[0] for _ in range(2))
            if seconds > ROUND_S / 10 or count >= EVENTS_MAX:
                break
            count *= 4
        count = min(EVENTS_MAX, max(EVENTS_MIN, round(count * ROUND_S / seconds)))
        whole = BATCH_EVENTS * self._threads
        if self.workload.is_updated and count > whole / 10:
            count = math.ceil(count / whole) * whole  # whole batches, unless far too slow
        return count

    # -- batches ------------------------------------------------------------------------------

    def rounds(self, count: int) -> list[_Round]:
        """In each round: all events on one thread, on several threads, and some on the baseline."""
        if self._threads == 1:
            return [self._round(None) for _ in range(count)]
        with ThreadPoolExecutor(self._threads) as pool:
            self._pass(self.events, pool)  # new threads have yet to allocate their buffers
            return [self._round(pool) for _ in range(count)]

    def _round(self, pool: ThreadPoolExecutor | None) -> _Round:
        alone_s, alone = self._pass(self.events)
        together_s, together = alone_s, alone
        if pool is not None:
            together_s, together = self._pass(self.events, pool)
        return _Round(alone_s, alone, together_s, together, self._baseline_per_s())

    def _pass(
        self, events: pa.Table, pool: ThreadPoolExecutor | None = None
    ) -> tuple[float, _PassResult]:
        """Match events on this thread or spread over a pool; returns the seconds and the result."""
        threads = 1 if pool is None else self._threads
        size = math.ceil(events.num_rows / threads)
        chunks = [events.slice(size * thread, size) for thread in range(threads)]
        work = [self._thread_work(chunk, thread, threads) for thread, chunk in enumerate(chunks)]
        if pool is None:
            start = perf_counter()
            result = self._run(work[0])
            return perf_counter() - start, result
        # The barrier keeps the start of threads out of the measured time.
        ready = threading.Barrier(threads + 1)

        def run_when_all_are_ready(own_work: _ThreadWork) -> _PassResult:
            ready.wait()
            return self._run(own_work)

        futures = [pool.submit(run_when_all_are_ready, own_work) for own_work in work]
        ready.wait()
        start = perf_counter()
        results = [future.result() for future in futures]
        seconds = perf_counter() - start
        return seconds, _PassResult(
            sum(each.matches for each in results),
            sum(each.update_s for each in results),
            sum(each.cpu_s for each in results),
        )

    def _thread_work(self, events: pa.Table, thread: int, threads: int) -> _ThreadWork:
        """The work of one thread.

        Threads update disjoint subscriptions, so that the last update of each is known, which the
        baseline needs for the verification afterwards.
        """
        if not self.workload.is_updated:
            return _ThreadWork([events], [[]])
        batches = [
            events.slice(begin, BATCH_EVENTS) for begin in range(0, events.num_rows, BATCH_EVENTS)
        ]
        rows = np.arange(thread, self._count, threads)
        return _ThreadWork(batches, [self._updates(each.num_rows, rows) for each in batches])

    def _updates(self, count: int, rows: I64) -> list[tuple[str, int]]:
        """Random updates of the given subscriptions, as (id, new value); the baseline is updated
        at once."""
        chosen, least = self.workload.updates(count, rows, self._rng)
        self._baseline.update(chosen, least)
        ids = [self._ids[row] for row in chosen.tolist()]
        return list(zip(ids, least.tolist(), strict=True))

    def _run(self, work: _ThreadWork) -> _PassResult:
        engine, update_s, matches = self._engine, 0.0, 0
        cpu_start = thread_time()
        for batch, updates in zip(work.batches, work.updates, strict=True):
            if updates:
                start = perf_counter()
                for id, least in updates:
                    engine.update(id, least=least)
                update_s += perf_counter() - start
            matches += self._match(batch).num_rows
        return _PassResult(matches, update_s, thread_time() - cpu_start)

    def _match(self, events: pa.Table) -> pa.Table:
        event_time = EVENT_TIME if self.workload.is_timed else None
        return self._engine.match_batch(events, event_time=event_time)

    def _baseline_per_s(self) -> float:
        count, start, seconds = 0, perf_counter(), 0.0
        while count < len(self._baseline_events) and seconds < BASELINE_S:
            self._baseline.match(self._baseline_events[count])
            count += 1
            seconds = perf_counter() - start
        return count / seconds

    # -- one at a time ------------------------------------------------------------------------

    def single(self) -> Latency:
        """Match events one by one, given as mappings, and time each call."""
        engine = self._engine
        rows = self.events.slice(0, SINGLE_EVENTS_MAX).to_pylist()
        if self.workload.is_timed:
            timed = [(row, row.pop(EVENT_TIME)) for row in rows]
            calls = [partial(engine.match, row, time=time) for row, time in timed]
        else:
            calls = [partial(engine.match, row) for row in rows]
        first = latency_of(calls[:FIRST_CALLS])
        return latency_of(calls[: max(FIRST_CALLS, round(first.per_s * ROUND_S))])

    def update(self) -> Latency:
        """Update subscriptions one by one, and time each call."""
        first = latency_of(self._update_calls(FIRST_CALLS))
        count = min(UPDATES_MAX, max(FIRST_CALLS, round(first.per_s * ROUND_S)))
        return latency_of(self._update_calls(count))

    def _update_calls(self, count: int) -> list[Callable[[], object]]:
        updates = self._updates(count, np.arange(self._count))
        return [partial(self._engine.update, id, least=least) for id, least in updates]

    # -- answers ------------------------------------------------------------------------------

    def wrong_pairs(self) -> int:
        """The number of pairs of the first events that only the engine or only the baseline has."""
        pairs = self._match(self.events.slice(0, VERIFIED_EVENTS))
        found = set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))
        expected = {
            (index, self._ids[row])
            for index, event in enumerate(self._baseline_events[:VERIFIED_EVENTS])
            for row in self._baseline.match(event).tolist()
        }
        return len(found ^ expected)


def latency_of(calls: Sequence[Callable[[], object]]) -> Latency:
    """Make calls one after the other, and time each."""
    # One clock reading between two calls: the end of a call is the start of the next.
    ends = [perf_counter()]
    for call in calls:
        call()
        ends.append(perf_counter())
    p50_us, p99_us = np.percentile(np.diff(ends), [50, 99]) * 1e6
    return Latency(len(calls) / (ends[-1] - ends[0]), float(p50_us), float(p99_us))
