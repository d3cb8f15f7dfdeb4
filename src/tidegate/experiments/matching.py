"""How fast subscriptions are matched, updated and built, and what they take of memory.

Each case is measured in a new process, so that its memory is its own. It first uses a small engine,
so that no compilation is counted. Within a round the ways that are compared take turns: one thread,
several threads, the yardstick; a slow moment of the machine hits all of them. Before the rounds and
after them the engine's answers are compared with the yardstick's.

Everything from Arrow in to Arrow out is counted. For `moving` that includes an update for each
event, through the Python API: 1,000 of them, then a batch of 1,000 events, and so on.
"""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
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
from tidegate.experiments.progress import Progress
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
SINGLE_EVENTS_MAX = 20_000
UPDATES_MAX = 20_000
FIRST_CALLS = 20
"""The calls that are made to see how many there is time for."""
YARDSTICK_EVENTS_MAX = 1_000
VERIFIED_EVENTS = 16
BATCH_EVENTS = 1_000
"""The events of `moving` between which as many updates are made."""
WARM_UP_SUBSCRIPTIONS = 2_000
ROUND_S = 0.5
"""What a round takes about, if the number of events is left open."""
YARDSTICK_S = 0.1

SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
"""The numbers of subscriptions that a sweep measures."""
SLOWEST_PER_S = 5
"""A sweep leaves out sizes beyond the one where an engine falls below this many events/s."""


