from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tidegate.cli import cli
from tidegate.experiments import simulation
from tidegate.experiments.simulation import CASES, SimulationCase, measure, measure_apart

SMALL = SimulationCase("tree", 8, "subscription", subscribers=20, events=200)


def test_what_is_measured() -> None:
    speed = measure(SMALL)
    assert speed.messages > speed.events > 100
    assert speed.delivered == speed.wanted > 0
    assert speed.messages_per_s == pytest.approx(speed.messages / speed.wall_s)


@pytest.mark.slow
def test_in_a_process_of_its_own_it_is_the_same() -> None:
    assert measure_apart(SMALL).messages == measure(SMALL).messages


def test_there_is_a_large_one() -> None:
    assert max(case.brokers for case in CASES) == 10_000


def test_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "CASES", (SMALL, CASES[0]))
    monkeypatch.setattr(simulation, "measure_apart", measure)
    result = CliRunner().invoke(cli, ["bench", "simulation", "--brokers", "50"])
    assert result.exit_code == 0
    title, row = result.stdout.splitlines()
    assert len(title) == len(row)
    assert row.startswith("tree                 8  subscription")
    result = CliRunner().invoke(cli, ["bench", "simulation", "--brokers", "50", "--json"])
    assert json.loads(result.stdout)["brokers"] == 8
