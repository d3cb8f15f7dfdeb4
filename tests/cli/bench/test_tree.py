"""`tidegate bench tree`."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tidegate.cli.bench.tree import SCHEMAS, bench_tree
from tidegate.experiments import search_tree


def test_the_schemas_of_the_command_are_those_of_the_experiment() -> None:
    assert tuple(search_tree.SCHEMAS) == SCHEMAS


def test_rows_for_people_and_for_programs() -> None:
    arguments = ["--schema", "chart-3", "--subscriptions", "60", "--rounds", "1"]
    shown = CliRunner().invoke(bench_tree, arguments)
    assert shown.exit_code == 0
    assert "no delayed branching" in shown.stdout
    rows = CliRunner().invoke(bench_tree, [*arguments, "--json"]).stdout.splitlines()
    assert {json.loads(row)["variant"] for row in rows} >= {"tree", "columnar", "plain tree"}


def test_the_growth_of_steps() -> None:
    arguments = ["--growth", "--schema", "prototype", "--rounds", "1"]
    for size in (50, 400):
        arguments += ["--subscriptions", str(size)]
    shown = CliRunner().invoke(bench_tree, arguments)
    assert shown.exit_code == 0
    assert "steps grow with the power 0." in shown.stdout
    *_, last = CliRunner().invoke(bench_tree, [*arguments, "--json"]).stdout.splitlines()
    assert 0 < json.loads(last)["exponent"] < 1


def test_one_size_has_no_growth() -> None:
    arguments = ["--growth", "--schema", "prototype", "--rounds", "1"]
    shown = CliRunner().invoke(bench_tree, [*arguments, *["--subscriptions", "50"] * 2])
    assert shown.exit_code == 0
    assert "steps grow" not in shown.stdout
