"""`tidegate backtest`: what would changed subscriptions have delivered over history?

Spark is imported inside of functions: it takes seconds, it is an optional extra, and `--help` and
wrong options must not wait for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.events import TimeAttributes, read_events
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.versions import is_log, read_log, read_table
from tidegate.cli.progress import ProgressBars
from tidegate.cli.trial_options import NamedValues, TrialOptions, with_timestamps
from tidegate.language.durations import parse_duration
from tidegate.language.spaces import Space
from tidegate.matching.history.changes import Change
from tidegate.matching.records import subscription_of
from tidegate.matching.rows.kernels.jit import is_first_run
from tidegate.matching.space_file import read_space

if TYPE_CHECKING:
    from tidegate.spark import Backtest
    from tidegate.spark.backtesting.trials import Versions


@click.command()
@click.option("--events", metavar="FILE", required=True, help="File of events; `-` is stdin.")
@click.option("--subscriptions", metavar="FILE", help="File of the live subscriptions.")
@click.option("--changes", metavar="FILE", help="Instead of --subscriptions: a log of changes.")
@click.option("--filter", metavar="FILTER", help="Try a new subscription with this filter.")
@click.option("--params", metavar="JSON", help="Parameters of the new subscription, by name.")
@click.option("--id", metavar="ID", help="Id of the new subscription.  [default: new]")
@click.option("--subscriber", metavar="NAME", help="Subscriber of the new subscription.")
@click.option(
    "--set",
    metavar="ID NAME=VALUE",
    nargs=2,
    multiple=True,
    help="Try another value of a parameter: JSON, or timestamp '2026-01-02T03:04:05Z'; null unsets "
    "it. May be repeated.",
)
@click.option(
    "--filter-of",
    metavar="ID FILTER",
    nargs=2,
    multiple=True,
    help="Try another filter of a subscription. May be repeated.",
)
@click.option(
    "--unsubscribe",
    metavar="ID",
    multiple=True,
    help="Try without this subscription. May be repeated.",
)
@click.option("--instead", metavar="FILE", help="Try another file of subscriptions or changes.")
@click.option(
    "--since",
    metavar="TIME",
    help="Time from which the tried change holds.  [default: all of history]",
)
@click.option("--event-time", metavar="NAME", help="Attribute with the time of an event.")
@click.option(
    "--timestamps", metavar="NAMES", default="", help="Other attributes that are times: a,b,c."
)
@click.option(
    "--space", "space_file", metavar="FILE", help="Space that events and filters must fit."
)
@click.option("--every", metavar="TIME", help="Width of the time buckets: 30s, 5m, 1h, 1d.")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True,
              help="Number of subscribers to list.")  # fmt: skip
@click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the counts over time: .png, .svg or .pdf.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--skip-bad", is_flag=True, help="Skip bad lines and print their number.")
@click.option("--no-progress", is_flag=True, help="Show no progress.")
def backtest(
    events: str,
    subscriptions: str | None,
    changes: str | None,
    filter: str | None,
    params: str | None,
    id: str | None,
    subscriber: str | None,
    set: NamedValues,
    filter_of: NamedValues,
    unsubscribe: tuple[str, ...],
    instead: str | None,
    since: str | None,
    event_time: str | None,
    timestamps: str,
    space_file: str | None,
    every: str | None,
    top: int,
    chart: Path | None,
    as_json: bool,
    skip_bad: bool,
    no_progress: bool,
) -> None:
    """Count the deliveries that changed subscriptions would make.

    The change is a new filter, other values, or another table. Its deliveries are compared with
    those of the live subscriptions: a delivery enters if only the changed subscriptions make it,
    and leaves if only the live ones do. Only subscriptions that differ are counted.

    A change holds from --since on, or for all of history, and overrides later changes of the log. A
    new subscription begins at --since, or with the first event. With --event-time each event is
    matched as of its time, and there are counts for each time bucket; without it `t` is 0.

    With --space events, subscriptions and the tried change must fit the space, and strings are
    timestamps where the space says so.

    Files are Parquet if their names end in .parquet, else JSON Lines. The command runs on Spark.

    \b
    Examples:
      tidegate backtest --events quotes.jsonl --filter "price < 9" --event-time time
      tidegate backtest --events quotes.jsonl --event-time time --changes log.jsonl \\
          --set desk-7 limit=12 --chart desk-7.png
    """
    tried = TrialOptions(
        filter, params, id, subscriber, set, filter_of, unsubscribe, instead, since
    )
    _check_usage(tried, subscriptions, changes, event_time, every, chart)
    progress = ProgressBars(wanted=not no_progress)
    if is_first_run():
        progress.say("compiling the kernels of the workers, which takes some seconds, once")
    bad = BadLines(skip=skip_bad)
    space = None if space_file is None else read_space(space_file)
    times = TimeAttributes.from_options(event_time, timestamps, space)
    run = _BacktestRun(times, space, bad, progress)
    result = run.backtest(tried, subscriptions, changes, InputFile(events), every, top)
    click.echo(json.dumps(result.to_json(), ensure_ascii=False) if as_json else result.summary())
    if chart is not None:
        _draw(result, chart)
    bad.print_skipped()


def _check_usage(
    tried: TrialOptions,
    subscriptions: str | None,
    changes: str | None,
    event_time: str | None,
    every: str | None,
    chart: Path | None,
) -> None:
    if subscriptions is not None and changes is not None:
        raise click.UsageError("give one of --subscriptions and --changes")
    tried.check(has_live=subscriptions is not None or changes is not None)
    if event_time is None:
        if changes is not None:
            raise click.UsageError(
                "--changes needs --event-time: events are matched as of their time"
            )
        timed_options = {"--since": tried.since, "--every": every, "--chart": chart}
        for option, value in timed_options.items():
            if value is not None:
                raise click.UsageError(f"{option} needs --event-time")
    if chart is not None:
        _check_chart(chart)


def _check_chart(chart: Path) -> None:
    """Refuse a chart that cannot be drawn, before minutes of work on Spark; raises UsageError."""
    try:
        from tidegate.spark.backtesting.chart import FORMATS
    except ImportError as error:
        raise click.ClickException(f"--chart needs the extra `bench`: {error}") from error
    if chart.suffix.lower() not in FORMATS:
        raise click.UsageError(f"--chart takes a file of {', '.join(FORMATS)}, not {chart.name!r}")
    if not chart.parent.is_dir():
        raise click.UsageError(f"--chart: there is no folder {str(chart.parent)!r}")


def _draw(result: Backtest, chart: Path) -> None:
    from tidegate.spark.backtesting.chart import draw_backtest

    if result.every is None:
        click.echo("there are no events, so no chart was drawn", err=True)
        return
    try:
        draw_backtest(result, chart)
    except OSError as error:
        raise click.ClickException(f"{chart}: cannot be written: {error.strerror}") from None
    click.echo(f"drew {chart}", err=True)


@dataclass(frozen=True, slots=True)
class _BacktestRun:
    """One run of the command: reads the files, checks them, and starts Spark."""

    times: TimeAttributes
    space: Space | None
    bad: BadLines
    progress: ProgressBars

    def backtest(
        self,
        tried: TrialOptions,
        subscriptions: str | None,
        changes: str | None,
        events: InputFile,
        every: str | None,
        top: int,
    ) -> Backtest:
        """Read the files and run the backtest on Spark."""
        try:
            from tidegate.cli.spark_session import spark_session
        except ImportError as error:
            raise click.ClickException(f"a backtest needs the extra `spark`: {error}") from error
        from tidegate.cli.files.spark_events import SparkEvents
        from tidegate.spark import backtest
        from tidegate.spark.backtesting.trials import NewSubscription, TrialReader
        from tidegate.spark.session import local_session

        bucket_width = None if every is None else parse_duration(every)
        trial, live = self._read_trial(tried), self._read_live(subscriptions, changes)
        self.bad.raise_errors()
        # A dry run without events: a trial that cannot be applied is reported before Spark starts.
        reader = TrialReader(self.times.event_time, None, skip_bad=False)
        differing = reader.differing_versions(trial, NewSubscription(), live)
        if self.space is not None and isinstance(trial, list):
            trial = with_timestamps(trial, differing.changed, self.space)
            differing = reader.differing_versions(trial, NewSubscription(), live)
            for version in differing.changed:
                subscription_of(version, None, self.space)  # raises if it does not fit
        with TemporaryDirectory(prefix="tidegate-") as folder:
            history = SparkEvents(Path(folder), self.times.event_time)
            with self.progress.reading(events) as advance:
                for chunk in read_events(events, self.times, self.bad, advance, self.space):
                    if not self.bad.has_errors:  # else reading goes on only to find all bad lines
                        history.write(chunk)
            self.bad.raise_errors()
            self.progress.say("starting Spark, which takes some seconds")
            with spark_session(local_session) as spark:
                return backtest(
                    history.frame(spark),
                    trial,
                    live,
                    event_time=history.event_time,
                    every=bucket_width,
                    key=[],  # only counts are needed, so no column of the events is kept
                    attributes=history.attributes,
                    top=top,
                )

    def _read_trial(self, tried: TrialOptions) -> list[Change] | Versions:
        if tried.instead is None:
            return tried.changes()
        file = InputFile(tried.instead)
        log = is_log(file)
        if log and self.times.event_time is None:
            raise click.UsageError(f"{file.name} is a log of changes, which needs --event-time")
        return self._read_versions(file, log=log)

    def _read_live(self, subscriptions: str | None, changes: str | None) -> Versions | None:
        if subscriptions is not None:
            return self._read_versions(InputFile(subscriptions), log=False)
        return None if changes is None else self._read_versions(InputFile(changes), log=True)

    def _read_versions(self, file: InputFile, *, log: bool) -> Versions:
        from tidegate.spark.backtesting.trials import Versions

        with self.progress.reading(file) as advance:
            read = read_log if log else read_table
            return Versions(read(file, self.bad, advance, self.space))
