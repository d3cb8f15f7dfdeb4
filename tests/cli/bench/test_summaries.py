"""`tidegate bench summaries`, with few subscriptions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidegate.cli import cli
from tidegate.cli.bench.summaries import PARTS, SIZES

ARGUMENTS = ["bench", "summaries", "--subscriptions", "2", "--new", "1", "--events", "1"]
TEXTS = {
    "bandwidth": "by formula",
    "simulated": "messages sent",
    "events": "messages there",
    "storage": "at home beside them",
    "matching": "found an event",
    "precision": "in vain",
    "changes": "us median",
}


def test_each_part_has_its_sizes() -> None:
    assert list(PARTS) == list(SIZES) == list(TEXTS)


@pytest.mark.slow  # a network of 24 brokers
@pytest.mark.parametrize("part", TEXTS)
def test_rows_for_people_and_for_programs(part: str) -> None:
    arguments = [*ARGUMENTS, "--part", part, "--subsumption", "0.5"]
    shown = CliRunner().invoke(cli, arguments)
    assert shown.exit_code == 0, shown.output
    assert all(TEXTS[part] in line for line in shown.stdout.splitlines())
    rows = CliRunner().invoke(cli, [*arguments, "--json"]).stdout.splitlines()
    assert len(rows) == len(shown.stdout.splitlines()) > 2
    assert all(json.loads(row) for row in rows)


@pytest.mark.slow
def test_draws_the_precision(tmp_path: Path) -> None:
    folder = tmp_path / "charts"
    arguments = [*ARGUMENTS, "--part", "precision", "--chart", str(folder)]
    assert CliRunner().invoke(cli, arguments).exit_code == 0
    assert (folder / "summary-precision.png").stat().st_size > 1000


def test_other_parts_are_not_drawn() -> None:
    result = CliRunner().invoke(cli, [*ARGUMENTS, "--part", "events", "--chart", "."])
    assert result.exit_code == 2
    assert "--chart draws the part precision" in result.stderr
