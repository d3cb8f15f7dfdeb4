"""The output of `tidegate bench pauses`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.cli.bench.pauses import MODES
from tidegate.experiments import evolving, pauses
from tidegate.experiments.pauses import Cause, PauseCase, Pauses


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "pauses", *arguments])


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> list[PauseCase]:
    """Replaces the measurement, which takes minutes; returns the cases that are measured."""
    measured: list[PauseCase] = []

    def measure(case: PauseCase, *_: object) -> list[Pauses]:
        measured.append(case)
        return [
            Pauses(
                case.mode, case.engine, case.subscriptions, "match", 3000, 40.0, 900.0, 1500.0,
                12.5, [0, 0, 2900, 98, 0, 1, 0, 1, 0, 0, 0, 0], [Cause("enclosing", 2, 12.5)], 0.25,
            )
        ]  # fmt: skip

    monkeypatch.setattr(pauses, "measure", measure)
    return measured


def test_the_modes_are_those_there_are() -> None:
    assert [each.name for each in evolving.MODES] == list(MODES)


def test_prints_durations_and_causes(cases: list[PauseCase]) -> None:
    result = run("--subscriptions", "50", "--mode", "lazy", "--seconds", "2")
    assert result.exit_code == 0, result.output
    assert cases == [PauseCase("lazy", 50, 2.0, 200)]
    assert result.stdout.splitlines() == [
        "lazy: 50 subscriptions, columnar, 2 s, 0.2 s late",
        "  match      3,000 calls   p50 40 µs, p99 900 µs, p99.9 1,500 µs, longest 12.5 ms",
        "          from 0.03 ms: 2,900, 0.1 ms: 98, 1 ms: 1, 10 ms: 1",
        "          2 over 1 ms by enclosing, longest 12.5 ms",
    ]


def test_prints_json(cases: list[PauseCase]) -> None:
    result = run("--subscriptions", "50", "--subscriptions", "60", "--json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(row["mode"], row["subscriptions"]) for row in rows] == [
        (mode, size) for size in (50, 60) for mode in MODES
    ]
    assert len(cases) == 8
    assert rows[0]["causes"] == [{"name": "enclosing", "calls": 2, "longest_ms": 12.5}]


def test_measures_all_sizes_if_none_is_named(cases: list[PauseCase]) -> None:
    assert run("--mode", "static").exit_code == 0
    assert [each.subscriptions for each in cases] == list(pauses.SIZES)
