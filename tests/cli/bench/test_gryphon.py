"""`tidegate bench gryphon`, with few subscriptions."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tidegate.cli.bench import gryphon as command
from tidegate.cli.bench.gryphon import PARTS, SUBSCRIPTIONS, bench_gryphon
from tidegate.experiments import gryphon


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few events, short queues."""
    monkeypatch.setattr(command, "EVENTS", 6)
    monkeypatch.setattr(command, "DEGRADATIONS", (0.95,))
    monkeypatch.setattr(command, "BURST_TRIAL_S", 0.5)
    monkeypatch.setattr(gryphon, "QUEUE_MAX", 5)
    monkeypatch.setattr(gryphon, "WARM_UP_S", 0.1)
    monkeypatch.setattr(gryphon, "RATE_ERROR_PER_S", 200.0)


def test_each_part_has_its_sizes() -> None:
    assert list(PARTS) == list(SUBSCRIPTIONS)
    assert command.ROUTINGS == gryphon.CHART_2_ROUTINGS


@pytest.mark.slow
def test_a_part_of_chart_2() -> None:
    arguments = "--part rates --subscriptions 39 --degradation 0.5 --routing flooding --json"
    (row,) = CliRunner().invoke(bench_gryphon, arguments.split()).stdout.splitlines()
    assert json.loads(row)["degradation"] == 0.5
    assert json.loads(row)["routing"] == "flooding"


@pytest.mark.slow  # fills a network of 39 brokers
@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("rates", "events/s at each publisher"),
        ("bursts", "in bursts"),
        ("steps", "centralized"),
        ("premise", "filters held"),
    ],
)
def test_rows_for_people_and_for_programs(part: str, text: str) -> None:
    arguments = ["--part", part, "--subscriptions", "39"]
    shown = CliRunner().invoke(bench_gryphon, arguments)
    assert shown.exit_code == 0, shown.output
    assert text in shown.stdout
    rows = CliRunner().invoke(bench_gryphon, [*arguments, "--json"]).stdout.splitlines()
    assert {json.loads(row)["subscriptions"] for row in rows} == {39}
    assert len(rows) == len(shown.stdout.splitlines())
