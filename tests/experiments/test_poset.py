from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tidegate.cli import cli
from tidegate.experiments.poset import airline_filters, measure

pytestmark = pytest.mark.slow


def test_the_filters_are_the_same_for_one_seed() -> None:
    assert list(airline_filters(50, seed=3)) == list(airline_filters(50, seed=3))
    assert list(airline_filters(50, seed=3)) != list(airline_filters(50, seed=4))


def test_most_airline_filters_are_covered() -> None:
    speed = measure("airlines", 300)
    assert speed.roots < speed.nodes / 2
    assert speed.edges > speed.nodes / 2
    assert 0 < speed.insert_p50_us <= speed.insert_p99_us
    assert 0 < speed.update_p50_us <= speed.update_p99_us
    assert 0 < speed.remove_p50_us <= speed.remove_p99_us
    assert speed.plain_p50_us is not None


def test_the_command() -> None:
    arguments = ["bench", "poset", "--filters", "20"]
    text = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert text.exit_code == 0
    assert "airlines" in text.stdout
    rows = CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False)
    found = [json.loads(line) for line in rows.stdout.splitlines()]
    assert [(row["workload"], row["filters"]) for row in found] == [
        ("market", 20),
        ("airlines", 20),
    ]
