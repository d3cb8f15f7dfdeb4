"""Sequence patterns over DataFrames and streams, with the answers of the embedded matcher.

Theory of operation. Each step of each pattern is a subscription in one index. The kernel finds in
`mapInArrow` which events satisfy a step (`steps.py`); only those go on, grouped by pattern, to
where the order of time is made and matches are found (`sequences.py`): in a stream
`transformWithState`, in batch a sort.

**Order.** Events count in the order of their times. Where those are equal, the embedded matcher
goes by arrival, which a cluster does not have. Here they count in the order of the columns that
the result shows, the first column first, nulls before all and NaN behind all; events that are
equal in these too, in the order of the steps that they satisfy. So the result does not depend on
partitions and micro-batches, and `key` says what decides: ``key=["offset"]``.

**Late events.** In a stream an event may come as much as the lateness behind the latest event of
all micro-batches before its own. That is Spark's watermark, which `match_patterns` sets. A match
is given when the watermark is behind its last event, so those of the last stretch of a stream are
given when later events come. Left alone, Spark 4.3 would drop rows whose time is at or before the
watermark of the micro-batch before, ahead of every stateful operator, and leave no more than a
count of them (`numRowsDroppedByWatermark`). It is not told the time of candidates, so it drops
none, and that count stays 0: what is late is found in `sequences.py`, counted in the progress of
the query, and given as rows if wanted. The embedded matcher judges an event by all that came before
it, also in the same micro-batch: what is late here is late there too, and not always the other way
round. In batch no event is late.

**State.** For each pattern a stream keeps the events that wait and those of the attempt. They stay
from one run to the next as long as the text of the pattern does; a pattern that changed begins
anew, and one whose parameters changed goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
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
from tidegate.spark.columns import check_events, check_zoned, checked_variables, kept_columns
from tidegate.spark.patterns import sequences
from tidegate.spark.patterns.candidates import restored, stored_type
from tidegate.spark.patterns.sequences import SequenceProcessor, SortedTask
from tidegate.spark.patterns.steps import CANDIDATE_SCHEMA, StepTask, step_id
from tidegate.spark.shipping import ship
from tidegate.spark.subscriptions import column_names
from tidegate.spark.worker import DeliveryLayout

FIELDS = ("id", "pattern", "subscriber", "params", "since")
"""The columns of a table of patterns; the first two must be there."""

OBSERVED = "tidegate_patterns"
"""The name under which the progress of a query has the counts `matches` and `late`.

Spark wants such a name once in a query: two tables of patterns in one query are better one table.
"""

_WATERMARK = "spark.watermarkDelayMs"
"""What Spark notes of a column with a watermark."""

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@dataclass(frozen=True, slots=True)
class PatternRecord:
    """A pattern as a row of a table has it."""

    id: str
    pattern: Pattern
    params: Mapping[str, object]
    subscriber: str | None
    since: datetime | None

    @classmethod
    def of(cls, row: Mapping[str, object]) -> PatternRecord:
        """Check the fields of a row; raises SubscriptionError that names the pattern."""
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

    def sequence(self) -> sequences.Sequence:
        """What is left of it when its steps are evaluated."""
        return sequences.Sequence(
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

    Each column of ``events`` is an attribute, structs flatten to dotted names; ``event_time`` is
    the column of their publication times. ``patterns`` has the columns `id` and `pattern` and,
    where wanted, `subscriber`, `params` (a struct, a map, or JSON in a string) and `since`: `t`
    counts from it, and earlier events do not count for the pattern.

    The result has a row for each match: `subscription` (the pattern's id), `subscriber`, `events`
    (an array of structs of the event's columns, or of those of ``key``, in the order of the steps),
    `first_time` and `last_time`. Events of equal times count in the order of these columns.

    In a stream, events may come out of order by as much as ``lateness``, and matches are given when
    no earlier event can come. An event that comes later is not used. The progress of the query
    counts it, ``progress.observedMetrics["tidegate_patterns"].late``, and with ``keep_late`` it is
    a row of the result, which then has a column `late`: where it is true, `events` has that event.
    A pattern keeps at most ``pending_max`` events, or the query fails. A stream needs Spark's state
    store in RocksDB, as the sessions of `local_session` have it.
    """
    check_events(events, event_time)
    kept = kept_columns(events, key, set())
    found = _read(patterns)
    if pending_max < 1:
        raise BadValueError("pending_max must be 1 or more")
    if events.isStreaming:
        _check_stream(events, event_time)
    bounded = _with_lateness(events, event_time, lateness)
    layout = DeliveryLayout(event_time, tuple(kept), False, checked_variables(variables))
    index = ship(events.sparkSession, AsOfMatcher(step for each in found for step in each.steps()))
    candidates = bounded.mapInArrow(StepTask(index, layout), CANDIDATE_SCHEMA)
    columns = t.StructType([events.schema[name] for name in kept])
    stored = _stored_schema(columns)
    by_id = {each.id: each.sequence() for each in found}
    if events.isStreaming:
        matches = candidates.groupBy("subscription").transformWithState(
            SequenceProcessor(by_id, pending_max), stored, "Append", "EventTime"
        )
        matches = _counted(matches)
    else:
        task = SortedTask(by_id, to_arrow_schema(stored))
        ordered = candidates.repartition("subscription").sortWithinPartitions(
            "subscription", "time_us"
        )
        matches = ordered.mapInArrow(task, stored)
    if not keep_late:
        matches = matches.where(~functions.col("late"))
    return _result(matches, columns, events.schema[event_time].dataType, keep_late=keep_late)


