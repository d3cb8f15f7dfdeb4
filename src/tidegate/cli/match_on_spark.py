"""`tidegate match --engine spark`: the same matches, found by Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.events import TimeAttributes, read_events
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.matches import MatchesWriter, OrderedMatches
from tidegate.cli.files.spark_events import INDEX, SparkEvents
from tidegate.cli.files.versions import read_log, read_table
from tidegate.cli.progress import ProgressBars
from tidegate.cli.spark_session import spark_session
from tidegate.matching.batches import Matches
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Version
from tidegate.spark.columns import DELIVERY_FIELDS
from tidegate.spark.session import local_session
from tidegate.spark.shipping import ship
from tidegate.spark.worker import DeliveryLayout, MatchTask


class SparkRun:
    """One run of the command with Spark."""

    def __init__(self, times: TimeAttributes, bad: BadLines, progress: ProgressBars) -> None:
        self._times = times
        self._bad = bad
        self._progress = progress

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions."""
        with self._progress.of(subscriptions) as advance:
            versions = read_table(subscriptions, self._bad, advance)
        if self._times.event_time is None:  # without times nothing ends
            versions = [replace(each, until=None) for each in versions]
        self._run(versions, events, writer)

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, by a log of changes."""
        with self._progress.of(changes) as advance:
            versions = read_log(changes, self._bad, advance)
        self._run(versions, events, writer)

    def _run(self, versions: list[Version], events: InputFile, writer: MatchesWriter) -> None:
        self._bad.refuse()
        with TemporaryDirectory(prefix="tidegate-") as folder:
            columns = SparkEvents(Path(folder), self._times.event_time)
            with self._progress.of(events) as advance:
                for chunk in read_events(events, self._times, self._bad, advance):
                    columns.write(chunk)
            self._bad.refuse()
            self._progress.say("matching with Spark")
            with spark_session(local_session) as spark:
                found = _matches(spark, columns, AsOfMatcher(versions))
        writer.write(OrderedMatches.of(found))


def _matches(spark: SparkSession, columns: SparkEvents, matcher: AsOfMatcher) -> Matches:
    """The matches of all events."""
    events = columns.frame(spark)
    layout = DeliveryLayout(
        columns.event_time, (INDEX,), grouped=False, attributes=columns.attributes
    )
    schema = t.StructType([events.schema[INDEX], *DELIVERY_FIELDS])
    found = events.mapInArrow(MatchTask(ship(spark, matcher), layout), schema)
    pairs = found.select(INDEX, "subscription").toArrow()
    ids: Any = pairs.column("subscription").combine_chunks()
    indexes: Any = pairs.column(INDEX).to_numpy()
    return Matches(indexes, ids)
