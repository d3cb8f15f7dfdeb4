"""`tidegate backtest`: what would changed subscriptions have delivered over history?"""

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
from tidegate.cli.trial_options import NamedValues, TrialOptions
from tidegate.language.durations import parse_duration
from tidegate.matching.columnar.kernels.jit import is_first_run

if TYPE_CHECKING:
    from tidegate.spark import Backtest
    from tidegate.spark.backtesting.trials import Trial, Versions


@click.command()
@click.option("--events", metavar="FILE", required=True, help="The events; `-` is stdin.")
@click.option("--subscriptions", metavar="FILE", help="The live subscriptions.")
@click.option("--changes", metavar="FILE", help="In their place: who subscribed to what, and when.")
@click.option("--filter", metavar="FILTER", help="Try a new subscription.")
@click.option("--params", metavar="JSON", help="Values of its parameters, by name.")
@click.option("--id", metavar="ID", help="Its id; `new` if not said.")
@click.option("--subscriber", metavar="NAME", help="Who would have it.")
@click.option(
    "--set",
    metavar="ID NAME=VALUE",
    nargs=2,
    multiple=True,
    help="Try another value of a parameter: JSON, or timestamp '2026-01-02T03:04:05Z'; null takes "
    "it away. Can be repeated.",
)
@click.option(
    "--filter-of",
    metavar="ID FILTER",
    nargs=2,
    multiple=True,
    help="Try another filter of a subscription. Can be repeated.",
)
@click.option("--unsubscribe", metavar="ID", multiple=True, help="Try without it. Can be repeated.")
@click.option("--instead", metavar="FILE", help="Try a whole other file of either kind.")
@click.option("--since", metavar="TIME", help="From when on it holds; if not said, it always did.")
@click.option("--event-time", metavar="NAME", help="The attribute that has an event's time.")
@click.option("--timestamps", metavar="NAMES", default="", help="More that are times: a,b,c.")
@click.option("--every", metavar="TIME", help="How finely to count over time: 30s, 5m, 1h, 1d.")
@click.option("--top", type=click.IntRange(min=0), default=10, show_default=True,
              help="How many subscribers to list.")  # fmt: skip
@click.option("--chart", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Draw the counts over time: .png, .svg or .pdf.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--skip-bad", is_flag=True, help="Leave bad lines out and say how many there are.")
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
    every: str | None,
    top: int,
    chart: Path | None,
    as_json: bool,
    skip_bad: bool,
    no_progress: bool,
) -> None:
    """Count what a new filter, a change or another table would have delivered over history.

    It is compared with the live subscriptions: a delivery enters if only what is tried makes it,
    and leaves if only the live ones do. All counts are of the subscriptions that differ.

    A change holds from --since on, or always did, whatever the log says was changed later. A new
    subscription begins at --since, or with the first event. With --event-time each event is judged
    as of its time, and counts are given over time too; without it `t` is 0.

    Files are Parquet if their names end in .parquet, else JSON Lines. It runs on Spark.

    \b
    Examples:
      tidegate backtest --events quotes.jsonl --filter "price < 9" --event-time time
      tidegate backtest --events quotes.jsonl --event-time time --changes log.jsonl \\
          --set desk-7 limit=12 --chart desk-7.png
    """
    trial = TrialOptions(
        filter, params, id, subscriber, set, filter_of, unsubscribe, instead, since
    )
    _check_usage(trial, subscriptions, changes, event_time, every, chart)
    progress = ProgressBars(wanted=not no_progress)
    if is_first_run():
        progress.say("compiling the matching kernels, which takes half a minute, once")
    bad = BadLines(skip=skip_bad)
    run = _BacktestRun(TimeAttributes.of_options(event_time, timestamps), bad, progress)
    result = run.backtest(trial, subscriptions, changes, InputFile(events), every, top)
    click.echo(json.dumps(result.to_json(), ensure_ascii=False) if as_json else result.summary())
    if chart is not None:
        _draw(result, chart)
    bad.tell_skipped()


def _check_usage(
    trial: TrialOptions,
    subscriptions: str | None,
    changes: str | None,
    event_time: str | None,
    every: str | None,
    chart: Path | None,
) -> None:
    if subscriptions is not None and changes is not None:
        raise click.UsageError("give one of --subscriptions and --changes")
    trial.check(has_live=subscriptions is not None or changes is not None)
    if event_time is None:
        if changes is not None:
            raise click.UsageError(
                "--changes needs --event-time: events are judged as of their time"
            )
        timed = {"--since": trial.since, "--every": every, "--chart": chart}
        for option, value in timed.items():
            if value is not None:
                raise click.UsageError(f"{option} needs --event-time")
    if chart is not None:
        _check_chart(chart)


def _check_chart(chart: Path) -> None:
    """See that a chart can be drawn, before the work is done that it is to show."""
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
    """One run of the command."""

    times: TimeAttributes
    bad: BadLines
    progress: ProgressBars

    def backtest(
        self,
        trial: TrialOptions,
        subscriptions: str | None,
        changes: str | None,
        events: InputFile,
        every: str | None,
        top: int,
    ) -> Backtest:
        """Read the files, and ask Spark."""
        try:
            from tidegate.cli.spark_session import spark_session  # takes a while to import
        except ImportError as error:
            raise click.ClickException(f"a backtest needs the extra `spark`: {error}") from error
        from tidegate.cli.files.spark_events import SparkEvents
        from tidegate.spark import backtest
        from tidegate.spark.backtesting.trials import NewSubscription, TrialReader
        from tidegate.spark.session import local_session

        width = None if every is None else parse_duration(every)
        tried, live = self._tried(trial), self._live(subscriptions, changes)
        self.bad.refuse()
        # what cannot be tried is told before Spark is started
        reader = TrialReader(self.times.event_time, None, skip_bad=False)
        reader.sides(tried, NewSubscription(), live)
        with TemporaryDirectory(prefix="tidegate-") as folder:
            history = SparkEvents(Path(folder), self.times.event_time)
            with self.progress.of(events) as advance:
                for chunk in read_events(events, self.times, self.bad, advance):
                    if not self.bad.stops:
                        history.write(chunk)
            self.bad.refuse()
            self.progress.say("starting Spark, which takes some seconds")
            with spark_session(local_session) as spark:
                return backtest(
                    history.frame(spark),
                    tried,
                    live,
                    event_time=history.event_time,
                    every=width,
                    key=[],
                    attributes=history.attributes,
                    top=top,
                )

    def _tried(self, trial: TrialOptions) -> Trial:
        if trial.instead is None:
            return trial.changes()
        file = InputFile(trial.instead)
        log = is_log(file)
        if log and self.times.event_time is None:
            raise click.UsageError(f"{file.name} is a log of changes, which needs --event-time")
        return self._versions(file, log=log)

    def _live(self, subscriptions: str | None, changes: str | None) -> Versions | None:
        if subscriptions is not None:
            return self._versions(InputFile(subscriptions), log=False)
        return None if changes is None else self._versions(InputFile(changes), log=True)

    def _versions(self, file: InputFile, *, log: bool) -> Versions:
        from tidegate.spark.backtesting.trials import Versions

        with self.progress.of(file) as advance:
            read = read_log if log else read_table
            return Versions(read(file, self.bad, advance))