@dataclass(frozen=True, slots=True)
class MatchingCase:
    """What is to be measured. Without a number of events, as many as a round has time for."""

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
    """How long calls take, one after the other."""

    per_s: float
    p50_us: float
    p99_us: float


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process takes with the engine in it, and how much of it each subscription."""

    bytes_per_subscription: float
    resident_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class MatchingSpeed:
    """What was measured of a case.

    Events in a second are of one thread and the batch API: the median of the rounds, the slowest
    and the fastest of them. ``cpu_share`` is the part of that time in which the thread had a core:
    well below 1, the machine was busy. ``update_share`` is the part that went into updates.
    ``threads_ratio`` is how much faster several threads were, ``threads_cpu_ratio`` how much more
    processor time they took for the same work, ``yardstick_ratio`` how much faster the engine was
    than the yardstick. ``wrong_pairs`` must be 0.
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
    yardstick_per_s: float
    yardstick_ratio: float
    single: Latency
    update: Latency | None
    build_s: float
    memory: Memory
    verified_events: int
    wrong_pairs: int


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for: events in a second, or a share of those of another workload."""

    workload: str
    subscriptions: int
    events_per_s: float | None = None
    share: float = 1.0
    share_of: str = ""

    def events_per_s_given(self, speeds: Iterable[MatchingSpeed]) -> float | None:
        """The goal, where it depends on another workload given what that did at the same size."""
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


def measure(case: MatchingCase, progress: Progress = str) -> MatchingSpeed:
    """Measure a case in a process of its own. ``progress`` is told what is going on there."""
    Engine(matcher=case.engine)  # if there is none such, say so now
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-") as directory:
        path = Path(directory) / "subscriptions.arrow"
        progress(f"{case}: drawing the subscriptions")
        table = WORKLOADS[case.workload].subscriptions(case.subscriptions, case.seed)
        with pa.OSFile(str(path), "wb") as sink, ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        del table
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as process:
            return process.submit(_measure_here, case, path, progress).result()


def sweep(case: MatchingCase, progress: Progress = str) -> Iterator[MatchingSpeed]:
    """Measure a case at growing sizes, up to its own, as far as its engine can do it."""
    for size in SIZES:
        if size > case.subscriptions:
            return
        speed = measure(replace(case, subscriptions=size), progress)
        yield speed
        if speed.median_per_s < SLOWEST_PER_S:
            return


def _measure_here(case: MatchingCase, path: Path, progress: Progress) -> MatchingSpeed:
    """Measure a case in this process, with the subscriptions of a file."""
    _warm_up(case)
    before = _resident_bytes()
    progress(f"{case}: building")
    engine = Engine(matcher=case.engine)
    build_s = _build(engine, path)
    gc.collect()
    resident = _resident_bytes()
    memory = Memory(
        (resident - before) / case.subscriptions, resident / 1e6, _peak_resident_bytes() / 1e6
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
    yardstick_per_s = statistics.median(each.yardstick_per_s for each in rounds)
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
        yardstick_per_s=yardstick_per_s,
        yardstick_ratio=median_per_s / yardstick_per_s,
        single=single,
        update=update,
        build_s=build_s,
        memory=memory,
        verified_events=min(VERIFIED_EVENTS, trial.events.num_rows),
        wrong_pairs=wrong_pairs,
    )


def _warm_up(case: MatchingCase) -> None:
    """Have everything compiled or loaded that the case will use."""
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
    """Put the subscriptions of a file into the engine; the file is mapped, not read.

    One event is matched, because that is when an engine has to have its index ready; at the time
    when subscriptions begin, because where bounds that move are laid out depends on it.
    """
    with pa.memory_map(str(path)) as source:
        table = ipc.open_file(source).read_all()
        start = perf_counter()
        engine.subscribe_batch(table)
        engine.match({}, time=SINCE)
        return perf_counter() - start


def _resident_bytes() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGESIZE")


def _peak_resident_bytes() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


@dataclass(frozen=True, slots=True)
class _Round:
    alone_s: float
    alone: _Done
    together_s: float
    together: _Done
    yardstick_per_s: float


@dataclass(frozen=True, slots=True)
class _ThreadWork:
    """What a thread does: events to match, and before each batch of them updates to make."""

    batches: list[pa.Table]
    updates: list[list[tuple[str, int]]]


@dataclass(frozen=True, slots=True)
class _Done:
    matches: int
    update_s: float
    cpu_s: float


class _MatchingTrial:
    """An engine with the subscriptions of a case, and all that is tried with it."""

    def __init__(self, engine: Engine, case: MatchingCase) -> None:
        self.workload: Workload = WORKLOADS[case.workload]
        self._engine = engine
        self._threads = case.threads
        self._count = case.subscriptions
        self._ids = subscription_ids(case.subscriptions)
        self._rng = np.random.default_rng([case.seed, 2])
        conditions = self.workload.conditions(case.subscriptions, case.seed)
        self._yardstick = NumpyBaseline(case.subscriptions, conditions)
        self.events = self.workload.events(case.events or EVENTS_MAX, case.seed)
        if case.events is None:
            self.events = self.workload.events(self._events_of_a_round(), case.seed)
        self._points = list(self._yardstick.points(self.events.slice(0, YARDSTICK_EVENTS_MAX)))

    def _events_of_a_round(self) -> int:
        """How many events a round has time for, found by trying more and more.

        Each try is made twice: the first may find work that was put off.
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
            count = math.ceil(count / whole) * whole  # unless far too slow, no batch is cut short
        return count

    # -- batches ------------------------------------------------------------------------------

    def rounds(self, count: int) -> list[_Round]:
        """Match all events by one thread, by several, and some of them by the yardstick."""
        if self._threads == 1:
            return [self._round(None) for _ in range(count)]
        with ThreadPoolExecutor(self._threads) as pool:
            self._pass(self.events, pool)  # threads that are new have no memory of their own yet
            return [self._round(pool) for _ in range(count)]

    def _round(self, pool: ThreadPoolExecutor | None) -> _Round:
        alone_s, alone = self._pass(self.events)
        together_s, together = alone_s, alone
        if pool is not None:
            together_s, together = self._pass(self.events, pool)
        return _Round(alone_s, alone, together_s, together, self._yardstick_per_s())

    def _pass(
        self, events: pa.Table, pool: ThreadPoolExecutor | None = None
    ) -> tuple[float, _Done]:
        """Match events, by this thread or in parts by those of a pool: the seconds, what came."""
        threads = 1 if pool is None else self._threads
        size = math.ceil(events.num_rows / threads)
        parts = [events.slice(size * each, size) for each in range(threads)]
        work = [self._work(part, each, threads) for each, part in enumerate(parts)]
        if pool is None:
            start = perf_counter()
            done = self._do(work[0])
            return perf_counter() - start, done
        ready = threading.Barrier(threads + 1)

        def do_when_all_are_ready(part: _ThreadWork) -> _Done:
            ready.wait()
            return self._do(part)

        futures = [pool.submit(do_when_all_are_ready, each) for each in work]
        ready.wait()
        start = perf_counter()
        results = [future.result() for future in futures]
        seconds = perf_counter() - start
        return seconds, _Done(
            sum(each.matches for each in results),
            sum(each.update_s for each in results),
            sum(each.cpu_s for each in results),
        )

    def _work(self, events: pa.Table, thread: int, threads: int) -> _ThreadWork:
        """The work of a thread. Each updates other subscriptions, so that it is known what of
        several updates came last.
        """
        if not self.workload.is_updated:
            return _ThreadWork([events], [[]])
        batches = [
            events.slice(begin, BATCH_EVENTS) for begin in range(0, events.num_rows, BATCH_EVENTS)
        ]
        rows = np.arange(thread, self._count, threads)
        return _ThreadWork(batches, [self._updates(each.num_rows, rows) for each in batches])

    def _updates(self, count: int, rows: I64) -> list[tuple[str, int]]:
        chosen, least = self.workload.updates(count, rows, self._rng)
        self._yardstick.update(chosen, least)
        ids = [self._ids[row] for row in chosen.tolist()]
        return list(zip(ids, least.tolist(), strict=True))

    def _do(self, work: _ThreadWork) -> _Done:
        engine, update_s, matches = self._engine, 0.0, 0
        cpu_start = thread_time()
        for batch, updates in zip(work.batches, work.updates, strict=True):
            if updates:
                start = perf_counter()
                for id, least in updates:
                    engine.update(id, least=least)
                update_s += perf_counter() - start
            matches += self._match(batch).num_rows
        return _Done(matches, update_s, thread_time() - cpu_start)

    def _match(self, events: pa.Table) -> pa.Table:
        event_time = EVENT_TIME if self.workload.is_timed else None
        return self._engine.match_batch(events, event_time=event_time)

    def _yardstick_per_s(self) -> float:
        count, start, seconds = 0, perf_counter(), 0.0
        while count < len(self._points) and seconds < YARDSTICK_S:
            self._yardstick.match(self._points[count])
            count += 1
            seconds = perf_counter() - start
        return count / seconds

    # -- one at a time ------------------------------------------------------------------------

    def single(self) -> Latency:
        """Match events one by one, as mappings."""
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
        """Update subscriptions one by one."""
        first = latency_of(self._update_calls(FIRST_CALLS))
        count = min(UPDATES_MAX, max(FIRST_CALLS, round(first.per_s * ROUND_S)))
        return latency_of(self._update_calls(count))

    def _update_calls(self, count: int) -> list[Callable[[], object]]:
        updates = self._updates(count, np.arange(self._count))
        return [partial(self._engine.update, id, least=least) for id, least in updates]

    # -- answers ------------------------------------------------------------------------------

    def wrong_pairs(self) -> int:
        """How many pairs the engine has missed or made up, for the first few events."""
        pairs = self._match(self.events.slice(0, VERIFIED_EVENTS))
        found = set(zip(pairs["event"].to_pylist(), pairs["subscription"].to_pylist(), strict=True))
        right = {
            (index, self._ids[row])
            for index, point in enumerate(self._points[:VERIFIED_EVENTS])
            for row in self._yardstick.match(point).tolist()
        }
        return len(found ^ right)


def latency_of(calls: Sequence[Callable[[], object]]) -> Latency:
    """How long some calls take that are made one after the other."""
    ends = [perf_counter()]
    for call in calls:
        call()
        ends.append(perf_counter())
    p50_us, p99_us = np.percentile(np.diff(ends), [50, 99]) * 1e6
    return Latency(len(calls) / (ends[-1] - ends[0]), float(p50_us), float(p99_us))
