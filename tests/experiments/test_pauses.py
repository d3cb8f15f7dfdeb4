"""The benchmark of pauses: what it calls, and how it names the causes of long calls."""

from __future__ import annotations

import gc
import time
from time import perf_counter

import pytest

from tidegate.experiments import pauses
from tidegate.experiments.pauses import CAUSES, OPERATIONS, PauseCase, measure

CASE = PauseCase("lazy", 60, seconds=0.05)


def test_calls_are_spread_over_the_steps() -> None:
    totals = dict.fromkeys(OPERATIONS, 0)
    for step in range(1000):
        for operation, count in CASE.calls_of_a_step(step).items():
            assert 0 <= count <= 10
            totals[operation] += count
    assert totals == {"match": 200, "update": 10_000, "add": 1000}


@pytest.mark.slow  # builds engines
@pytest.mark.parametrize("mode", ["static", "cached"])
def test_each_operation_has_a_row(mode: str) -> None:
    lines: list[str] = []
    rows = measure(PauseCase(mode, 60, seconds=0.05), lines.append)
    assert [(each.operation, each.calls) for each in rows] == [
        *(("match", 10), ("update", 500), ("add", 50))
    ]
    for each in rows:
        assert (each.mode, each.engine, each.subscriptions) == (mode, "columnar", 60)
        assert 0 < each.p50_us <= each.p99_us <= each.p999_us <= 1000 * each.longest_ms
        assert sum(each.histogram) == each.calls
        long = sum(each.histogram[pauses.EDGES_MS.index(pauses.LONG_MS) + 1 :])
        assert sum(cause.calls for cause in each.causes) == long
    assert lines == [f"60 subscriptions, {mode}: building", f"60 subscriptions, {mode}: 0.05 s"]


def test_timers_are_taken_away_again() -> None:
    before = [getattr(owner, name) for owner, name, _ in CAUSES]
    callbacks = list(gc.callbacks)
    with pauses._Timers(perf_counter).installed():
        assert gc.callbacks != callbacks
    assert [getattr(owner, name) for owner, name, _ in CAUSES] == before
    assert gc.callbacks == callbacks


def test_the_cause_of_a_call_is_what_took_more_than_half_of_it() -> None:
    timers = pauses._Timers(perf_counter)
    with timers.installed():
        assert timers.main_cause(1.0) == pauses.ELSEWHERE
        timers.seconds.update({"layout": 0.6, "flush": 0.1})
        assert timers.main_cause(1.0) == "layout"
        assert timers.main_cause(2.0) == pauses.ELSEWHERE
        gc.collect()
        assert timers.seconds[pauses.GARBAGE] > 0


@pytest.mark.slow  # builds an engine
def test_calls_may_be_timed_by_the_processor() -> None:
    before = time.process_time()
    rows = measure(PauseCase("lazy", 60, seconds=0.02, processor_time=True))
    spent_ms = (time.process_time() - before) * 1000
    assert sum(each.calls * each.p50_us / 2000 for each in rows) <= spent_ms
