"""`tidegate match --engine spark`: the same matches, found on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tidegate.cli.files.bad_lines import BadLines
from tidegate.cli.files.events import TimeAttributes, read_events
from tidegate.cli.files.hints import Hints
from tidegate.cli.files.input_file import InputFile
from tidegate.cli.files.matches import MatchesWriter, OrderedMatches
from tidegate.cli.files.spark_events import INDEX, SparkEvents
from tidegate.cli.files.versions import read_log, read_table
from tidegate.cli.progress import ProgressBars
from tidegate.cli.spark_session import spark_session
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.spaces import Space
from tidegate.matching.batches import Matches
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Version
from tidegate.matching.records import subscription_of
from tidegate.spark.columns import DELIVERY_FIELDS
from tidegate.spark.index_files import ship_index
from tidegate.spark.session import local_session
from tidegate.spark.worker_tasks import DeliveryLayout, MatchTask


class SparkRun:
    """One run of the command with Spark."""

    def __init__(
        self,
        times: TimeAttributes,
        bad: BadLines,
        progress: ProgressBars,
        hints: Hints,
        space: Space | None,
    ) -> None:
        self._times = times
        self._hints = hints
        self._space = space
        self._bad = bad
        self._progress = progress

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions."""
        with self._progress.reading(subscriptions) as advance:
            versions = read_table(subscriptions, self._bad, advance, self._space)
        if self._times.event_time is None:  # without event times no subscription ends
            versions = [replace(each, until=None) for each in versions]
        self._run(versions, events, writer)

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, with a log of changes."""
        with self._progress.reading(changes) as advance:
            versions = read_log(changes, self._bad, advance, self._space)
        self._run(versions, events, writer)

    def _run(self, versions: list[Version], events: InputFile, writer: MatchesWriter) -> None:
        self._bad.raise_errors()
        parser = BulkParser()
        self._hints.add_subscriptions(subscription_of(each, parser) for each in versions)
        with TemporaryDirectory(prefix="tidegate-") as folder:
            spark_events = SparkEvents(Path(folder), self._times.event_time)
            with self._progress.reading(events) as advance:
                for chunk in read_events(events, self._times, self._bad, advance, self._space):
                    self._hints.add_events(chunk)
                    spark_events.write(chunk)
            self._bad.raise_errors()
            self._progress.say("matching with Spark")
            with spark_session(local_session) as spark:
                matches = _match(spark, spark_events, AsOfMatcher(versions))
        writer.write(OrderedMatches.of(matches))


def _match(spark: SparkSession, spark_events: SparkEvents, matcher: AsOfMatcher) -> Matches:
    """The matches of all events, collected on the driver, which writes them in order.

    It uses the worker task of `tidegate.spark.match` directly, because only the task can map
    several columns to one attribute.
    """
    events = spark_events.frame(spark)
    layout = DeliveryLayout(
        spark_events.event_time, (INDEX,), grouped=False, attributes=spark_events.attributes
    )
    schema = t.StructType([events.schema[INDEX], *DELIVERY_FIELDS])
    deliveries = events.mapInArrow(MatchTask(ship_index(spark, matcher), layout), schema)
    pairs = deliveries.select(INDEX, "subscription").toArrow()
    ids: Any = pairs.column("subscription").combine_chunks()
    indexes: Any = pairs.column(INDEX).to_numpy()
    return Matches(indexes, ids)
