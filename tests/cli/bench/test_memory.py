"""The output of `tidegate bench memory`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.experiments import memory_growth
from tidegate.experiments.memory_growth import Footing, MemoryGrowth


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "memory", *arguments])


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Replaces the measurement; returns what was to be measured."""
    cases: list[object] = []

    def measure(matcher: str, cycles: int | None, subscriptions: int, _: object) -> MemoryGrowth:
        cases.append((matcher, cycles, subscriptions))
        first, second, third = (Footing(10 * n, 100.0 + n, 20.0, 1.5) for n in range(3))
        return MemoryGrowth(matcher, subscriptions, first, second, third, 300.0, 150.0)

    monkeypatch.setattr(memory_growth, "measure_apart", measure)
    return cases


def test_three_rows_for_each_matcher(measured: list[object]) -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert measured == [(name, None, 1_000) for name in memory_growth.MATCHERS]
    title, *rows = result.stdout.splitlines()
    assert title.split()[:2] == ["matcher", "cycles"]
    assert [row.split()[0] for row in rows[:4]] == ["columnar"] * 3 + ["tree"]
    assert rows[0].split()[1:] == ["0", "100.0", "20.0", "1.50"]
    assert rows[2].split()[1:] == ["20", "102.0", "20.0", "1.50", "104,858", "300", "150"]


def test_json(measured: list[object]) -> None:
    result = run("--engine", "tree", "--cycles", "7", "--subscriptions", "9", "--json")
    assert measured == [("tree", 7, 9)]
    (row,) = map(json.loads, result.stdout.splitlines())
    assert (row["matcher"], row["before"]["resident_mb"]) == ("tree", 100.0)
    assert row["growth_bytes"] == 2**20 / 10


def test_no_cycles_are_refused() -> None:
    assert run("--cycles", "0").exit_code == 2