def _read(patterns: DataFrame | pa.Table) -> list[PatternRecord]:
    """The patterns of a table; what is wrong is named."""
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
    found: dict[str, PatternRecord] = {}
    for index, row in enumerate(rows_of(table)):
        try:
            made = PatternRecord.of(row)
        except SubscriptionError as error:
            raise SubscriptionError(f"row {index}: {error}") from error
        if made.id in found:
            raise SubscriptionError(f"row {index}: there already is a pattern {made.id!r}")
        found[made.id] = made
    return list(found.values())


def _check_stream(events: DataFrame, event_time: str) -> None:
    """See that Spark can keep the state of a stream, and knows how far its time is."""
    check_zoned(events, event_time)
    marked = [each.name for each in events.schema.fields if _WATERMARK in each.metadata]
    if marked:
        raise EventError(
            f"column {marked[0]!r} has a watermark already, and Spark takes one; leave it out and "
            "say the `lateness`"
        )
    if (events.sparkSession.conf.get(_PROVIDER) or "").endswith("HDFSBackedStateStoreProvider"):
        raise TidegateError(
            f"patterns over a stream need another state store: set {_PROVIDER} to {_ROCKS_DB}, "
            "or take the session from tidegate.spark.session.local_session"
        )


def _with_lateness(events: DataFrame, event_time: str, lateness: str | timedelta) -> DataFrame:
    """Let Spark's watermark follow the events; for a batch this only checks the lateness."""
    if isinstance(lateness, str):
        with suppress(BadValueError):  # Spark knows more: '1 hour 30 minutes', '1 week'
            lateness = parse_duration(lateness)
    if isinstance(lateness, timedelta):
        if lateness < timedelta(0):
            raise BadValueError("lateness must not be negative")
        # Spark cuts off what is less than a millisecond, which would be less than was allowed
        lateness = f"{-(-lateness // timedelta(milliseconds=1))} milliseconds"
    try:
        return events.withWatermark(event_time, lateness)
    except PySparkException as error:
        raise BadValueError(
            f"lateness must be a timedelta or a text like '10 seconds', not {lateness!r}"
        ) from error


def _stored_schema(columns: t.StructType) -> t.StructType:
    """The result with microseconds in place of timestamps."""
    return t.StructType(
        [
            t.StructField("subscription", t.StringType()),
            t.StructField("subscriber", t.StringType()),
            t.StructField("events", t.ArrayType(stored_type(columns))),
            t.StructField("first_time", t.LongType()),
            t.StructField("last_time", t.LongType()),
            t.StructField("late", t.BooleanType()),
        ]
    )


def _counted(matches: DataFrame) -> DataFrame:
    late = functions.col("late")
    return matches.observe(
        OBSERVED, functions.count_if(~late).alias("matches"), functions.count_if(late).alias("late")
    )


def _result(
    matches: DataFrame, columns: t.StructType, time: t.DataType, *, keep_late: bool
) -> DataFrame:
    """The result with timestamps in place of microseconds."""
    events = functions.transform("events", lambda each: restored(each, columns))
    times = [
        restored(functions.col(name), time).alias(name) for name in ("first_time", "last_time")
    ]
    late = ["late"] if keep_late else []
    return matches.select("subscription", "subscriber", events.alias("events"), *times, *late)
