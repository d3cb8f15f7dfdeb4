"""The benchmark of evolving filters: what it compares, and that it counts wrong answers."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.experiments import evolving
from tidegate.experiments.evolving import MODES, SECONDS, EvolveMode, ModeTrial, measure
from tidegate.experiments.numpy_baseline import BaselineEvent, NumpyBaseline
from tidegate.experiments.workloads import EVOLVING, FROZEN_AT_S, STATIC, WINDOW, Workload

LAZY = MODES[1]
COUNT = 400


def mode(name: str) -> EvolveMode:
    (found,) = [each for each in MODES if each.name == name]
    return found


@pytest.mark.slow  # builds an engine for each mode, twice
@pytest.mark.parametrize("engine", ["columnar", "naive"])
def test_all_modes_are_measured_and_right(engine: str) -> None:
    lines: list[str] = []
    speeds = measure(60, 2, engine=engine, events=300, progress=lines.append)
    assert [each.mode for each in speeds] == ["static", "lazy", "periodic", "cached"]
    assert [each.wrong_pairs for each in speeds] == [0] * 4
    for each in speeds:
        assert (each.engine, each.subscriptions, each.events) == (engine, 60, 300)
        assert 0 < each.slowest_per_s <= each.median_per_s <= each.fastest_per_s
        assert 0 < each.update.p50_us <= each.update.p99_us
        assert each.build_s > 0
    assert speeds[0].times_static == 1.0
    assert "60 subscriptions: round 2 of 2" in lines


@pytest.mark.slow
def test_without_a_number_of_events_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolving, "EVENTS_MAX", 500)
    assert 100 <= measure(10, 1)[0].events <= 500


@pytest.mark.slow
def test_wrong_answers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a baseline that evaluates all filters lazily, the other modes are wrong."""
    monkeypatch.setattr(EvolveMode, "evaluation_times", lambda _, times: times)
    wrong_pairs = {each.mode: each.wrong_pairs for each in measure(COUNT, 1, events=100)}
    assert wrong_pairs["static"] == wrong_pairs["lazy"] == 0
    assert wrong_pairs["periodic"] > 0
    assert wrong_pairs["cached"] > 0


def test_when_modes_evaluate() -> None:
    times = [0.25, 0.75, 1.5, 1.75, 3.0]
    assert SECONDS == 1.0
    assert mode("static").evaluation_times(times) == times
    assert mode("lazy").evaluation_times(times) == times
    assert mode("periodic").evaluation_times(times) == [0.0, 0.0, 1.0, 1.0, 3.0]
    assert mode("cached").evaluation_times(times) == [0.25, 0.25, 1.5, 1.5, 3.0]


def test_static_filters_are_the_evolving_ones_after_some_seconds() -> None:
    evolving_filters = NumpyBaseline(COUNT, EVOLVING.conditions(COUNT))
    static_filters = NumpyBaseline(COUNT, STATIC.conditions(COUNT))
    matches = 0
    for event in static_filters.baseline_events(STATIC.events(200)):
        at_that_time = BaselineEvent(event.values, FROZEN_AT_S)
        found = static_filters.match(event).tolist()
        assert found == evolving_filters.match(at_that_time).tolist()
        matches += len(found)
    assert matches > 0


@pytest.mark.parametrize("workload", [STATIC, EVOLVING])
def test_every_subscription_has_a_window(workload: Workload) -> None:
    rows: list[dict[str, Any]] = workload.subscriptions(COUNT).to_pylist()
    assert all(row["params"].keys() == set(WINDOW) for row in rows)
    evolves = [" t " in row["filter"] or "(t " in row["filter"] for row in rows]
    assert evolves == [workload is EVOLVING] * COUNT


def test_updates_change_the_window() -> None:
    trial = ModeTrial.build(LAZY, 20, "columnar", 1)
    before = {id: trial.engine.get(id) for id in ("s0", "s7")}
    trial.update(20, 1)
    for id, old in before.items():
        assert trial.engine.get(id) != old
