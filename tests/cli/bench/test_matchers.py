"""`tidegate bench matchers`."""

from __future__ import annotations

import json

from click.testing import CliRunner

from tidegate.cli.bench import matchers as command
from tidegate.experiments import matchers, workloads

ARGUMENTS = ["--workload", "equalities", "--subscriptions", "60", "--rounds", "1"]


def test_the_choices_of_the_command_are_those_of_the_experiment() -> None:
    assert set(command.WORKLOADS) <= set(workloads.WORKLOADS)
    assert command.ENGINES == matchers.ENGINES


def test_rows_for_people_and_for_programs() -> None:
    shown = CliRunner().invoke(command.bench_matchers, ARGUMENTS)
    assert shown.exit_code == 0
    assert "columnar" in shown.stdout
    lines = CliRunner().invoke(command.bench_matchers, [*ARGUMENTS, "--json"]).stdout.splitlines()
    rows = [json.loads(line) for line in lines if line.startswith("{")]
    assert [row["engine"] for row in rows] == ["columnar", "tree"]


def test_an_engine_that_does_not_exist_is_named() -> None:
    shown = CliRunner().invoke(command.bench_matchers, [*ARGUMENTS, "--engine", "trie"])
    assert "there is no matcher 'trie'" in str(shown.exception)
