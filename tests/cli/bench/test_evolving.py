"""The output of `tidegate bench evolving`; its measurements are tested in experiments/."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from tidegate.cli import cli
from tidegate.experiments import evolving
from tidegate.experiments.evolving import EvolvingSpeed
from tidegate.experiments.matching import Latency

FEW = ("--subscriptions", "50", "--events", "200", "--rounds", "1")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["bench", "evolving", *arguments])


@pytest.mark.slow  # builds engines
def test_prints_a_row_for_each_mode() -> None:
    result = run(*FEW)
    assert result.exit_code == 0, result.output
    title, *rows = result.stdout.splitlines()
    assert title.startswith("50 subscriptions, 200 events, columnar, median of 1 rounds")
    assert [row.split()[0] for row in rows] == ["static", "lazy", "periodic", "cached"]
    assert "1.00 times the cost of static" in rows[0]
    assert all("update p50" in row for row in rows)


@pytest.mark.slow
def test_prints_json() -> None:
    rows = [json.loads(line) for line in run(*FEW, "--json").stdout.splitlines()]
    assert [row["mode"] for row in rows] == ["static", "lazy", "periodic", "cached"]
    assert {row["subscriptions"] for row in rows} == {50}
    assert {row["wrong_pairs"] for row in rows} == {0}
    assert all(row["update"]["p50_us"] > 0 for row in rows)


def test_measures_all_sizes_if_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def measured(size: int, *_: object, engine: str, **__: object) -> list[EvolvingSpeed]:
        wrong_pairs = 3 if size == 10_000 else 0
        latency = Latency(1.0, 2.0, 3.0)
        return [
            EvolvingSpeed(
                "lazy", engine, size, 9, 1.5, 30.0, 20.0, 40.0, 1.25, latency, 0.5, wrong_pairs
            )
        ]

    monkeypatch.setattr(evolving, "measure", measured)
    result = run()
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: 10,000 subscriptions, lazy: 3 pairs of an event and a subscription are wrong"
    ]
    titles = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert [title.split()[0] for title in titles] == ["1,000", "10,000", "100,000", "1,000,000"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--subscriptions", "9"], "9 is not in the range x>=10"),
        (["--rounds", "0"], "0 is not in the range x>=1"),
    ],
)
def test_what_is_refused(arguments: list[str], reason: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert reason in result.stderr


def test_it_is_listed() -> None:
    listed = CliRunner().invoke(cli, ["bench", "--help"]).stdout
    assert "evolving" in listed
