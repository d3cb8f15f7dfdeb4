"""The measurement of filters that evolve: what it compares, and that it notices wrong answers."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.experiments import evolving
from tidegate.experiments.evolving import SECONDS, WAYS, EvolveMethod, measure
from tidegate.experiments.numpy_baseline import BaselineEvent, NumpyBaseline
from tidegate.experiments.workloads import EVOLVING, HELD_AT_S, STILL, WINDOW, Workload

LAZY = WAYS[1]
COUNT = 400


def way(name: str) -> EvolveMethod:
    (found,) = [each for each in WAYS if each.name == name]
    return found


@pytest.mark.parametrize("engine", ["columnar", "naive"])
def test_all_ways_are_measured_and_right(engine: str) -> None:
    told: list[str] = []
    speeds = measure(60, 2, engine=engine, events=300, progress=told.append)
    assert [each.way for each in speeds] == ["static", "lazy", "periodic", "cached"]
    assert [each.wrong_pairs for each in speeds] == [0] * 4
    for each in speeds:
        assert (each.engine, each.subscriptions, each.events) == (engine, 60, 300)
        assert 0 < each.slowest_per_s <= each.median_per_s <= each.fastest_per_s
        assert 0 < each.update.p50_us <= each.update.p99_us
        assert each.build_s > 0
    assert speeds[0].times_static == 1.0
    assert "60 subscriptions: round 2 of 2" in told


def test_without_a_number_of_events_there_are_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evolving, "EVENTS_MAX", 500)
    assert 100 <= measure(10, 1)[0].events <= 500


def test_wrong_answers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if everything were judged lazily."""
    monkeypatch.setattr(EvolveMethod, "judged_at", lambda _, times: times)
    by_way = {each.way: each.wrong_pairs for each in measure(COUNT, 1, events=100)}
    assert by_way["static"] == by_way["lazy"] == 0
    assert by_way["periodic"] > 0
    assert by_way["cached"] > 0


def test_when_ways_evaluate() -> None:
    times = [0.25, 0.75, 1.5, 1.75, 3.0]
    assert SECONDS == 1.0
    assert way("static").judged_at(times) == times
    assert way("lazy").judged_at(times) == times
    assert way("periodic").judged_at(times) == [0.0, 0.0, 1.0, 1.0, 3.0]
    assert way("cached").judged_at(times) == [0.25, 0.25, 1.5, 1.5, 3.0]


def test_what_is_still_stands_where_the_others_are_after_some_seconds() -> None:
    evolving_ones = NumpyBaseline(COUNT, EVOLVING.conditions(COUNT))
    still_ones = NumpyBaseline(COUNT, STILL.conditions(COUNT))
    some = 0
    for point in still_ones.points(STILL.events(200)):
        at_that_time = BaselineEvent(point.values, HELD_AT_S)
        found = still_ones.match(point).tolist()
        assert found == evolving_ones.match(at_that_time).tolist()
        some += len(found)
    assert some > 0


@pytest.mark.parametrize("workload", [STILL, EVOLVING])
def test_every_subscription_has_a_window(workload: Workload) -> None:
    rows: list[dict[str, Any]] = workload.subscriptions(COUNT).to_pylist()
    assert all(row["params"].keys() == set(WINDOW) for row in rows)
    moves = [" t " in row["filter"] or "(t " in row["filter"] for row in rows]
    assert moves == [workload is EVOLVING] * COUNT


def test_updates_move_the_window() -> None:
    running = evolving._Running.built(LAZY, 20, "columnar", 1)
    before = {each: running.engine.get(each) for each in ("s0", "s7")}
    running.update(20, 1)
    for id, old in before.items():
        assert running.engine.get(id) != old
