"""`tidegate bench links`."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tidegate.cli.bench.links import LOCALITIES, WORKLOADS, bench_links
from tidegate.experiments import links

SMALL = ["--workload", "gryphon", "--subscriptions", "60", "--links", "3", "--rounds", "1"]


def test_the_choices_of_the_command_are_those_of_the_experiment() -> None:
    assert (links.WORKLOADS, links.LOCALITIES) == (WORKLOADS, LOCALITIES)


def test_rows_for_people_and_for_programs() -> None:
    shown = CliRunner().invoke(bench_links, SMALL)
    assert shown.exit_code == 0
    assert "columnar links" in shown.stdout
    arguments = [*SMALL, "--locality", "spread", "--own", "0", "--json"]
    rows = [
        json.loads(row)
        for row in CliRunner().invoke(bench_links, arguments).stdout.split("\n")[:-1]
    ]
    assert {row["method"] for row in rows} == {
        "columnar full", "tree full", "columnar links", "tree links",
    }  # fmt: skip
    assert {(row["locality"], row["own"]) for row in rows} == {("spread", 0)}


def test_answers_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = list(links.measure("gryphon", [60], [3], ["spread"], rounds=1, events=3))
    wrong = replace(rows[-1], is_same=False)
    monkeypatch.setattr(links, "measure", lambda *_, **__: [*rows[:-1], wrong])
    shown = CliRunner().invoke(bench_links, SMALL)
    assert shown.exit_code == 1
    assert "error: tree links: answers differ from those of a full match" in shown.stderr
