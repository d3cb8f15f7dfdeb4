"""The whole demo: what it prints, and that it leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from support.processes import processes_of
from tidegate.cli import cli
from tidegate.cli.demo import spark_run
from tidegate.cli.demo.spark_run import SparkRun


@pytest.mark.xdist_group("connectors")
@pytest.mark.usefixtures("spark")
def test_network_and_pipeline_deliver_the_same() -> None:
    done = CliRunner().invoke(cli, ["demo", "--events", "600"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "delivered exactly the same, nothing missed or doubled" in done.stdout
    rows = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if line.strip()}
    subscriptions, updates, network, pipeline, *wrong = rows["all"]
    assert (subscriptions, updates, wrong) == ("2,300", "400", ["0", "0", "0"])
    assert network == pipeline
    assert int(network.replace(",", "")) > 600


@pytest.mark.slow
def test_other_answers_are_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the pipeline had delivered nothing."""
    monkeypatch.setattr(spark_run, "run_pipeline", lambda *_: SparkRun())
    done = CliRunner().invoke(cli, ["demo", "--events", "300"], catch_exceptions=False)
    assert done.exit_code == 1
    assert "have NOT delivered the same" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_no_process(tmp_path: Path, number: signal.Signals, code: int) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-c", "from tidegate.cli import main; main()", "demo", "--no-spark"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert demo.stderr is not None
    while not demo.stderr.readline().startswith("subscribing"):
        assert demo.poll() is None
    assert len(processes_of(tmp_path)) == 3
    demo.send_signal(number)
    demo.communicate(timeout=60)
    assert demo.returncode == code
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
