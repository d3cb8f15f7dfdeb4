"""The reports of `tidegate pipeline`; that it runs micro-batches: spark/test_pipeline.py."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidegate import TidegateError
from tidegate.cli import cli
from tidegate.cli.pipeline import EXAMPLE, Reporter
from tidegate.spark.pipeline_settings import read_settings
from tidegate.spark.streaming.micro_batch import BatchReport

REPORT = BatchReport(
    batch=3,
    seconds=0.5,
    events=1_000,
    changes=0,
    matches=2_500,
    late=0,
    bad=0,
    corrected=0,
    subscriptions=12_000,
    latest=None,
)


def test_a_line_for_each_batch_and_one_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter()
    reporter.batch(REPORT)
    reporter.batch(replace(REPORT, batch=4, changes=7, late=1, bad=2, corrected=3))
    reporter.batch(replace(REPORT, batch=5, events=1, matches=1, subscriptions=1, changes=1))
    reporter.total()
    first, second, third, total = capsys.readouterr().err.splitlines()
    told = "1,000 events in 0.5 s, 2,000/s, 2,500 matches, 12,000 subscriptions"
    assert first == f"batch 3: {told}"
    assert second == f"batch 4: {told}, 7 changes, 3 corrected, 1 late, 2 bad"
    assert third == "batch 5: 1 event in 0.5 s, 2/s, 1 match, 1 subscription, 1 change"
    assert total == "3 batches, 2,001 events, 5,001 matches"


@pytest.mark.parametrize(
    ("age", "told"),
    [
        (timedelta(days=1, hours=12), "lag 1.5 d"),
        (timedelta(minutes=90), "lag 1.5 h"),
        (timedelta(minutes=1), "lag 1.0 min"),
        (timedelta(seconds=-600), "lag -600.0 s"),
    ],
)
def test_the_lag_is_told_where_times_are_known(
    age: timedelta, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Reporter().batch(replace(REPORT, latest=datetime.now(UTC) - age))
    Reporter(with_lag=False).batch(replace(REPORT, latest=datetime.now(UTC) - age))
    with_lag, without = capsys.readouterr().err.splitlines()
    assert with_lag.startswith(without + ", lag ")
    value, unit = with_lag.split(", lag ")[1].split()
    wanted_value, wanted_unit = told.split()[1:]
    assert unit == wanted_unit
    assert float(value) == pytest.approx(float(wanted_value), abs=1)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(as_json=True)
    reporter.batch(replace(REPORT, latest=datetime(2026, 1, 2, tzinfo=UTC)))
    reporter.batch(REPORT)
    reporter.total()
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["events"], first["events_per_s"]) == (1_000, 2_000)
    assert first["latest"] == "2026-01-02T00:00:00+00:00"
    assert first["lag_s"] > 0
    assert (second["latest"], second["lag_s"]) == (None, None)


def test_the_example_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    done = CliRunner().invoke(cli, ["pipeline", "init", str(file)])
    assert (done.exit_code, done.output) == (
        0, f"wrote {file}; now `tidegate pipeline check {file}`\n",
    )  # fmt: skip
    assert file.read_text() == EXAMPLE.read_text()
    assert read_settings(file).checkpoint.path.startswith(str(tmp_path))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["pipeline", "init", str(tmp_path / "no" / "mine.toml")])
    assert isinstance(done.exception, TidegateError)
    assert str(done.exception).endswith("mine.toml: No such file or directory")
