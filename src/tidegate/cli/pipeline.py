"""`tidegate pipeline`: events from a stream, matched on Spark, to a sink."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tidegate.errors import TidegateError
from tidegate.language.durations import UNITS

if TYPE_CHECKING:
    from tidegate.spark.settings import PipelineSettings
    from tidegate.spark.streaming.stream import BatchReport

EXAMPLE = Path(__file__).with_name("pipeline.toml")
"""The commented file that `init` writes."""


@click.group()
def pipeline() -> None:
    """Run a stream of events through Spark, as a TOML file says."""


@pipeline.command("init")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="pipeline.toml")
def init(file: Path) -> None:
    """Write a commented FILE to start from; `pipeline.toml` if none is named."""
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(EXAMPLE.read_text(encoding="utf-8"))
    except FileExistsError:
        raise TidegateError(f"{file}: is there already; name another file") from None
    except OSError as error:
        raise TidegateError(f"{file}: {error.strerror or error}") from None
    click.echo(f"wrote {file}; now `tidegate pipeline check {file}`")


@pipeline.command("check")
@click.argument("file", type=click.Path(path_type=Path))
def check_file(file: Path) -> None:
    """See that the pipeline of FILE could run, without running it."""
    from tidegate.cli.spark_session import spark_session  # takes a while to import
    from tidegate.spark import pipeline as running
    from tidegate.spark.settings import read_settings

    settings = read_settings(file)
    running.check_places(settings)
    with spark_session(lambda: running.session_for(settings)) as spark:
        count = running.check(settings, spark)
    click.echo(f"source         {settings.source.format}, {_place(settings.source)}")
    chosen = settings.subscriptions
    where = chosen.table or chosen.changes or f"topic {chosen.topic}"
    told = f"{count:,} in {where}" if count is not None else f"changes from {where}"
    click.echo(f"subscriptions  {told}")
    click.echo(f"sink           {settings.sink.format}, {_place(settings.sink)}")
    click.echo(f"checkpoint     {settings.checkpoint.path}")


def _place(section: object) -> str:
    path, topic = getattr(section, "path", None), getattr(section, "topic", None)
    return str(path) if path else f"topic {topic}" if topic else "standard output"


@pipeline.command("run")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--once", is_flag=True, help="Take what is there now, and stop.")
@click.option("--json", "as_json", is_flag=True, help="Report each micro-batch as a JSON object.")
def run(file: Path, once: bool, as_json: bool) -> None:
    """Run the pipeline of FILE until it is interrupted.

    It goes on where it stopped, also after a crash. Reports of micro-batches go to stderr. If
    [metrics] has a port, Prometheus can read them there.
    """
    from tidegate.spark.settings import TriggerSettings, read_settings

    settings = read_settings(file)
    if once:
        settings = replace(settings, trigger=TriggerSettings(once=True))
    reporter = Reporter(as_json=as_json)
    _run(settings, reporter.batch)
    reporter.total()


def _run(settings: PipelineSettings, report: Callable[[BatchReport], None]) -> None:
    from tidegate.cli.spark_session import spark_session, tell  # takes a while to import
    from tidegate.spark import pipeline as running
    from tidegate.spark.metrics import Metrics

    running.check_places(settings)
    reports = [report]
    if settings.metrics is not None:
        metrics = Metrics()
        port = metrics.serve(settings.metrics.port, settings.metrics.address)
        tell(f"metrics at {settings.metrics.address}:{port}")
        reports.append(metrics.add)

    def report_all(told: BatchReport) -> None:
        for each in reports:
            each(told)

    tell("starting Spark")
    with spark_session(lambda: running.session_for(settings)) as spark:
        running.check(settings, spark)
        query = running.start(settings, spark, report_all)
        try:
            query.awaitTermination()
        except KeyboardInterrupt:
            tell("stopping")
            query.stop()


class Reporter:
    """Tells how it goes, a line for each micro-batch.

    The lag is the age of the latest event, which says nothing of events that were made up.
    """

    def __init__(self, *, as_json: bool = False, with_lag: bool = True) -> None:
        self._as_json = as_json
        self._with_lag = with_lag
        self._batches = self._events = self._matches = 0

    def batch(self, told: BatchReport) -> None:
        """Tell of a micro-batch."""
        self._batches += 1
        self._events += told.events
        self._matches += told.matches
        lag = None if told.latest is None else datetime.now(UTC) - told.latest
        per_s = told.events / told.seconds
        if self._as_json:
            latest = None if told.latest is None else told.latest.isoformat()
            lag_s = None if lag is None else lag.total_seconds()
            row = {**asdict(told), "latest": latest, "events_per_s": per_s, "lag_s": lag_s}
            click.echo(json.dumps(row), err=True)
            return
        parts = [
            f"batch {told.batch}: {_many(told.events, 'event')} in {told.seconds:.1f} s",
            f"{per_s:,.0f}/s",
            _many(told.matches, "match", "matches"),
            _many(told.subscriptions, "subscription"),
        ]
        if told.changes:
            parts.append(_many(told.changes, "change"))
        more = ("corrected", "late", "bad")
        parts += [f"{getattr(told, name):,} {name}" for name in more if getattr(told, name)]
        if lag is not None and self._with_lag:
            parts.append(f"lag {_about(lag)}")
        click.echo(", ".join(parts), err=True)
        sys.stderr.flush()

    def total(self) -> None:
        """Tell of all of them."""
        if not self._as_json:
            parts = [
                _many(self._batches, "batch", "batches"),
                _many(self._events, "event"),
                _many(self._matches, "match", "matches"),
            ]
            click.echo(", ".join(parts), err=True)


def _many(count: int, one: str, more: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}"


def _about(duration: timedelta) -> str:
    """A duration for people, in the largest unit of which it has at least one, from seconds on."""
    units = [(name, unit) for name, unit in UNITS.items() if unit >= UNITS["s"]]
    fitting = [each for each in units if duration >= each[1]]
    name, unit = fitting[-1] if fitting else units[0]
    return f"{duration / unit:,.1f} {name}"
