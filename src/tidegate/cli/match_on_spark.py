"""`tidegate match --engine spark`: the same matches, found by Spark.

Events are read and checked as for every other engine, and handed to Spark in Parquet files. There a
column has one type, so an attribute has a column for each kind of value that it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tidegate.cli.bad_lines import BadLines
from tidegate.cli.changes_file import read_changes
from tidegate.cli.events_file import EventChunk, TimeAttributes, read_events
from tidegate.cli.input_file import InputFile
from tidegate.cli.matches_file import MatchesWriter, OrderedMatches
from tidegate.cli.progress import Progress
from tidegate.cli.spark_session import spark_session
from tidegate.cli.subscriptions_file import read_subscriptions
from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.bulk import BulkParser
from tidegate.matching.as_of import AsOfMatcher
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.records import subscription_of
from tidegate.matching.versions import Version, versions_of
from tidegate.spark.columns import DELIVERY_FIELDS
from tidegate.spark.session import local_session
from tidegate.spark.shipping import ship
from tidegate.spark.worker import Layout, MatchTask

INDEX = "event"
TIME = "time"


class SparkRun:
    """One run of the command with Spark."""

    def __init__(self, times: TimeAttributes, bad: BadLines, progress: Progress) -> None:
        self._times = times
        self._bad = bad
        self._progress = progress

    def match(self, subscriptions: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events with subscriptions."""
        with self._progress.of(subscriptions) as advance:
            numbered = read_subscriptions(subscriptions, self._bad, advance)
            versions = self._good(numbered, subscriptions)
        if self._times.event_time is None:  # without times nothing ends
            versions = [replace(each, until=None) for each in versions]
        self._run(versions, events, writer)

    def match_log(self, changes: InputFile, events: InputFile, writer: MatchesWriter) -> None:
        """Match events as of their own time, by a log of changes."""
        with self._progress.of(changes) as advance:
            numbered = read_changes(changes, self._bad, advance)
        number_of = {id(change): number for number, change in numbered}
        versions, refused = versions_of(change for _, change in numbered)
        for each in sorted(refused, key=lambda each: number_of[id(each.change)]):
            self._bad.add(changes, number_of[id(each.change)], SubscriptionError(each.reason))
        self._run(versions, events, writer)

    def _good(self, numbered: Iterable[tuple[int, Version]], file: InputFile) -> list[Version]:
        """The subscriptions that can be used; the others are noted."""
        parser = BulkParser()
        good: dict[str, Version] = {}
        for number, record in numbered:
            try:
                if record.id in good:
                    raise SubscriptionError(f"there already is a subscription {record.id!r}")
                subscription_of(record, parser)
                good[record.id] = record
            except TidegateError as error:
                self._bad.add(file, number, error)
        return list(good.values())

    def _run(self, versions: list[Version], events: InputFile, writer: MatchesWriter) -> None:
        self._bad.refuse()
        with TemporaryDirectory(prefix="tidegate-") as folder:
            columns = _EventColumns(Path(folder), self._times.event_time)
            with self._progress.of(events) as advance:
                for chunk in read_events(events, self._times, self._bad, advance):
                    columns.write(chunk)
            self._bad.refuse()
            self._progress.say("matching with Spark")
            with spark_session(local_session) as spark:
                found = columns.match(spark, AsOfMatcher(versions))
        writer.write(OrderedMatches.of(found))


class _EventColumns:
    """Events in Parquet files: their indexes, their times, and a column for each kind of value."""

    def __init__(self, folder: Path, event_time: str | None) -> None:
        self._folder = folder
        self._event_time = event_time
        self._names: dict[tuple[str, pa.DataType], str] = {}
        self._files = 0

    def write(self, chunk: EventChunk) -> None:
        """Add a file with some events."""
        if isinstance(chunk.events, pa.Table):
            batch = EventBatch.of(chunk.events)
        else:
            batch = EventBatch.of_events(chunk.events)
        columns: dict[str, Any] = {INDEX: pa.array(chunk.indexes)}
        if self._event_time is not None:
            columns[TIME] = pa.array(chunk.micros()).cast(pa.timestamp("us", "UTC"))
        for attribute, column in batch.columns:
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            if not pa.types.is_null(plain.type):
                columns[self._name(attribute, plain.type)] = plain
        pq.write_table(pa.table(columns), self._folder / f"{self._files:06}.parquet")
        self._files += 1

    def _name(self, attribute: str, kind: pa.DataType) -> str:
        return self._names.setdefault((attribute, kind), f"a{len(self._names)}")

    def match(self, spark: SparkSession, matcher: AsOfMatcher) -> Matches:
        """The matches of all events."""
        if not self._files:
            return Matches(np.zeros(0, np.int64), pa.array([], pa.string()))
        events = spark.read.option("mergeSchema", True).parquet(str(self._folder))
        attributes = {name: attribute for (attribute, _), name in self._names.items()}
        time = None if self._event_time is None else TIME
        layout = Layout(time, (INDEX,), grouped=False, attributes=attributes)
        schema = t.StructType([events.schema[INDEX], *DELIVERY_FIELDS])
        found = events.mapInArrow(MatchTask(ship(spark, matcher), layout), schema)
        pairs = found.select(INDEX, "subscription").toArrow()
        ids: Any = pairs.column("subscription").combine_chunks()
        indexes: Any = pairs.column(INDEX).to_numpy()
        return Matches(indexes, ids)
