from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.cli.bench.command import WORKLOADS as NAMES
from tidegate.errors import TidegateError
from tidegate.experiments import matching
from tidegate.experiments.matching import (
    GOALS,
    Goal,
    Latency,
    MatchingCase,
    MatchingSpeed,
    Memory,
    measure,
)
from tidegate.experiments.progress import Progress
from tidegate.experiments.workloads import WORKLOADS

SPEED = MatchingSpeed(
    workload="market",
    engine="columnar",
    subscriptions=1000,
    events=100,
    matches_per_event=1.0,
    median_per_s=900.0,
    slowest_per_s=800.0,
    fastest_per_s=1000.0,
    cpu_share=0.99,
    update_share=0.0,
    threads=2,
    threads_ratio=1.8,
    threads_cpu_ratio=1.1,
    baseline_per_s=100.0,
    baseline_ratio=9.0,
    single=Latency(500.0, 1500.0, 3000.0),
    update=None,
    build_s=0.1,
    memory=Memory(200.0, 100.0, 120.0),
    verified_events=16,
    wrong_pairs=0,
)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "matching", *arguments])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[MatchingCase]:
    """Replaces the measurement by SPEED; returns the cases that a command measures."""
    cases: list[MatchingCase] = []

    def pretend(case: MatchingCase, progress: Progress = str) -> MatchingSpeed:
        progress(f"{case}")
        cases.append(case)
        return replace(
            SPEED,
            workload=case.workload,
            engine=case.engine,
            subscriptions=case.subscriptions,
            update=Latency(1.0, 3.0, 9.0) if case.workload == "moving" else None,
        )

    monkeypatch.setattr(matching, "measure", pretend)
    return cases


@pytest.mark.slow  # starts a process
def test_a_case_is_measured() -> None:
    speed = measure(MatchingCase("moving", 200, events=64, rounds=2))
    assert (speed.workload, speed.engine) == ("moving", "columnar")
    assert (speed.subscriptions, speed.events) == (200, 64)
    assert 0 < speed.slowest_per_s <= speed.median_per_s <= speed.fastest_per_s
    assert min(speed.threads_ratio, speed.threads_cpu_ratio) > 0
    assert speed.baseline_ratio == pytest.approx(speed.median_per_s / speed.baseline_per_s)
    assert 0 < speed.cpu_share < 1.1
    assert 0 < speed.update_share < 1
    assert speed.update is not None
    for latency in (speed.single, speed.update):
        assert 0 < latency.p50_us <= latency.p99_us
    assert 0 < speed.memory.resident_mb <= speed.memory.peak_mb
    assert (speed.verified_events, speed.wrong_pairs) == (16, 0)


@pytest.mark.slow
def test_the_command_measures() -> None:
    result = run(
        *("--workload", "equalities", "--subscriptions", "50", "--engine", "naive"),
        *("--rounds", "1", "--events", "20", "--threads", "1", "--json"),
    )
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)
    assert (row["workload"], row["engine"], row["update"]) == ("equalities", "naive", None)
    assert row["threads_ratio"] == 1.0


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(TidegateError, match="fast"):
        measure(MatchingCase("market", 10, engine="fast"))


def test_without_a_workload_all_are_measured(measured: list[MatchingCase]) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert [case.workload for case in measured] == list(WORKLOADS) == list(NAMES)
    assert {case.subscriptions for case in measured} == {10_000}
    assert "900 events/s   (800, 1,000), 1.0 matches an event" in result.stdout
    assert "p50 3.0 µs, p99 9.0 µs" in result.stdout
    assert "market, 10,000 subscriptions, columnar" in result.stderr


def test_what_has_goals_is_compared_with_them(measured: list[MatchingCase]) -> None:
    result = run("--all")
    assert result.exit_code == 0, result.output
    assert len(measured) == len(GOALS) == len(result.stdout.splitlines()) - 1
    rows = [json.loads(line) for line in run("--all", "--json").stdout.splitlines()]
    assert rows[0]["goal_ratio"] == pytest.approx(900 / 450_000)
    assert rows[-1]["goal_per_s"] == pytest.approx(600)  # two thirds of market


def test_a_goal_that_depends_on_another_workload() -> None:
    goal = Goal("moving", 1000, share=0.5, share_of="market")
    assert goal.events_per_s_given([]) is None
    assert goal.events_per_s_given([replace(SPEED, subscriptions=10)]) is None
    assert goal.events_per_s_given([SPEED]) == pytest.approx(450)


def test_charts_are_drawn(measured: list[MatchingCase], tmp_path: Path) -> None:
    folder = tmp_path / "charts"
    result = run("--chart", str(folder), "--subscriptions", "10000", "--json")
    assert result.exit_code == 0, result.output
    assert {case.subscriptions for case in measured} == {1000, 3000, 10_000}
    assert {case.engine for case in measured} >= {"columnar", "naive", "rete"}
    assert len(result.stdout.splitlines()) == len(measured)
    for name in ("matching.png", "updates.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")


def test_a_sweep_stops_where_an_engine_is_too_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(case: MatchingCase, _: Progress) -> MatchingSpeed:
        return replace(
            SPEED, subscriptions=case.subscriptions, median_per_s=3e4 / case.subscriptions
        )

    monkeypatch.setattr(matching, "measure", slower)
    sizes = [speed.subscriptions for speed in matching.sweep(MatchingCase("market", 1_000_000))]
    assert sizes == [1000, 3000, 10_000]


def test_wrong_pairs_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = replace(SPEED, wrong_pairs=3)
    monkeypatch.setattr(matching, "measure", lambda *_: wrong)
    result = run("--workload", "market")
    assert result.exit_code == 1
    assert "3 pairs" in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--all", "--workload", "wide"),
        ("--all", "--chart", "x"),
        ("--chart", "x", "--workload", "wide"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2
