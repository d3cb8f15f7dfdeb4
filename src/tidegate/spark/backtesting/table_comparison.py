"""Comparing the deliveries of two tables of subscriptions, in Spark's workers.

Theory of operation. Events have no identity, and two events may be equal. So matches of the two
tables cannot be joined by the content of their events. Instead both tables are matched with the
same Arrow batch, where an event is identified by its row, and the pairs of a row and a recipient
are compared at once. A recipient is a subscription and its subscriber: if an event goes to another
subscriber through the same subscription, then one delivery leaves and another one enters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as t

from tidegate.matching.batches import EventBatch, VersionColumns, VersionMatches
from tidegate.spark.backtesting.time_buckets import TimeBuckets
from tidegate.spark.delivery_rows import OUTPUT_ROWS_MAX, delivery_arrays
from tidegate.spark.index_files import IndexFile
from tidegate.spark.worker_tasks import DeliveryLayout

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Effect(Enum):
    """The effect of a changed table on a delivery."""

    ENTERING = "entering"
    LEAVING = "leaving"
    STAYING = "staying"


EFFECT_FIELD = t.StructField("effect", t.StringType(), False)

COUNTED = ("live", "changed", "entering", "leaving")
_NAMED = ("bucket", "subscriber", "subscription", "events")
COUNT_SCHEMA = t.StructType(
    [
        t.StructField("bucket", t.LongType()),
        t.StructField("subscriber", t.StringType()),
        t.StructField("subscription", t.StringType()),
        t.StructField("events", t.LongType()),
        *(t.StructField(name, t.LongType()) for name in COUNTED),
    ]
)
"""The counts of a partition. A row is for a bucket, or for a subscriber; a subscription without a
subscriber has a row of its own."""


@dataclass(frozen=True, slots=True)
class TableComparison:
    """The indexes of two tables, and the layout of events and deliveries."""

    live: IndexFile
    changed: IndexFile
    layout: DeliveryLayout

    def match(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_MatchedBatch]:
        """Match both tables with each batch."""
        live, changed = self.live.open(), self.changed.open()
        recipients: _Recipients | None = None
        for events in batches:
            batch = self.layout.event_batch(events)
            before, after = live.match(batch), changed.match(batch)
            # Once for a partition: the versions are the same in all its batches.
            if recipients is None:
                recipients = _Recipients.of(before.columns, after.columns)
            yield _MatchedBatch.of(events, batch, before, after, recipients)


@dataclass(frozen=True, slots=True)
class _Recipients:
    """The pairs of a subscription and its subscriber, of all versions in both tables."""

    of_live: Integers
    """The index of the pair of each version of the live table, by the number of the version."""
    of_changed: Integers
    """The same for the changed table."""
    subscriptions: Any
    """The subscription of each pair."""
    subscribers: Any
    """The subscriber of each pair."""

    @classmethod
    def of(cls, live: VersionColumns, changed: VersionColumns) -> _Recipients:
        ids = pa.concat_arrays([live.subscription, changed.subscription])
        subscribers = pa.concat_arrays([live.subscriber, changed.subscriber])
        codes = _codes(ids) * (len(subscribers) + 1) + _codes(subscribers)
        _, first, pairs = np.unique(codes, return_index=True, return_inverse=True)
        border = len(live.subscription)
        return cls(pairs[:border], pairs[border:], ids.take(first), subscribers.take(first))

    def __len__(self) -> int:
        return len(self.subscriptions)


def _codes(strings: Any) -> Integers:
    """A number for each string, the same for equal strings and for nulls."""
    indices = strings.dictionary_encode(null_encoding="encode").indices
    codes: Integers = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


@dataclass(frozen=True, slots=True)
class _MatchedBatch:
    """The matches of both tables with one batch of events, and which of them only one has."""

    events: pa.RecordBatch
    batch: EventBatch
    live: VersionMatches
    changed: VersionMatches
    recipients: _Recipients
    leaving: Flags
    """For each match of the live table, whether the changed table does not have it."""
    entering: Flags
    """For each match of the changed table, whether the live table does not have it."""

    @classmethod
    def of(
        cls,
        events: pa.RecordBatch,
        batch: EventBatch,
        live: VersionMatches,
        changed: VersionMatches,
        recipients: _Recipients,
    ) -> _MatchedBatch:
        # A delivery as one integer: the event and its recipient.
        count = len(recipients)
        first = live.events * count + recipients.of_live[live.numbers]
        second = changed.events * count + recipients.of_changed[changed.numbers]
        leaving, entering = ~np.isin(first, second), ~np.isin(second, first)
        return cls(events, batch, live, changed, recipients, leaving, entering)


@dataclass(frozen=True, slots=True)
class EffectTask:
    """Yields the deliveries of both tables, each with its effect; for `mapInArrow`."""

    comparison: TableComparison

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for matched in self.comparison.match(batches):
            events = matched.events.select(list(self.comparison.layout.kept))
            yield from _rows(events, matched.live, matched.leaving, Effect.LEAVING)
            yield from _rows(events, matched.changed, matched.entering, Effect.ENTERING)
            yield from _rows(events, matched.changed, ~matched.entering, Effect.STAYING)


def _rows(
    events: pa.RecordBatch, matches: VersionMatches, chosen: Flags, effect: Effect
) -> Iterator[pa.RecordBatch]:
    """The chosen matches as rows of deliveries with an effect, in chunks."""
    indexes = np.flatnonzero(chosen)
    for begin in range(0, len(indexes), OUTPUT_ROWS_MAX):
        chunk = indexes[begin : begin + OUTPUT_ROWS_MAX]
        rows = events.take(matches.events[chunk])
        added = delivery_arrays(matches, matches.numbers[chunk])
        effects = pa.repeat(effect.value, len(chunk))
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, *added.values(), effects], names=[*rows.schema.names, *added, "effect"]
        )


@dataclass(frozen=True, slots=True)
class CountTask:
    """Counts the deliveries of a partition by bucket and by subscriber; for `mapInArrow`.

    ``buckets`` is None if events have no times; all of them are counted as one bucket then.
    """

    comparison: TableComparison
    buckets: TimeBuckets | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally: _BucketTally | None = None
        for matched in self.comparison.match(batches):
            if tally is None:
                count = 1 if self.buckets is None else self.buckets.count
                tally = _BucketTally.empty(count, matched.recipients)
            tally.add(matched, self._bucket_indexes(matched.batch))
        if tally is not None:
            yield tally.bucket_rows()
            yield from tally.recipient_rows()

    def _bucket_indexes(self, batch: EventBatch) -> Integers:
        if self.buckets is None or batch.times_us is None:
            return np.zeros(batch.length, np.int64)
        return self.buckets.indexes(batch.times_us)


@dataclass(frozen=True, slots=True)
class _BucketTally:
    """The counts of a partition; two-dimensional arrays have a row for each name in ``COUNTED``."""

    events: Integers
    """The number of events in each bucket."""
    by_bucket: Integers
    by_recipient: Integers
    recipients: _Recipients

    @classmethod
    def empty(cls, buckets: int, recipients: _Recipients) -> _BucketTally:
        rows = len(COUNTED)
        return cls(
            np.zeros(buckets, np.int64),
            np.zeros((rows, buckets), np.int64),
            np.zeros((rows, len(recipients)), np.int64),
            recipients,
        )

    def add(self, matched: _MatchedBatch, buckets: Integers) -> None:
        """Add the matches of a batch; ``buckets`` has the index of the bucket of each event."""
        self.events[:] += np.bincount(buckets, minlength=len(self.events))
        live, changed = matched.live, matched.changed
        entering, leaving = matched.entering, matched.leaving
        of_live = self.recipients.of_live[live.numbers]
        of_changed = self.recipients.of_changed[changed.numbers]
        counted = [
            (live.events, of_live),
            (changed.events, of_changed),
            (changed.events[entering], of_changed[entering]),
            (live.events[leaving], of_live[leaving]),
        ]
        for row, (events, recipients) in enumerate(counted):
            self.by_bucket[row] += np.bincount(buckets[events], minlength=len(self.events))
            self.by_recipient[row] += np.bincount(recipients, minlength=len(self.recipients))

    def bucket_rows(self) -> pa.RecordBatch:
        """A row for each bucket that has events."""
        buckets = np.flatnonzero(self.events)
        no_name = pa.nulls(len(buckets), pa.string())
        named = [pa.array(buckets), no_name, no_name, pa.array(self.events[buckets])]
        return _count_rows(named, self.by_bucket[:, buckets])

    def recipient_rows(self) -> Iterator[pa.RecordBatch]:
        """A row for each recipient that has deliveries, in chunks."""
        counted = np.flatnonzero(self.by_recipient.any(axis=0))
        for begin in range(0, len(counted), OUTPUT_ROWS_MAX):
            chunk = counted[begin : begin + OUTPUT_ROWS_MAX]
            subscribers = self.recipients.subscribers.take(chunk)
            ids: Any = self.recipients.subscriptions.take(chunk)
            # Null if there is a subscriber, so that Spark adds up all its subscriptions.
            subscriptions = pc.if_else(subscribers.is_null(), ids, pa.scalar(None, pa.string()))
            no_number = pa.nulls(len(chunk), pa.int64())
            named = [no_number, subscribers, subscriptions, no_number]
            yield _count_rows(named, self.by_recipient[:, chunk])


def _count_rows(named: list[Any], counts: Integers) -> pa.RecordBatch:
    arrays = [*named, *(pa.array(each) for each in counts)]
    return pa.RecordBatch.from_arrays(arrays, names=[*_NAMED, *COUNTED])
