"""Matching sequence patterns with tables and streams of events: `tidegate.spark.match_patterns`.

Theory of operation. Each step of each pattern is a subscription in one index. The kernel finds in
`mapInArrow` which events satisfy a step (`steps.py`). Only those are shuffled by pattern to where
they are sorted by time and matches are found (`sequences.py`): by `transformWithState` in a stream,
by a sort in batch. Matching inside `transformWithState` was tried and is far slower.

**Order.** Events are matched in the order of their times. Events of equal times are in the order of
arrival for the embedded matcher, but a cluster has no such order. Here they are ordered by the
columns that are part of the result, the first column first, nulls first and NaN last; events that
are equal in these too, by the steps that they satisfy. So the result does not depend on partitions
and micro-batches, and `key` can name the columns that decide, as in ``key=["offset"]``.

**Late events.** In a stream an event may be older than the latest event of all earlier
micro-batches by as much as the lateness. That is Spark's watermark, which `match_patterns` sets. A
match is emitted when the watermark has passed its last event, so the last matches of a stream
appear only when later events arrive. By itself Spark 4.3 would drop rows whose time is at or before
the watermark of the previous micro-batch, ahead of every stateful operator, and leave only a count
of them (`numRowsDroppedByWatermark`). But Spark does not know the event time of candidates, so it
drops none, and that count stays 0: late events are found in `sequences.py`, counted in the progress
of the query, and kept as rows on request. The embedded matcher compares an event with all that
arrived before it, also in the same micro-batch. So what is late here is late there too, but not
always the other way round. In batch no event is late.

**State.** For each pattern a stream keeps the events that wait and those of the attempt. They are
kept over a restart as long as the text of the pattern is the same: a pattern whose text changed
starts from nothing, a pattern whose parameters changed continues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, functions
from pyspark.sql import types as t
from pyspark.sql.pandas.types import to_arrow_schema

from tidegate.errors import BadValueError, EventError, SubscriptionError, TidegateError
from tidegate.language.durations import parse_duration
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.patterns.sequence_matcher import PENDING_MAX
from tidegate.matching import records
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.records import SubscriptionRecord, rows_of
from tidegate.spark.columns import check_events, check_time_zone, checked_variables, kept_columns
from tidegate.spark.index_files import ship_index
from tidegate.spark.patterns import sequences
from tidegate.spark.patterns.candidates import microseconds_type, restored_timestamps
from tidegate.spark.patterns.sequences import SequenceProcessor, SortedTask
from tidegate.spark.patterns.steps import CANDIDATE_SCHEMA, StepTask, step_id
from tidegate.spark.subscription_tables import column_names
from tidegate.spark.worker_tasks import DeliveryLayout

FIELDS = ("id", "pattern", "subscriber", "params", "since")
"""The columns of a table of patterns; the first two are required."""

OBSERVED = "tidegate_patterns"
"""The name of the counts `matches` and `late` in the progress of a query.

Such a name must be unique in a query, so a query cannot match two tables of patterns.
"""

_WATERMARK = "spark.watermarkDelayMs"
"""The key in the metadata of a column that has a watermark."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class PatternRecord:
    """A pattern, read from a row of a table."""

    id: str
    pattern: Pattern
    params: Mapping[str, object]
    subscriber: str | None
    since: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, object]) -> PatternRecord:
        """Read and check a row; raises a SubscriptionError that names the pattern."""
        id = records.required_text(row, "id")
        try:
            pattern = parse_pattern(records.required_text(row, "pattern"))
            params = records.params_of(row) or {}
            records.checked_parameters(pattern.parameters, params)
            subscriber, since = records.text_of(row, "subscriber"), records.time_of(row, "since")
        except TidegateError as error:
            raise SubscriptionError(f"pattern {id!r}: {error}") from error
        return cls(id, pattern, params, subscriber, since)

    def steps(self) -> Iterator[SubscriptionRecord]:
        """Each step as a subscription."""
        for index, step in enumerate(self.pattern.steps):
            params = {name: self.params[name] for name in step.parameters if name in self.params}
            yield SubscriptionRecord(
                step_id(index, self.id), str(step), params, self.subscriber, self.since
            )

    def sequence(self) -> sequences.StepSequence:
        """The pattern as input of `sequences.py`."""
        return sequences.StepSequence(
            str(self.pattern), len(self.pattern.steps), self.pattern.within_us, self.subscriber
        )


