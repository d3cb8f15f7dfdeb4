"""`tidegate match`: which events of a file match which subscriptions?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import click

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.changes import read_changes
from tidegate.cli.files.events import EventChunk, TimeAttributes, read_events
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import Advance, InputFile
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
from tidegate.matching.engine import Engine
from tidegate.matching.registry import MATCHERS
from tidegate.matching.rows.kernels.jit import is_first_run
from tidegate.matching.space_file import read_space


@click.command()
@click.option(
    "--subscriptions", metavar="FILE", help="File of subscriptions, each with `id` and `filter`."
)
@click.option("--changes", metavar="FILE", help="Instead of --subscriptions: a log of changes.")
@click.option("--events", metavar="FILE", required=True, help="File of events; `-` is stdin.")
@click.option(
    "--output", metavar="FILE", default=STDOUT, help="File of matches.  [default: stdout]"
)
@click.option(
    "--engine",
    "matcher",
    type=click.Choice([*sorted(MATCHERS), "spark"]),
    default="columnar",
    show_default=True,
    help="Engine that finds the matches. All find the same, but spark evaluates `cached` filters "
    "as `lazy`. tree is faster where filters ask for equality with few values, and far slower "
    "where they ask for ranges.",
)
@click.option("--event-time", metavar="NAME", help="Attribute with the time of an event.")
@click.option(
    "--timestamps", metavar="NAMES", default="", help="Other attributes that are times: a,b,c."
)
@click.option(
    "--space", "space_file", metavar="FILE", help="Space that events and filters must fit."
)
@click.option("--skip-bad", is_flag=True, help="Skip bad lines and print their number.")
@click.option("--no-progress", is_flag=True, help="Show no progress bar.")
@click.option("--no-hints", is_flag=True, help="Say nothing about filters that look mistaken.")
def match(
    subscriptions: str | None,
    changes: str | None,
    events: str,
    output: str,
    matcher: str,
    event_time: str | None,
    timestamps: str,
    space_file: str | None,
    skip_bad: bool,
    no_progress: bool,
    no_hints: bool,
) -> None:
    """Find all matches of the events of a file with subscriptions.

    Each match is a line {"event": INDEX, "subscription": ID}, ordered by event, then by id. The
    index of an event is its position in the file, from 0; bad lines count, blank lines do not.

    Files are Parquet if their names end in .parquet, else JSON Lines; matches are written as .csv
    and .tsv too. A bad line is an error, and then nothing is written; --skip-bad skips such lines.

    With --event-time each event is matched as of its own time: subscriptions hold from `since` on
    and before `until`, and `t` counts from `since`. With --changes it is matched with the
    subscriptions as of that time; all events are then in memory. Without times `t` is 0.

    Filters that look mistaken (an attribute that no event has, a parameter without a value) are
    named on stderr in the end.

    With --space events and subscriptions that do not fit the space are bad lines, and strings are
    timestamps where the space says so.

    \b
    Examples:
      tidegate match --subscriptions wanted.jsonl --events quotes.jsonl
      tidegate match --changes log.jsonl --events quotes.parquet --event-time time
    """
    if (subscriptions is None) == (changes is None):
        raise click.UsageError("give one of --subscriptions and --changes")
    if changes is not None and event_time is None:
        raise click.UsageError("--changes needs --event-time: events are matched as of their time")
    progress = ProgressBars(wanted=not no_progress)
    if matcher == "spark" and is_first_run():
        progress.say("compiling the kernels of the workers, which takes some seconds, once")
    bad = BadLines(skip=skip_bad)
    space = None if space_file is None else read_space(space_file)
    times = TimeAttributes.from_options(event_time, timestamps, space)
    hints = Hints(values_come_later=changes is not None)
    run: MatchRun
    if matcher == "spark":
        from tidegate.cli.match_on_spark import SparkRun  # an optional extra, seconds to import

        run = SparkRun(times, bad, progress, hints, space)
    else:
        engine = Engine(matcher=matcher, clock=lambda: None, space=space)
        run = _EngineRun(engine, times, bad, progress, hints)
    wanted, published = InputFile(changes or subscriptions or ""), InputFile(events)
    # The output file is opened first: one that cannot be written is reported before the work.
    with matches_file(output, (wanted, published)) as writer:
        if changes is not None:
            run.match_log(wanted, published, writer)
        else:
            run.match(wanted, published, writer)
    if not no_hints:
        hints.print()
    bad.print_skipped()


class MatchRun(Protocol):
    """One run of the command, in this process or on Spark."""

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions."""
        ...

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, with a log of changes."""
        ...


class _EngineRun:
    """A run with an engine in this process."""

    def __init__(
        self,
        engine: Engine,
        times: TimeAttributes,
        bad: BadLines,
        progress: ProgressBars,
        hints: Hints,
    ) -> None:
        self._engine = engine
        self._hints = hints
        self._times = times
        self._bad = bad
        self._progress = progress
        self._matcher = PacedMatcher(engine)

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions, chunk by chunk."""
        with self._progress.reading(subscriptions) as advance:
            subscribe_all(self._engine, subscriptions, self._bad, self._hints, advance)
        self._bad.raise_errors()
        with self._progress.reading(events) as advance:
            for chunk in self._read_events(events, advance):
                if self._bad.has_errors:  # reading goes on only to find all bad lines
                    continue
                # Chunks and batches follow the order of the file, so sorting each batch sorts all.
                for matches in self._matcher.match(chunk):
                    writer.write(OrderedMatches.of(matches))
        self._bad.raise_errors()

    def _read_events(self, events: InputFile, advance: Advance) -> Iterator[EventChunk]:
        for chunk in read_events(events, self._times, self._bad, advance, self._engine.space):
            self._hints.add_events(chunk)
            yield chunk

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, with a log of changes."""
        with self._progress.reading(changes) as advance:
            numbered = read_changes(changes, self._bad, advance)
        self._bad.raise_errors()
        with self._progress.reading(events) as advance:
            chunks = list(self._read_events(events, advance))
        self._bad.raise_errors()
        all_events = EventChunk.concat(chunks, self._times.event_time)
        ordered, time_us = all_events.sorted_by_time()
        log = ChangeLog(self._engine, changes, self._bad, self._hints)
        collected = CollectedMatches()
        with self._progress.steps("matching", len(ordered)) as advance:
            for start, stop in play(log, numbered, time_us):
                advance(stop - start)
                if not self._bad.has_errors:
                    for matches in self._matcher.match(ordered.slice(start, stop)):
                        collected.add(matches)
        self._bad.raise_errors()
        writer.write(OrderedMatches.of(collected.all()))
