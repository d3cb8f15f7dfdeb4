"""The output of `tidegate bench parametric`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tidegate.cli import cli

ARGUMENTS = ["bench", "parametric", "--scenario", "trading", "--changes", "10", "--seconds", "0.3"]


@pytest.mark.slow  # simulates each method twice
def test_prints_a_row_for_each_method() -> None:
    result = CliRunner().invoke(cli, ARGUMENTS)
    assert result.exit_code == 0
    assert result.stdout.split()[:3] == ["scenario", "changes/s", "method"]
    rows = [line for line in result.stdout.splitlines() if line.startswith("trading")]
    assert ["update" in rows[0], "cancel, then" in rows[1], "subscribe, then" in rows[2]] == [
        True
    ] * 3


@pytest.mark.slow
def test_prints_json() -> None:
    result = CliRunner().invoke(cli, [*ARGUMENTS, "--json"])
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [each["scenario"] for each in rows] == ["trading"] * 3
    assert [each["method"] for each in rows] == [
        "update", "cancel, then subscribe", "subscribe, then cancel",
    ]  # fmt: skip
    assert rows[0]["missed"] == 0


def test_refuses_a_substrate_that_is_not_there() -> None:
    result = CliRunner().invoke(cli, ["bench", "parametric", "--substrate", "sand"])
    assert result.exit_code == 2
    assert "'sand' is not one of 'poset'" in result.stderr
