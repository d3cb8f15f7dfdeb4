"""The options and output of `tidegate bench`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.cli.bench.command import WORKLOADS
from tidegate.experiments import spark_matching, spark_streaming, workloads
from tidegate.experiments.spark_matching import MethodSpeed
from tidegate.experiments.spark_streaming import StreamSpeed


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", *arguments])


def test_the_workloads_are_those_there_are() -> None:
    assert set(WORKLOADS) == set(workloads.WORKLOADS)  # written twice, because the import is slow


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["parsing", "--filters", "49"], "49 is not in the range x>=50"),
        (["parsing", "--rounds", "0"], "0 is not in the range x>=1"),
        (["matching", "--workload", "sea"], "'sea' is not one of"),
        (["matching", "--subscriptions", "9"], "9 is not in the range x>=10"),
        (["spark", "--part", "all"], "'all' is not one of 'tables', 'stream'"),
        (["speed"], "No such command 'speed'"),
    ],
)
def test_what_is_refused(arguments: list[str], reason: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Replaces the measurements on Spark, which take minutes; returns the cases to measure."""
    cases: list[object] = []

    def tables(subscriptions: int, rounds: int, *_: object, only_ours: bool) -> list[MethodSpeed]:
        cases.append((subscriptions, rounds, only_ours))
        return [MethodSpeed("duckdb", subscriptions, 100, 250, 1.0, 2000.0, 1000.0, 3000.0)]

    def stream(case: object, *_: object) -> StreamSpeed:
        cases.append(case)
        return StreamSpeed(10, 4, 1000, 25, 1.5, 4000.0, 0.25, 0.2, 0.5, 0.05, 0.1)

    monkeypatch.setattr(spark_matching, "measure", tables)
    monkeypatch.setattr(spark_streaming, "measure", stream)
    return cases


def test_spark_is_measured_with_tables_and_as_a_stream(measured: list[object]) -> None:
    result = run("spark", "--subscriptions", "10", "--subscriptions", "20", "--ours")
    assert result.exit_code == 0, result.output
    assert measured[:2] == [(10, 3, True), (20, 3, True)]
    assert len(measured) == 3
    lines = result.stdout.splitlines()
    assert lines[0] == "market: 10 subscriptions, median of 3 rounds"
    assert lines[1].split() == [
        "duckdb", "2,000", "events/s", "(1,000,", "3,000),", "2.5", "matches", "an", "event",
    ]  # fmt: skip
    assert (
        "4,000 events/s, 1.5 matches an event; a micro-batch 0.25 s (0.20, 0.50)" in result.stdout
    )


def test_one_part_as_json(measured: list[object]) -> None:
    result = run("spark", "--part", "stream", "--json")
    assert json.loads(result.stdout)["events_per_s"] == 4000.0
    assert len(measured) == 1
    rows = run("spark", "--part", "tables", "--json").stdout.splitlines()
    assert [json.loads(row)["subscriptions"] for row in rows] == [10_000, 100_000]
