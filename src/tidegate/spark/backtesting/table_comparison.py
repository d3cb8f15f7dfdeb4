"""What runs in Spark's workers to compare two tables: both are matched with the same batch.

Theory of operation. Events have no identity of their own, and two may be equal. So no match of the
one table is ever looked up among the matches of the other by the contents of its event: both tables
are matched with the same Arrow batch, where an event is its row, and the pairs of a row and a
delivery are compared there and then. A delivery is a subscription and its subscriber: an event that
goes to another subscriber by the same subscription leaves one and enters the other.
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
from tidegate.spark.backtesting.buckets import Buckets
from tidegate.spark.delivery_rows import OUTPUT_ROWS_MAX, delivery_arrays
from tidegate.spark.shipping import IndexFile
from tidegate.spark.worker import DeliveryLayout

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class Effect(Enum):
    """What a changed table does to a delivery."""

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
"""Counts of a partition: of a bucket, or of a subscriber; a subscription without one stands for
itself."""


@dataclass(frozen=True, slots=True)
class TableComparison:
    """Two tables, and how events come in."""

    live: IndexFile
    changed: IndexFile
    layout: DeliveryLayout

    def matched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[_Matched]:
        """Match both tables with each batch."""
        live, changed = self.live.open(), self.changed.open()
        recipients: _Recipients | None = None
        for events in batches:
            batch = self.layout.taken(events)
            before, after = live.match(batch), changed.match(batch)
            if recipients is None:
                recipients = _Recipients.of(before.columns, after.columns)
            yield _Matched.of(events, batch, before, after, recipients)


@dataclass(frozen=True, slots=True)
class _Recipients:
    """Who gets what, of all versions of both tables: pairs of a subscription and its subscriber."""

    of_live: Integers
    """The pair of each version of the live table, by number."""
    of_changed: Integers
    subscriptions: Any
    subscribers: Any

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


def _codes(texts: Any) -> Integers:
    """A number for each text, the same for equal ones."""
    indices = texts.dictionary_encode(null_encoding="encode").indices
    codes: Integers = indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


@dataclass(frozen=True, slots=True)
class _Matched:
    """The matches of both tables with one batch of events, and which of them only one has."""

    events: pa.RecordBatch
    batch: EventBatch
    live: VersionMatches
    changed: VersionMatches
    recipients: _Recipients
    leaving: Flags
    """Of each match of the live table, whether it is one of that table alone."""
    entering: Flags

    @classmethod
    def of(
        cls,
        events: pa.RecordBatch,
        batch: EventBatch,
        live: VersionMatches,
        changed: VersionMatches,
        recipients: _Recipients,
    ) -> _Matched:
        count = len(recipients)
        first = live.events * count + recipients.of_live[live.numbers]
        second = changed.events * count + recipients.of_changed[changed.numbers]
        leaving, entering = ~np.isin(first, second), ~np.isin(second, first)
        return cls(events, batch, live, changed, recipients, leaving, entering)


@dataclass(frozen=True, slots=True)
class EffectTask:
    """Gives the deliveries of both tables, each with its effect; for `mapInArrow`."""

    comparison: TableComparison

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for matched in self.comparison.matched(batches):
            events = matched.events.select(list(self.comparison.layout.kept))
            yield from _rows(events, matched.live, matched.leaving, Effect.LEAVING)
            yield from _rows(events, matched.changed, matched.entering, Effect.ENTERING)
            yield from _rows(events, matched.changed, ~matched.entering, Effect.STAYING)


def _rows(
    events: pa.RecordBatch, found: VersionMatches, chosen: Flags, effect: Effect
) -> Iterator[pa.RecordBatch]:
    places = np.flatnonzero(chosen)
    for begin in range(0, len(places), OUTPUT_ROWS_MAX):
        some = places[begin : begin + OUTPUT_ROWS_MAX]
        rows = events.take(found.events[some])
        added = delivery_arrays(found, found.numbers[some])
        effects = pa.repeat(effect.value, len(some))
        yield pa.RecordBatch.from_arrays(
            [*rows.columns, *added.values(), effects], names=[*rows.schema.names, *added, "effect"]
        )


@dataclass(frozen=True, slots=True)
class CountTask:
    """Counts the deliveries of a partition by bucket and by subscriber; for `mapInArrow`.

    Without ``buckets`` there is one, because events have no times.
    """

    comparison: TableComparison
    buckets: Buckets | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tally: _BucketTally | None = None
        for matched in self.comparison.matched(batches):
            if tally is None:
                count = 1 if self.buckets is None else self.buckets.count
                tally = _BucketTally.empty(count, matched.recipients)
            tally.add(matched, self._places(matched.batch))
        if tally is not None:
            yield tally.of_buckets()
            yield from tally.of_recipients()

    def _places(self, batch: EventBatch) -> Integers:
        if self.buckets is None or batch.times_us is None:
            return np.zeros(batch.length, np.int64)
        return self.buckets.places(batch.times_us)


@dataclass(frozen=True, slots=True)
class _BucketTally:
    """Counts, in the order of ``COUNTED``: a column for each bucket, and for each recipient."""

    events: Integers
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

    def add(self, matched: _Matched, places: Integers) -> None:
        self.events[:] += np.bincount(places, minlength=len(self.events))
        live, changed, entering = matched.live, matched.changed, matched.entering
        leaving = matched.leaving
        of_live = self.recipients.of_live[live.numbers]
        of_changed = self.recipients.of_changed[changed.numbers]
        counted = [
            (live.events, of_live),
            (changed.events, of_changed),
            (changed.events[entering], of_changed[entering]),
            (live.events[leaving], of_live[leaving]),
        ]
        for row, (events, recipients) in enumerate(counted):
            self.by_bucket[row] += np.bincount(places[events], minlength=len(self.events))
            self.by_recipient[row] += np.bincount(recipients, minlength=len(self.recipients))

    def of_buckets(self) -> pa.RecordBatch:
        buckets = np.flatnonzero(self.events)
        nobody = pa.nulls(len(buckets), pa.string())
        named = [pa.array(buckets), nobody, nobody, pa.array(self.events[buckets])]
        return _count_rows(named, self.by_bucket[:, buckets])

    def of_recipients(self) -> Iterator[pa.RecordBatch]:
        counted = np.flatnonzero(self.by_recipient.any(axis=0))
        for begin in range(0, len(counted), OUTPUT_ROWS_MAX):
            some = counted[begin : begin + OUTPUT_ROWS_MAX]
            subscribers = self.recipients.subscribers.take(some)
            own: Any = self.recipients.subscriptions.take(some)
            itself = pc.if_else(subscribers.is_null(), own, pa.scalar(None, pa.string()))
            nothing = pa.nulls(len(some), pa.int64())
            yield _count_rows([nothing, subscribers, itself, nothing], self.by_recipient[:, some])


def _count_rows(named: list[Any], counts: Integers) -> pa.RecordBatch:
    arrays = [*named, *(pa.array(each) for each in counts)]
    return pa.RecordBatch.from_arrays(arrays, names=[*_NAMED, *COUNTED])
