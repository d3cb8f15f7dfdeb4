"""`tidegate match`: which events of a file match which subscriptions?"""

from __future__ import annotations

from typing import Protocol

import click

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.changes import read_changes
from tidegate.cli.files.events import EventChunk, TimeAttributes, read_events
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.matches import (
    STDOUT,
    CollectedMatches,
    MatchesWriter,
    OrderedMatches,
    matches_file,
)
from tidegate.cli.files.subscriptions import subscribe_all
from tidegate.cli.pacing import PacedMatcher
from tidegate.cli.progress import ProgressBars
from tidegate.cli.replay import ChangeLog, play
from tidegate.matching.columnar.kernels.jit import is_first_run
from tidegate.matching.engine import MATCHERS, Engine


@click.command()
@click.option(
    "--subscriptions", metavar="FILE", help="The subscriptions, each with `id`, `filter`."
)
@click.option("--changes", metavar="FILE", help="In their place: who subscribed to what, and when.")
@click.option("--events", metavar="FILE", required=True, help="The events; `-` is stdin.")
@click.option("--output", metavar="FILE", default=STDOUT, help="Where matches go; else to stdout.")
@click.option(
    "--engine",
    "matcher",
    type=click.Choice([*sorted(MATCHERS), "spark"]),
    default="columnar",
    show_default=True,
    help="What finds the matches. All give the same, but Spark takes `cached` for `lazy`.",
)
@click.option("--event-time", metavar="NAME", help="The attribute that has an event's time.")
@click.option("--timestamps", metavar="NAMES", default="", help="More that are times: a,b,c.")
@click.option("--skip-bad", is_flag=True, help="Leave bad lines out and say how many there are.")
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
def match(
    subscriptions: str | None,
    changes: str | None,
    events: str,
    output: str,
    matcher: str,
    event_time: str | None,
    timestamps: str,
    skip_bad: bool,
    no_progress: bool,
) -> None:
    """Find all matches of the events of a file with subscriptions.

    Each match is a line {"event": INDEX, "subscription": ID}, ordered by event, then by id. The
    index of an event is its place in the file from 0; blank lines do not count, bad lines do.

    Files are Parquet if their names end in .parquet, else JSON Lines. A bad line is an error, and
    then nothing is written; --skip-bad leaves such lines out.

    With --event-time each event is judged at its own time: subscriptions hold from `since` on and
    before `until`, and `t` counts from `since`. With --changes it is judged by the subscriptions
    as they were at that time; the events are then held in memory. Without times `t` is 0.

    \b
    Examples:
      tidegate match --subscriptions wanted.jsonl --events quotes.jsonl
      tidegate match --changes log.jsonl --events quotes.parquet --event-time time
    """
    if (subscriptions is None) == (changes is None):
        raise click.UsageError("give one of --subscriptions and --changes")
    if changes is not None and event_time is None:
        raise click.UsageError("--changes needs --event-time: events are judged as of their time")
    progress = ProgressBars(wanted=not no_progress)
    if matcher in ("columnar", "spark") and is_first_run():
        progress.say("compiling the matching kernels, which takes half a minute, once")
    bad = BadLines(skip=skip_bad)
    times = TimeAttributes.of_options(event_time, timestamps)
    run: MatchRun
    if matcher == "spark":
        from tidegate.cli.match_on_spark import SparkRun  # takes a while to import

        run = SparkRun(times, bad, progress)
    else:
        run = _EngineRun(Engine(matcher=matcher, clock=lambda: None), times, bad, progress)
    with matches_file(output) as writer:
        if changes is not None:
            run.match_log(InputFile(changes), InputFile(events), writer)
        elif subscriptions is not None:
            run.match(InputFile(subscriptions), InputFile(events), writer)
    bad.tell_skipped()


class MatchRun(Protocol):
    """One run of the command."""

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions."""
        ...

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, by a log of changes."""
        ...


class _EngineRun:
    """A run with an engine in this process."""

    def __init__(
        self, engine: Engine, times: TimeAttributes, bad: BadLines, progress: ProgressBars
    ) -> None:
        self._engine = engine
        self._times = times
        self._bad = bad
        self._progress = progress
        self._matcher = PacedMatcher(engine)

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions, chunk by chunk."""
        with self._progress.of(subscriptions) as advance:
            subscribe_all(self._engine, subscriptions, self._bad, advance)
        self._bad.refuse()
        with self._progress.of(events) as advance:
            for chunk in read_events(events, self._times, self._bad, advance):
                if self._bad.stops:  # from here on, bad lines are only counted
                    continue
                for matches in self._matcher.match(chunk):
                    writer.write(OrderedMatches.of(matches))
        self._bad.refuse()

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, by a log of changes."""
        with self._progress.of(changes) as advance:
            numbered = read_changes(changes, self._bad, advance)
        self._bad.refuse()
        with self._progress.of(events) as advance:
            chunks = list(read_events(events, self._times, self._bad, advance))
        self._bad.refuse()
        in_time, time_us = EventChunk.of_all(chunks, self._times.event_time).in_time()
        log = ChangeLog(self._engine, changes, self._bad)
        found = CollectedMatches()
        with self._progress.steps("matching", len(in_time)) as advance:
            for start, stop in play(log, numbered, time_us):
                advance(stop - start)
                if not self._bad.stops:
                    for matches in self._matcher.match(in_time.part(start, stop)):
                        found.add(matches)
        self._bad.refuse()
        writer.write(OrderedMatches.of(found.all()))