def match_patterns(
    events: DataFrame,
    patterns: DataFrame | pa.Table,
    event_time: str,
    *,
    lateness: str | timedelta = "10 seconds",
    key: str | Sequence[str] | None = None,
    variables: Mapping[str, object] | None = None,
    pending_max: int = PENDING_MAX,
    keep_late: bool = False,
) -> DataFrame:
    """The matches of events, batch or streaming, with patterns of several events.

    Each column of ``events`` is an attribute; structs flatten to dotted names. ``event_time`` is
    the column of their publication times. ``patterns`` has the columns `id` and `pattern` and
    optionally `subscriber`, `params` (a struct, a map, or JSON in a string) and `since`: `t` counts
    from it, and earlier events do not count for the pattern.

    The result has a row for each match: `subscription` (the pattern's id), `subscriber`, `events`
    (an array of structs of the event's columns, or of those of ``key``, in the order of the steps),
    `first_time` and `last_time`. Events of equal times are ordered by these columns.

    In a stream, events may come out of order by as much as ``lateness``; a match is emitted when no
    earlier event can come. An event that is older than that is late and not used. It is counted in
    the progress of the query, ``progress.observedMetrics["tidegate_patterns"].late``. With
    ``keep_late`` it is also a row of the result, which then has a column `late`: where that is
    true, `events` holds the late event. If a pattern has to keep more than ``pending_max`` events,
    the query fails. A stream needs Spark's state store in RocksDB, as in the sessions of
    `local_session`.
    """
    check_events(events, event_time)
    kept = kept_columns(events, key, set())
    read = _read_patterns(patterns)
    if pending_max < 1:
        raise BadValueError("pending_max must be 1 or more")
    if events.isStreaming:
        _check_stream(events, event_time)
    watermarked = _with_watermark(events, event_time, lateness)
    layout = DeliveryLayout(event_time, tuple(kept), False, checked_variables(variables))
    index = ship_index(
        events.sparkSession, AsOfMatcher(step for each in read for step in each.steps())
    )
    candidates = watermarked.mapInArrow(StepTask(index, layout), CANDIDATE_SCHEMA)
    columns = t.StructType([events.schema[name] for name in kept])
    stored = _stored_schema(columns)
    by_id = {each.id: each.sequence() for each in read}
    if events.isStreaming:
        grouped = candidates.groupBy("subscription")
        if not hasattr(grouped, "transformWithState"):
            raise EventError(
                "finding patterns in a stream needs Spark 4.1 or newer, and this is "
                f"{pyspark.__version__}"
            )
        matches = grouped.transformWithState(
            SequenceProcessor(by_id, pending_max), stored, "Append", "EventTime"
        )
        matches = _with_counts(matches)
    else:
        task = SortedTask(by_id, to_arrow_schema(stored))
        ordered = candidates.repartition("subscription").sortWithinPartitions(
            "subscription", "time_us"
        )
        matches = ordered.mapInArrow(task, stored)
    if not keep_late:
        matches = matches.where(~functions.col("late"))
    return _result(matches, columns, events.schema[event_time].dataType, keep_late=keep_late)


def _read_patterns(patterns: DataFrame | pa.Table) -> list[PatternRecord]:
    """The patterns in a table; errors name the row."""
    names = column_names(patterns)
    missing = [name for name in FIELDS[:2] if name not in names]
    if missing:
        raise SubscriptionError(
            f"the patterns have no column {missing[0]!r}; they have {', '.join(names)}"
        )
    records.check_fields(dict.fromkeys(names), FIELDS, "a pattern")
    if isinstance(patterns, DataFrame) and patterns.isStreaming:
        raise SubscriptionError("the patterns are a stream; take a table")
    table = patterns if isinstance(patterns, pa.Table) else patterns.toArrow()
    by_id: dict[str, PatternRecord] = {}
    for index, row in enumerate(rows_of(table)):
        try:
            record = PatternRecord.of(row)
        except SubscriptionError as error:
            raise SubscriptionError(f"row {index}: {error}") from error
        if record.id in by_id:
            raise SubscriptionError(f"row {index}: there already is a pattern {record.id!r}")
        by_id[record.id] = record
    return list(by_id.values())


def _check_stream(events: DataFrame, event_time: str) -> None:
    """Check that Spark can keep the state of the stream, and that a watermark can be set on it."""
    check_time_zone(events, event_time)
    marked = [each.name for each in events.schema.fields if _WATERMARK in each.metadata]
    if marked:
        raise EventError(
            f"column {marked[0]!r} has a watermark already, and Spark allows one; leave it out and "
            "give the `lateness`"
        )
    if (events.sparkSession.conf.get(_PROVIDER) or "").endswith("HDFSBackedStateStoreProvider"):
        raise TidegateError(
            f"patterns over a stream need another state store: set {_PROVIDER} to {_ROCKS_DB}, "
            "or take the session from tidegate.spark.session.local_session"
        )


def _with_watermark(events: DataFrame, event_time: str, lateness: str | timedelta) -> DataFrame:
    """The events with a watermark; in batch this only checks the lateness."""
    if isinstance(lateness, str):
        # Spark accepts more, such as '1 hour 30 minutes' or '1 week', and gets that text as it is.
        with suppress(BadValueError):
            lateness = parse_duration(lateness)
    if isinstance(lateness, timedelta):
        if lateness < timedelta(0):
            raise BadValueError("lateness must not be negative")
        # Rounded up to milliseconds: Spark would round down, and allow less than asked for.
        lateness = f"{-(-lateness // timedelta(milliseconds=1))} milliseconds"
    try:
        return events.withWatermark(event_time, lateness)
    except PySparkException as error:
        raise BadValueError(
            f"lateness must be a timedelta or a text like '10 seconds', not {lateness!r}"
        ) from error


def _stored_schema(columns: t.StructType) -> t.StructType:
    """The columns of the result, with microseconds in place of timestamps."""
    return t.StructType(
        [
            t.StructField("subscription", t.StringType()),
            t.StructField("subscriber", t.StringType()),
            t.StructField("events", t.ArrayType(microseconds_type(columns))),
            t.StructField("first_time", t.LongType()),
            t.StructField("last_time", t.LongType()),
            t.StructField("late", t.BooleanType()),
        ]
    )


def _with_counts(matches: DataFrame) -> DataFrame:
    """The matches, whose numbers appear in the progress of the query."""
    late = functions.col("late")
    return matches.observe(
        OBSERVED, functions.count_if(~late).alias("matches"), functions.count_if(late).alias("late")
    )


def _result(
    matches: DataFrame, columns: t.StructType, time: t.DataType, *, keep_late: bool
) -> DataFrame:
    """The result with timestamps in place of microseconds."""
    events = functions.transform("events", lambda each: restored_timestamps(each, columns))
    times = [
        restored_timestamps(functions.col(name), time).alias(name)
        for name in ("first_time", "last_time")
    ]
    late = ["late"] if keep_late else []
    return matches.select("subscription", "subscriber", events.alias("events"), *times, *late)
