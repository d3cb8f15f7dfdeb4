"""Streams of events, matched with a stream of changes: each event as of its own time.

Theory of operation. Each micro-batch is spooled to files once and read from there, whatever its
sink does with it. Events and changes are joined to one stream, so that one checkpoint says how far
both were read. A batch takes its changes first; then its events are matched with the versions of
their times. A change may be of a time whose events were matched before: then those events, which
are still in the spool, are matched with the versions of the changed subscriptions as they were and
as they are now, and what differs is delivered as corrections.

All this holds for what is at most ``lateness`` older than the latest event of the batches before.
What comes later than that is set aside, together with what cannot be read.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import EventError
from tidegate.language.values import from_us, to_us
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    GROUPED_FIELD,
    check_events,
    checked_variables,
    kept_columns,
    result_schema,
)
from tidegate.spark.shipping import IndexFile, ship
from tidegate.spark.sinks.parquet_writing import PendingDeliveries
from tidegate.spark.sinks.rejected import ASIDE_SCHEMA, SetAside, change_record, event_records
from tidegate.spark.sinks.sink import ParquetSink, Sink, WorkerSink
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE
from tidegate.spark.streaming.match_counts import MatchCounts
from tidegate.spark.streaming.spool import RowKind, Sorter, Spool, SpooledTask, places
from tidegate.spark.streaming.state import StreamState, Taken
from tidegate.spark.subscriptions import (
    check_columns,
    collected,
    column_names,
    matcher_of,
    read_changes,
    read_versions,
)
from tidegate.spark.worker import ASSERT, CorrectionTask, DeliveryLayout, MatchTask, Task

OPERATION_FIELD = t.StructField("operation", t.StringType(), False)
"""What a delivery does: `assert` says that an event matches, `retract` takes that back."""

LATENESS_MAX = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What was in a micro-batch."""

    batch: int
    seconds: float
    """How long it took."""
    events: int
    changes: int
    matches: int
    """How many deliveries were written, corrections included."""
    late: int
    """How many events and changes came too late."""
    bad: int
    """How many records could not be read, and changes not be made."""
    corrected: int
    """How many subscriptions are others than thought for events that had been matched before."""
    subscriptions: int
    latest: datetime | None
    """The time of the latest event so far."""


def deliver(
    events: DataFrame,
    subscriptions: DataFrame | pa.Table,
    to: Sink,
    *,
    event_time: str | None = None,
    checkpoint: str | Path,
    lateness: timedelta = timedelta(seconds=10),
    key: str | Sequence[str] | None = None,
    grouped: bool = False,
    variables: Mapping[str, object] | None = None,
    aside: Sink | None = None,
    trigger: Mapping[str, Any] | None = None,
    report: Callable[[BatchReport], None] | None = None,
    name: str | None = None,
) -> StreamingQuery:
    """Start to match a stream of events with subscriptions; gives the running query.

    ``subscriptions`` is a table, as for `match`, or a stream of changes: with the columns `time`,
    `op`, `id` and more, as a log of changes has them, or with one column `value` that has such a
    change as a JSON object. With a stream of changes each event is matched as of its time. What is
    at most ``lateness`` older than the latest event gets the exact answer, in whatever order events
    and changes come: `to` gets rows as `match` gives them with one more column `operation`, which
    is `assert`, or `retract` where a late change takes an earlier delivery back.

    What comes later than that, and what cannot be read, goes to ``aside``, by default Parquet in
    the folder `aside` of the checkpoint. ``checkpoint`` is a folder that the driver and all workers
    see. ``trigger`` is as for Spark's `DataStreamWriter`. ``report`` is told of each micro-batch.
    """
    if not events.isStreaming:
        raise EventError("deliver takes a stream of events; tidegate.spark.match takes a table")
    good = events.drop(BAD, RECORD, SOURCE)
    check_events(good, event_time)
    is_stream = isinstance(subscriptions, DataFrame) and subscriptions.isStreaming
    layout, schema = _layout(good, event_time, key, grouped, variables, corrections=is_stream)
    folder = Path(checkpoint)
    aside = ParquetSink(str(folder / "aside")) if aside is None else aside
    output = _Output(layout, schema, to, aside, MatchCounts(events.sparkSession))
    if isinstance(subscriptions, DataFrame) and is_stream:
        _check_changes(subscriptions, event_time, lateness)
        rows = _joined(events, subscriptions)
        state = StreamState(folder / "tidegate", lateness)
        run: _RunBatch = _ChangingStream(state, output, report)
    else:
        check_columns(column_names(subscriptions), event_time)
        versions = read_versions(
            collected(subscriptions), timeless=event_time is None, skip_bad=False
        )
        index = ship(events.sparkSession, matcher_of(versions, skip_bad=False))
        rows = _with_bad(events)
        run = _SteadyStream(index, len(versions), folder / "spool", output, report)
    writer = rows.writeStream.foreachBatch(run)
    writer = writer.option("checkpointLocation", str(folder / "spark"))
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


