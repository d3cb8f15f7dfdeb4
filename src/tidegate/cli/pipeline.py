"""`tidegate pipeline`: events from a stream, matched on Spark, to a sink.

Spark is imported inside of functions: it takes seconds, and `init` and a mistake in the TOML file
must not wait for it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.cli.example_file import write_example
from tidegate.cli.status import print_status
from tidegate.language.durations import UNITS

if TYPE_CHECKING:
    from tidegate.spark.pipeline_settings import PipelineSettings
    from tidegate.spark.streaming.micro_batch import BatchReport

EXAMPLE = Path(__file__).with_name("pipeline.toml")
"""The commented file that `init` writes."""


@click.group()
def pipeline() -> None:
    """Match a stream of events on Spark, configured by a TOML file."""


@pipeline.command("init")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="pipeline.toml")
def init(file: Path) -> None:
    """Write a commented FILE to start from; by default `pipeline.toml`."""
    write_example(EXAMPLE, file)
    click.echo(f"wrote {file}; now `tidegate pipeline check {file}`")


@pipeline.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check_file(file: Path) -> None:
    """Check that the pipeline of FILE could run, without running it."""
    from tidegate.cli.spark_session import spark_session
    from tidegate.spark import pipeline as spark_pipeline
    from tidegate.spark.pipeline_settings import read_settings

    settings = read_settings(file)
    spark_pipeline.check_paths(settings)
    with spark_session(lambda: spark_pipeline.session_for(settings)) as spark:
        count = spark_pipeline.check(settings, spark)
    click.echo(f"source         {settings.source.format}, {_location(settings.source)}")
    subscriptions = settings.subscriptions
    origin = subscriptions.table or subscriptions.changes or f"topic {subscriptions.topic}"
    # Only a table has a number of subscriptions that is known before the pipeline runs.
    summary = f"{count:,} in {origin}" if count is not None else f"changes from {origin}"
    click.echo(f"subscriptions  {summary}")
    click.echo(f"sink           {settings.sink.format}, {_location(settings.sink)}")
    click.echo(f"checkpoint     {settings.checkpoint.path}")


def _location(section: object) -> str:
    """The path, topic or broker of a source or sink."""
    path, topic, broker = (getattr(section, name, None) for name in ("path", "topic", "broker"))
    return str(path or broker or (f"topic {topic}" if topic else "standard output"))


@pipeline.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Process the input that exists now, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Report each micro-batch as a JSON object.")
def run(file: Path, once: bool, as_json: bool) -> None:
    """Run the pipeline of FILE until it is interrupted.

    It continues where it stopped, also after a crash. A report of each micro-batch goes to stderr.
    If [metrics] has a port, Prometheus can read metrics there.
    """
    from tidegate.spark.pipeline_settings import TriggerSettings, read_settings

    settings = read_settings(file)
    if once:
        settings = replace(settings, trigger=TriggerSettings(once=True))
    reporter = Reporter(as_json=as_json)
    _run(settings, reporter.batch)
    reporter.total()


def _run(settings: PipelineSettings, report: Callable[[BatchReport], None]) -> None:
    from tidegate.cli.spark_session import spark_session
    from tidegate.spark import pipeline as spark_pipeline
    from tidegate.spark.metrics import Metrics

    spark_pipeline.check_paths(settings)
    receivers = [report]
    if settings.metrics is not None:
        metrics = Metrics()
        port = metrics.serve(settings.metrics.port, settings.metrics.address)
        print_status(f"metrics at {settings.metrics.address}:{port}")
        receivers.append(metrics.add)

    def report_to_all(batch: BatchReport) -> None:
        for receiver in receivers:
            receiver(batch)

    print_status("starting Spark")
    with spark_session(lambda: spark_pipeline.session_for(settings)) as spark:
        spark_pipeline.check(settings, spark)
        query = spark_pipeline.start(settings, spark, report_to_all)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:  # how users end a pipeline, so it is no error
            print_status("stopping")
            query.stop()


class Reporter:
    """Prints a line for each micro-batch on stderr.

    The lag is the age of the latest event; ``with_lag`` is off for generated events, whose times
    have nothing to do with the clock.
    """

    def __init__(self, *, as_json: bool = False, with_lag: bool = True) -> None:
        self._as_json = as_json
        self._with_lag = with_lag
        self._batches = self._events = self._matches = 0

    def batch(self, report: BatchReport) -> None:
        """Print the report of a micro-batch."""
        self._batches += 1
        self._events += report.events
        self._matches += report.matches
        lag = None if report.latest is None else datetime.now(UTC) - report.latest
        per_s = report.events / report.seconds
        if self._as_json:
            latest = None if report.latest is None else report.latest.isoformat()
            lag_s = None if lag is None else lag.total_seconds()
            row = {**asdict(report), "latest": latest, "events_per_s": per_s, "lag_s": lag_s}
            click.echo(json.dumps(row), err=True)
            return
        figures = [
            f"batch {report.batch}: {_counted(report.events, 'event')} in {report.seconds:.1f} s",
            f"{per_s:,.0f}/s",
            _counted(report.matches, "match", "matches"),
            _counted(report.subscriptions, "subscription"),
        ]
        if report.changes:
            figures.append(_counted(report.changes, "change"))
        rare = {"corrected": report.corrected, "late": report.late, "bad": report.bad}
        figures += [f"{count:,} {name}" for name, count in rare.items() if count]
        if lag is not None and self._with_lag:
            figures.append(f"lag {_rounded(lag)}")
        click.echo(", ".join(figures), err=True)
        sys.stderr.flush()

    def total(self) -> None:
        """Print the totals."""
        if not self._as_json:
            figures = [
                _counted(self._batches, "batch", "batches"),
                _counted(self._events, "event"),
                _counted(self._matches, "match", "matches"),
            ]
            click.echo(", ".join(figures), err=True)


def _counted(count: int, singular: str, plural: str | None = None) -> str:
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def _rounded(duration: timedelta) -> str:
    """A duration as text, in the largest unit that is not longer than it, at least in seconds."""
    units = [(name, unit) for name, unit in UNITS.items() if unit >= UNITS["s"]]
    fitting = [each for each in units if duration >= each[1]]
    name, unit = fitting[-1] if fitting else units[0]
    return f"{duration / unit:,.1f} {name}"
