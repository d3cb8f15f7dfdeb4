"""What `tidegate pipeline` tells of micro-batches; that it runs them: spark/test_pipeline.py."""

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
from tidegate.spark.settings import read_settings
from tidegate.spark.stream import BatchReport

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
    reporter.total()
    first, second, total = capsys.readouterr().err.splitlines()
    told = "1,000 events in 0.5 s, 2,000/s, 2,500 matches, 12,000 subscriptions"
    assert first == f"batch 3: {told}"
    assert second == f"batch 4: {told}, 7 changes, 3 corrected, 1 late, 2 bad"
    assert total == "2 batches, 2,000 events, 5,000 matches"


def test_the_lag_is_told_where_times_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    latest = datetime.now(UTC) - timedelta(days=1)
    Reporter().batch(replace(REPORT, latest=latest))
    line = capsys.readouterr().err
    assert int(line.split("lag ")[1].split(" s")[0].replace(",", "")) >= 86_400


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