_RunBatch = Callable[[DataFrame, int], None]


def _layout(
    events: DataFrame,
    event_time: str | None,
    key: str | Sequence[str] | None,
    grouped: bool,
    variables: Mapping[str, object] | None,
    *,
    corrections: bool,
) -> tuple[DeliveryLayout, t.StructType]:
    """How deliveries look, and their columns."""
    more = [OPERATION_FIELD] if corrections else []
    added = [GROUPED_FIELD] if grouped else DELIVERY_FIELDS
    kept = kept_columns(events, key, {field.name for field in [*added, *more]})
    schema = result_schema(events, kept, grouped=grouped)
    layout = DeliveryLayout(
        event_time, tuple(kept), grouped, checked_variables(variables), coded=True
    )
    return layout, t.StructType([*schema.fields, *more])


def _check_changes(changes: DataFrame, event_time: str | None, lateness: timedelta) -> None:
    if event_time is None:
        raise EventError("a stream of changes needs `event_time`: events are judged as of it")
    if changes.columns != ["value"]:
        check_columns(changes.columns, event_time)
    if not timedelta(0) <= lateness <= LATENESS_MAX:
        raise EventError(f"the lateness is {lateness}; it must be from 0 to {LATENESS_MAX}")


def _with_bad(events: DataFrame) -> DataFrame:
    """Each row as an event, or as a record that is no good event."""
    attributes = [
        f.col(f"`{name}`") for name in events.columns if name not in (BAD, RECORD, SOURCE)
    ]
    event = f.struct(*attributes)
    if BAD not in events.columns:
        return events.select(event.alias("event"), f.lit(None).cast(ASIDE_SCHEMA).alias("bad"))
    record = event_records(f.col(BAD), f.col(RECORD), f.col(SOURCE))
    is_bad = f.col(BAD).isNotNull()
    return events.select(f.when(~is_bad, event).alias("event"), f.when(is_bad, record).alias("bad"))


def _joined(events: DataFrame, changes: DataFrame) -> DataFrame:
    """One stream of both: each row has an event, a record that is no good event, or a change."""
    change = f.struct(*(f.col(f"`{name}`") for name in changes.columns))
    return _with_bad(events).unionByName(
        changes.select(change.alias("change")), allowMissingColumns=True
    )


@dataclass(slots=True)
class _Output:
    """Where the deliveries of a stream go, and what it sets aside."""

    layout: DeliveryLayout
    schema: t.StructType
    to: Sink
    aside: Sink
    counts: MatchCounts

    def found(
        self, spark: SparkSession, spool: Spool, sorter: Sorter, task: Task
    ) -> PendingDeliveries:
        """The deliveries that a task makes of the events since the border of a sorter."""
        pieces = spool.events_since(sorter.border)
        return PendingDeliveries(places(spark, pieces), SpooledTask(task, sorter), self.schema)

    def write(self, found: list[PendingDeliveries], batch: int) -> int:
        """Write the deliveries of a batch; gives how many there are."""
        if isinstance(self.to, WorkerSink):
            matches = self.to.write_in_workers(found, batch)
            if matches is not None:
                return matches
        counted = self.counts.counted(found, batch)
        self.to.write(reduce(DataFrame.unionByName, (e.deliveries() for e in counted)), batch)
        return self.counts.of(batch)

    def set_aside(
        self, aside: SetAside, spool: Spool, sorter: Sorter, rows: DataFrame, batch: int
    ) -> None:
        """Set rows of a batch aside that cannot be delivered, and what else there is."""
        if spool.count(RowKind.BAD):
            aside.add_rows(spool.rows(RowKind.BAD, sorter, rows).select("bad.*"))
        for kind, reason in ((RowKind.LATE, "came too late"), (RowKind.TIMELESS, "has no time")):
            if spool.count(kind):
                aside.add_events(spool.rows(kind, sorter, rows), reason)
        aside.write(self.aside, batch)


