"""Backtests: what changed subscriptions would have delivered over history.

Theory of operation. What is tried out becomes two lists of versions (`trials.py`): those of the
live table, and those that there would have been. The two lists become two indexes, and one pass
over the events matches each batch with both (`comparison.py`) and counts what they deliver.
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
from tidegate.spark.backtesting.buckets import Buckets
from tidegate.spark.backtesting.comparison import (
    COUNT_SCHEMA,
    COUNTED,
    EFFECT_FIELD,
    CountTask,
    EffectTask,
    TableComparison,
)
from tidegate.spark.backtesting.result import Backtest, BucketCounts, Counts, SubscriberCounts
from tidegate.spark.backtesting.trials import NewSubscription, Sides, Table, Trial, TrialReader
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_events,
    checked_variables,
    kept_columns,
    result_schema,
)
from tidegate.spark.shipping import ship
from tidegate.spark.subscriptions import matcher_of
from tidegate.spark.worker import DeliveryLayout


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
) -> Backtest:
    """What a new filter, some changes or another table would have delivered, against ``live``.

    ``events`` is history, a table as for `match`. What is tried out is one of

    - a filter, with its ``params``, ``id`` and ``subscriber``: one subscription more, from
      ``since`` on, or else from the first event on;
    - a change of a subscription of ``live``, or a list of them: a `Change`, or a mapping such as
      ``{"op": "update", "id": "cheap", "params": {"limit": 12}}``. It holds from its time on,
      whatever was changed later; without a `time` it always held;
    - a whole table of subscriptions or log of changes, in place of ``live``.

    A delivery is an event, a subscription and its subscriber. It enters if only the changed table
    makes it, and leaves if only the live one does.

    With ``event_time`` each event is judged as of its time, and counts are given over time too, in
    buckets of ``every`` (a timedelta, or a text like "5m"; if not given, chosen by the span of
    history). Without it there are no counts over time, and a log of changes is refused.

    ``key``, ``variables`` and ``skip_bad`` are as for `match`. ``top`` is how many subscribers are
    listed. ``attributes`` has the attributes that columns hold, where these have other names.
    """
    if events.isStreaming:
        raise EventError("a backtest takes a table of events, and these are a stream")
    check_events(events, event_time)
    width = parse_duration(every) if isinstance(every, str) else every
    if width is not None and event_time is None:
        raise BadValueError("`every` needs `event_time`: counts over time need times")
    added = {field.name for field in [*DELIVERY_FIELDS, EFFECT_FIELD]}
    kept = tuple(kept_columns(events, key, added))
    known = checked_variables(variables)
    layout = DeliveryLayout(event_time, kept, grouped=False, variables=known, attributes=attributes)
    span = None if event_time is None else _HistorySpan.of(events, event_time)
    reader = TrialReader(event_time, None if span is None else span.first, skip_bad)
    new = NewSubscription(id, params, subscriber, since)
    sides = reader.sides(filter_or_change, new, live)
    buckets = None if span is None else Buckets.over(span.first_us, span.last_us, width)
    return _compared(events, sides, layout, span, buckets, top=top, skip_bad=skip_bad)


@dataclass(frozen=True, slots=True)
class _HistorySpan:
    """From when until when there are events, in microseconds since 1970."""

    first_us: int
    last_us: int

    @classmethod
    def of(cls, events: DataFrame, event_time: str) -> _HistorySpan | None:
        """The span of some events, if there are any."""
        # a name may hold dots, which would lead into a struct
        time = f.col(f"`{event_time.replace('`', '``')}`")
        found: Any = events.agg(
            f.min(time).alias("first"),
            f.max(time).alias("last"),
            f.count_if(time.isNull()).alias("missing"),
        ).toArrow()
        missing = found.column("missing")[0].as_py()
        if missing:
            raise EventError(
                f"column {event_time!r} holds the time of events; {missing:,} of them have none"
            )
        if found.column("first").null_count:
            return None
        ends = pa.concat_arrays([*found.column("first").chunks, *found.column("last").chunks])
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


def _compared(
    events: DataFrame,
    sides: Sides,
    layout: DeliveryLayout,
    span: _HistorySpan | None,
    buckets: Buckets | None,
    *,
    top: int,
    skip_bad: bool,
) -> Backtest:
    """Match both sides with the events and count."""
    live, changed = (
        ship(events.sparkSession, matcher_of(each, skip_bad=skip_bad))
        for each in (sides.live, sides.changed)
    )
    comparison = TableComparison(live, changed, layout)
    counted = _count(events, CountTask(comparison, buckets))
    of_buckets = {each["bucket"]: each for each in counted if each["bucket"] is not None}
    of_subscribers = [_subscriber(each) for each in counted if each["bucket"] is None]
    delivered = result_schema(events, layout.kept, grouped=False)
    return Backtest(
        events=sum(each["events"] for each in of_buckets.values()),
        subscriptions=sides.subscriptions,
        counts=sum((_counts(each) for each in of_buckets.values()), Counts()),
        first=None if span is None else span.first,
        last=None if span is None else span.last,
        every=None if buckets is None else buckets.width,
        buckets=() if buckets is None else _over_time(buckets, of_buckets),
        subscribers=tuple(sorted(of_subscribers, key=_by_change)[:top]),
        subscribers_in_all=len(of_subscribers),
        deliveries=events.mapInArrow(
            EffectTask(comparison), t.StructType([*delivered.fields, EFFECT_FIELD])
        ),
    )


_ResultRow = dict[str, Any]


def _count(events: DataFrame, task: CountTask) -> list[_ResultRow]:
    """The counts of all partitions, added up."""
    parts = events.mapInArrow(task, COUNT_SCHEMA)
    sums = [f.sum(name).alias(name) for name in ("events", *COUNTED)]
    rows: list[_ResultRow] = (
        parts.groupBy("bucket", "subscriber", "subscription").agg(*sums).toArrow().to_pylist()
    )
    return rows


def _counts(row: _ResultRow) -> Counts:
    return Counts(**{name: row[name] for name in COUNTED})


def _over_time(buckets: Buckets, rows: Mapping[int, _ResultRow]) -> tuple[BucketCounts, ...]:
    none = {"events": 0, **dict.fromkeys(COUNTED, 0)}
    return tuple(
        BucketCounts(buckets.begin(place), row["events"], _counts(row))
        for place, row in ((place, rows.get(place, none)) for place in range(buckets.count))
    )


def _subscriber(row: _ResultRow) -> SubscriberCounts:
    return SubscriberCounts(row["subscriber"], row["subscription"], _counts(row))


def _by_change(each: SubscriberCounts) -> tuple[int, int, str]:
    """Those for whom most changes stand first, then those with most deliveries."""
    counts = each.counts
    return -(counts.entering + counts.leaving), -(counts.live + counts.changed), each.name
