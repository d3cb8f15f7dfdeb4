"""The output of `tidegate bench network`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.experiments.network import scenarios
from tidegate.experiments.network.scenarios import NetworkCase, Row


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "network", *arguments])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, NetworkCase]]:
    """Replaces the measurements, which take minutes; returns what is measured."""
    found: list[tuple[str, int, NetworkCase]] = []

    def row(scenario: str, case: NetworkCase, connections: int) -> Row:
        found.append((scenario, connections, case))
        return Row(
            "tidegate", scenario, connections, 1_500.0, 1_000.0, 2_000.0, 0.25, 1.5, 200.0, 7, 4.8,
            connections // 1_000, 11_000.0, 40.0, "note",
        )  # fmt: skip

    for name in ("throughput", "latency", "with_updates", "line_of_three"):
        monkeypatch.setattr(
            scenarios, name, lambda case, count, _progress, name=name: row(name, case, count)
        )
    monkeypatch.setattr(scenarios, "idle", lambda case, _progress: row("idle", case, case.idle))
    monkeypatch.setattr(
        scenarios, "confirmed", lambda case, count, _progress: [row("confirmed", case, count)]
    )
    return found


def test_prints_a_line_for_each_row(measured: list[tuple[str, int, NetworkCase]]) -> None:
    result = run("--scenario", "throughput", "--connections", "10", "--rounds", "2")
    assert result.exit_code == 0, result.output
    assert measured == [("throughput", 10, NetworkCase(rounds=2))]
    assert result.stdout.splitlines() == [
        "tidegate  throughput                                 10 connections        1,500/s  "
        "(1,000, 2,000)  4.8 µs of processor an event  p50 0.25 ms, p99 1.50 ms  200 updates/s  "
        "11,000 subscriptions/s  40 MB  note"
    ]


def test_runs_all_scenarios_and_fails_if_something_is_wrong(
    measured: list[tuple[str, int, NetworkCase]],
) -> None:
    result = run("--json", "--idle", "5")
    assert result.exit_code == 1
    assert "deliveries or matches are wrong" in result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(each["scenario"], each["connections"]) for each in rows] == [
        *(("throughput", each) for each in (10, 100, 1_000)),
        *(("latency", each) for each in (10, 100, 1_000)),
        ("with_updates", 10), ("confirmed", 10), ("line_of_three", 10), ("idle", 5),
    ]  # fmt: skip
    assert len(measured) == len(rows)