@dataclass(slots=True)
class _SteadyStream:
    """Delivers the micro-batches of a stream whose subscriptions stay; for `foreachBatch`."""

    index: IndexFile
    subscriptions: int
    folder: Path
    output: _Output
    report: Callable[[BatchReport], None] | None
    latest: int | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        begun = perf_counter()
        spark, layout = rows.sparkSession, self.output.layout
        shutil.rmtree(self.folder, ignore_errors=True)  # of a batch that was killed
        sorter = Sorter(layout.event_time, None)
        spool = Spool.write(rows, self.folder / str(batch), sorter)
        found = self.output.found(spark, spool, sorter, MatchTask(self.index, layout))
        matches = self.output.write([found], batch)
        self.output.set_aside(SetAside(spark), spool, sorter, rows, batch)
        shutil.rmtree(self.folder)
        known = [each for each in (self.latest, spool.latest()) if each is not None]
        self.latest = max(known, default=None)
        if self.report is not None:
            told = BatchReport(
                batch,
                perf_counter() - begun,
                events=spool.count(RowKind.EVENT) + spool.count(RowKind.TIMELESS),
                changes=0,
                matches=matches,
                late=0,
                bad=spool.count(RowKind.BAD) + spool.count(RowKind.TIMELESS),
                corrected=0,
                subscriptions=self.subscriptions,
                latest=None if self.latest is None else from_us(self.latest),
            )
            self.report(told)


@dataclass(slots=True)
class _ChangingStream:
    """Delivers the micro-batches of a stream whose subscriptions change; for `foreachBatch`."""

    state: StreamState
    output: _Output
    report: Callable[[BatchReport], None] | None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        begun = perf_counter()
        self.state.begin(batch)
        sorter = self._sorter(self.state.border)
        spool = Spool.write(rows, self.state.spool(batch), sorter)
        aside = SetAside(rows.sparkSession)
        found = spool.changes()
        changes = [] if found is None else list(read_changes(found, aside.bad_change))
        taken = self.state.take(batch, changes)
        if self.state.wants_snapshot:
            self.state.index(batch).save_in_worker(rows.sparkSession)
            self.state.has_snapshot(batch)
        matches, concerned = self._deliver(rows.sparkSession, spool, sorter, batch, taken)
        aside.add([change_record(each, "came too late") for each in taken.late])
        aside.add([change_record(each.change, each.reason) for each in taken.refused])
        unreadable = len(aside) - len(taken.late)
        self.output.set_aside(aside, spool, sorter, rows, batch)
        self.state.end(batch, spool.latest())
        if self.report is not None:
            latest = self.state.latest
            told = BatchReport(
                batch,
                perf_counter() - begun,
                events=sum(map(spool.count, (RowKind.EVENT, RowKind.LATE, RowKind.TIMELESS))),
                changes=spool.count(RowKind.CHANGE),
                matches=matches,
                late=spool.count(RowKind.LATE) + len(taken.late),
                bad=spool.count(RowKind.BAD) + spool.count(RowKind.TIMELESS) + unreadable,
                corrected=concerned,
                subscriptions=self.state.subscriptions,
                latest=None if latest is None else from_us(latest),
            )
            self.report(told)

    def _sorter(self, border: datetime | None) -> Sorter:
        event_time = self.output.layout.event_time
        return Sorter(event_time, None if border is None else to_us(border))

    def _deliver(
        self, spark: SparkSession, spool: Spool, sorter: Sorter, batch: int, taken: Taken
    ) -> tuple[int, int]:
        """Deliver a batch and what it corrects; gives how many deliveries and corrected
        subscriptions there are."""
        layout = self.output.layout
        task = MatchTask(self.state.index(batch), layout, ASSERT)
        found = [self.output.found(spark, spool, sorter, task)]
        latest = self.state.latest
        concerned = [
            each for each in taken.differences if latest is not None and to_us(each.since) <= latest
        ]
        since = min((each.since for each in concerned), default=None)
        spools = [] if since is None else self.state.spools_since(batch, to_us(since))
        if not spools:
            return self.output.write(found, batch), len(concerned)
        before = ship(spark, AsOfMatcher(v for each in concerned for v in each.before))
        after = ship(spark, AsOfMatcher(v for each in concerned for v in each.after))
        correct = CorrectionTask(before, after, layout)
        found.append(self.output.found(spark, Spool.read(spools), self._sorter(since), correct))
        matches = self.output.write(found, batch)
        for each in (before, after):
            each.discard()
        return matches, len(concerned)
