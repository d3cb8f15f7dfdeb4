"""`tidegate bench hostile`."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tidegate.cli.bench.hostile import bench_hostile

ARGUMENTS = ["--kind", "nested sines", "--rounds", "1"]


@pytest.mark.slow
def test_the_worst_kind_for_each_operation() -> None:
    shown = CliRunner().invoke(bench_hostile, ARGUMENTS)
    assert shown.exit_code == 0
    lines = shown.stdout.splitlines()
    assert sum("over_estimate" in line for line in lines) == 1
    assert "rows take over 50 ms" in lines[-1]


@pytest.mark.slow
def test_rows_for_programs() -> None:
    shown = CliRunner().invoke(bench_hostile, [*ARGUMENTS, "--json"])
    rows = [json.loads(line) for line in shown.stdout.splitlines()]
    assert {row["kind"] for row in rows} == {"30 nested sines", "60 nested sines"}
    assert all(row["median_ms"] >= 0 and row["steps"] >= 0 for row in rows)


def test_an_unknown_kind() -> None:
    shown = CliRunner().invoke(bench_hostile, ["--kind", "friendly"])
    assert shown.exit_code == 2
    assert "no kind of filter has 'friendly' in its name" in shown.output
