"""Backtests: what changed subscriptions would have delivered over history.

Theory of operation. The change that is tried out becomes two lists of versions (`trials.py`): those
of the live table, and those that the changed table would have had. Each list becomes an index. One
pass over the events matches each batch with both indexes and counts their deliveries
(`table_comparison.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.errors import BadValueError, EventError
from tidegate.language.durations import parse_duration
from tidegate.language.values import from_us
from tidegate.matching.batches import as_value_array, times_us_of
from tidegate.spark.backtesting.result import Backtest, BucketCounts, Counts, SubscriberCounts
from tidegate.spark.backtesting.table_comparison import (
    COUNT_SCHEMA,
    COUNTED,
    EFFECT_FIELD,
    CountTask,
    EffectTask,
    TableComparison,
)
from tidegate.spark.backtesting.time_buckets import TimeBuckets
from tidegate.spark.backtesting.trials import (
    NewSubscription,
    Table,
    Trial,
    TrialReader,
)
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_events,
    checked_variables,
    kept_columns,
    quoted_column,
    result_schema,
)
from tidegate.spark.index_files import ship_index
from tidegate.spark.misfits import Misfits, event_kinds
from tidegate.spark.subscription_tables import build_matcher
from tidegate.spark.worker_tasks import DeliveryLayout


def backtest(
    events: DataFrame,
    filter_or_change: Trial,
    live: Table | None = None,
    *,
    event_time: str | None = None,
    every: timedelta | str | None = None,
    key: str | Sequence[str] | None = None,
    params: Mapping[str, object] | None = None,
    id: str = "new",
    subscriber: str | None = None,
    since: datetime | None = None,
    variables: Mapping[str, object] | None = None,
    attributes: Mapping[str, str] | None = None,
    top: int = 10,
    skip_bad: bool = False,
    strict: bool = False,
) -> Backtest:
    """What a new filter, some changes or another table would have delivered, compared to ``live``.

    ``events`` is history, a table as for `match`. ``filter_or_change`` is one of

    - a filter, with its ``params``, ``id`` and ``subscriber``: one more subscription, from
      ``since`` on, or by default from the first event on;
    - a change of a subscription of ``live``, or a list of changes: a `Change`, or a mapping such as
      ``{"op": "update", "id": "cheap", "params": {"limit": 12}}``. It holds from its time on,
      whatever was changed later; without a `time` it holds for all of history;
    - a whole table of subscriptions or change log, in place of ``live``.

    A delivery is an event, a subscription and its subscriber. It enters if only the changed table
    makes it, and leaves if only the live one does.

    With ``event_time`` each event is judged as of its time, and there are counts over time too, in
    buckets of ``every`` (a timedelta, or a text like "5m"; by default chosen by the span of
    history). Without it there are no counts over time, and a change log is refused.

    ``key``, ``variables``, ``skip_bad`` and ``strict`` are as for `match`. ``top`` is the number of
    subscribers to list. ``attributes`` maps columns to attributes, where their names differ.
    """
    if events.isStreaming:
        raise EventError("a backtest takes a table of events, and these are a stream")
    check_events(events, event_time)
    width = parse_duration(every) if isinstance(every, str) else every
    if width is not None and event_time is None:
        raise BadValueError("`every` needs `event_time`: counts over time need times")
    added = {field.name for field in [*DELIVERY_FIELDS, EFFECT_FIELD]}
    kept = tuple(kept_columns(events, key, added))
    layout = DeliveryLayout(
        event_time,
        kept,
        grouped=False,
        variables=checked_variables(variables),
        attributes=attributes,
    )
    # A pass of its own over the events, because the buckets must be known before the counting, and
    # a filter that is tried out holds from the first event on.
    span = None if event_time is None else _HistorySpan.of(events, event_time)
    reader = TrialReader(event_time, None if span is None else span.first, skip_bad)
    new = NewSubscription(id, params, subscriber, since)
    differing = reader.differing_versions(filter_or_change, new, live)
    buckets = None if span is None else TimeBuckets.over(span.first_us, span.last_us, width)
    live_matcher, changed_matcher = (
        build_matcher(each, skip_bad=skip_bad) for each in (differing.live, differing.changed)
    )
    if attributes is None:
        misfits = Misfits()
        misfits.add_all(changed_matcher, event_kinds(events))
        misfits.report(strict=strict)
    comparison = TableComparison(
        ship_index(events.sparkSession, live_matcher),
        ship_index(events.sparkSession, changed_matcher),
        layout,
    )
    return _compare(events, comparison, differing.subscriptions, span, buckets, top)


@dataclass(frozen=True, slots=True)
class _HistorySpan:
    """The times of the first and the last event, in microseconds since 1970."""

    first_us: int
    last_us: int

    @classmethod
    def of(cls, events: DataFrame, event_time: str) -> _HistorySpan | None:
        """The span of the events; None if there are none."""
        time = quoted_column(event_time)
        row: Any = events.agg(
            f.min(time).alias("first"),
            f.max(time).alias("last"),
            f.count_if(time.isNull()).alias("missing"),
        ).toArrow()
        missing = row.column("missing")[0].as_py()
        if missing:
            raise EventError(
                f"column {event_time!r} holds the time of events; {missing:,} of them have none"
            )
        if row.column("first").null_count:
            return None
        ends = pa.concat_arrays([*row.column("first").chunks, *row.column("last").chunks])
        first_us, last_us = times_us_of(as_value_array(event_time, ends), event_time).tolist()
        return cls(first_us, last_us)

    @property
    def first(self) -> datetime | None:
        """The time of the first event."""
        return from_us(self.first_us)

    @property
    def last(self) -> datetime | None:
        """The time of the last event."""
        return from_us(self.last_us)


def _compare(
    events: DataFrame,
    comparison: TableComparison,
    subscriptions: int,
    span: _HistorySpan | None,
    buckets: TimeBuckets | None,
    top: int,
) -> Backtest:
    """Match the events with both indexes, and count."""
    rows = _count(events, CountTask(comparison, buckets))
    by_bucket = {each["bucket"]: each for each in rows if each["bucket"] is not None}
    subscribers = [_subscriber_counts(each) for each in rows if each["bucket"] is None]
    schema = result_schema(events, comparison.layout.kept, grouped=False)
    return Backtest(
        events=sum(each["events"] for each in by_bucket.values()),
        subscriptions=subscriptions,
        counts=sum((_counts(each) for each in by_bucket.values()), Counts()),
        first=None if span is None else span.first,
        last=None if span is None else span.last,
        every=None if buckets is None else buckets.width,
        buckets=() if buckets is None else _bucket_counts(buckets, by_bucket),
        subscribers=tuple(sorted(subscribers, key=_most_changed_first)[:top]),
        subscribers_in_all=len(subscribers),
        deliveries=events.mapInArrow(
            EffectTask(comparison), t.StructType([*schema.fields, EFFECT_FIELD])
        ),
    )


_ResultRow = dict[str, Any]


def _count(events: DataFrame, task: CountTask) -> list[_ResultRow]:
    """The counts of all partitions, added up."""
    # Workers count their partitions, so that only counts are shuffled and not deliveries.
    partial = events.mapInArrow(task, COUNT_SCHEMA)
    sums = [f.sum(name).alias(name) for name in ("events", *COUNTED)]
    rows: list[_ResultRow] = (
        partial.groupBy("bucket", "subscriber", "subscription").agg(*sums).toArrow().to_pylist()
    )
    return rows


def _counts(row: _ResultRow) -> Counts:
    return Counts(**{name: row[name] for name in COUNTED})


def _bucket_counts(
    buckets: TimeBuckets, rows: Mapping[int, _ResultRow]
) -> tuple[BucketCounts, ...]:
    """The counts of all buckets, including those without events, which have no row."""
    zeros = {"events": 0, **dict.fromkeys(COUNTED, 0)}
    return tuple(
        BucketCounts(buckets.begin(index), row["events"], _counts(row))
        for index, row in ((index, rows.get(index, zeros)) for index in range(buckets.count))
    )


def _subscriber_counts(row: _ResultRow) -> SubscriberCounts:
    return SubscriberCounts(row["subscriber"], row["subscription"], _counts(row))


def _most_changed_first(each: SubscriberCounts) -> tuple[int, int, str]:
    """Sort key: most changed deliveries first, then most deliveries, then by name."""
    counts = each.counts
    return -(counts.entering + counts.leaving), -(counts.live + counts.changed), each.name
