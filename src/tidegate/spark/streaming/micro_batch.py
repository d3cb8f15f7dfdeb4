"""Running one micro-batch of a stream: spool, apply changes, match events, deliver, correct.

Theory of operation. Spark calls a runner with the rows of a micro-batch and its number.

1. Workers write the rows to the spool (`spool.py`). From then on they are read from there, so the
   source is read once, whatever the sink does with the deliveries.
2. The driver reads the changes and folds them into its timelines (`stream_state.py`). One process
   does that, because each change depends on all earlier ones of its subscription, of this batch and
   of those before. The cost grows with the changes of the batch, not with the size of the table.
   The differences of versions go to a file, from which workers update their indexes
   (`worker_index.py`).
3. Workers match the events with the versions of their times.
4. A change may be of a time whose events were matched in earlier batches. Those events are still in
   the spool. They are matched with the versions of the changed subscriptions as they were before
   and as they are now, and the differences are delivered as corrections.
5. Deliveries and corrections go to the sink in one write, then rejected rows to theirs. Only then
   is the batch noted as done.

A batch that is killed anywhere in between is run again by Spark, with the same rows. Each step then
has the same input and replaces its earlier output, so the result is the same as without the kill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from time import perf_counter

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from tidegate.language.spaces import Space
from tidegate.language.values import from_us, to_us
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change
from tidegate.spark.index_files import IndexFile, stored_index
from tidegate.spark.session import runs_here
from tidegate.spark.sinks.rejected import RejectedRows, rejected_change
from tidegate.spark.sinks.sink import PendingDeliveries, Sink, WorkerSink, running_query
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.streaming.future_events import TimeLimit
from tidegate.spark.streaming.match_counts import total_count, with_counting
from tidegate.spark.streaming.spool import (
    RowClassifier,
    RowKind,
    Spool,
    SpooledTask,
    chunk_locations,
)
from tidegate.spark.streaming.state_files import read_json
from tidegate.spark.streaming.state_identity import StreamIdentity
from tidegate.spark.streaming.stream_state import AppliedChanges, StreamState
from tidegate.spark.subscription_tables import read_changes
from tidegate.spark.worker_tasks import ASSERT, CorrectionTask, DeliveryLayout, MatchTask, Task

SPARK_FOLDER = "spark"
"""The folder of the checkpoint that has Spark's own files."""
_SPOOL = "spool"
_COUNTS, _CORRECTION = "counts", "correction"
"""Folders beside the rows of a batch: its counts, and the indexes of corrected subscriptions."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The counts of a micro-batch."""

    batch: int
    seconds: float
    """The duration of the batch."""
    events: int
    changes: int
    matches: int
    """The number of deliveries written, corrections included."""
    late: int
    """The number of events and changes that came too late."""
    bad: int
    """The number of records that could not be read and changes that could not be applied."""
    corrected: int
    """The number of subscriptions whose versions changed at a time of which events had been matched
    already."""
    subscriptions: int
    """The number of subscriptions after the batch."""
    latest: datetime | None
    """The time of the latest event so far."""


@dataclass(slots=True)
class BatchOutput:
    """Writes the deliveries and the rejected rows of micro-batches."""

    checkpoint: Folder
    layout: DeliveryLayout
    schema: t.StructType
    sink: Sink
    rejected_sink: Sink
    _query: str | None = None

    def as_query(self) -> AbstractContextManager[None]:
        """Say to the sinks that are called meanwhile that this query calls them."""
        return running_query(self.query)

    @property
    def query(self) -> str:
        """The id of the query, which Spark keeps in the checkpoint."""
        if self._query is None:
            self._query = str(read_json(self.checkpoint, f"{SPARK_FOLDER}/metadata")["id"])
        return self._query

    def pending(
        self, spark: SparkSession, spool: Spool, classifier: RowClassifier, task: Task
    ) -> PendingDeliveries:
        """The deliveries of a task for the spooled events that the classifier does not find late.

        Chunks without such events are not read.
        """
        chunks = spool.events_since(classifier.border_us)
        locations = chunk_locations(spark, chunks)
        return PendingDeliveries(locations, SpooledTask(task, spool.root, classifier), self.schema)

    def write(self, pending: list[PendingDeliveries], spools: Folder, batch: int) -> int:
        """Write the deliveries of a batch; returns their number."""
        if isinstance(self.sink, WorkerSink):
            return self.sink.write_in_workers(pending, batch)
        # A sink that writes through Spark may compute the rows once, several times or never; so
        # they are counted where they are computed.
        counts = spools.folder(f"{batch}/{_COUNTS}")
        deliveries = (each.deliveries() for each in with_counting(pending, counts))
        self.sink.write(reduce(DataFrame.unionByName, deliveries), batch)
        with as_state_error(counts, ""):
            return total_count(counts)

    def write_rejected(
        self,
        rejected: RejectedRows,
        spool: Spool,
        classifier: RowClassifier,
        rows: DataFrame,
        batch: int,
    ) -> None:
        """Write the rejected changes of a batch, and those of its events that were not delivered.

        ``rows`` are those of the batch; only their schema is used.
        """
        if spool.count(RowKind.BAD):
            unreadable = spool.rows(RowKind.BAD, classifier, rows)
            rejected.add_unreadable_events(unreadable.select("bad.*"))
        for kind, reason in ((RowKind.LATE, "came too late"), (RowKind.TIMELESS, "has no time")):
            if spool.count(kind):
                rejected.add_events(spool.rows(kind, classifier, rows), reason)
        rejected.write(self.rejected_sink, batch)


@dataclass(slots=True)
class TableRunner:
    """Runs the micro-batches of a stream with a fixed table of subscriptions; for `foreachBatch`.

    Nothing has to be known from earlier batches, so there is no state but the spool of the running
    batch, and no event is late.
    """

    index: IndexFile
    subscriptions: int
    output: BatchOutput
    report: Callable[[BatchReport], None] | None
    latest_us: int | None = None

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with self.output.as_query():
            self._run(rows, batch)

    def _run(self, rows: DataFrame, batch: int) -> None:
        begun = perf_counter()
        spark, layout = rows.sparkSession, self.output.layout
        checkpoint = self.output.checkpoint
        checkpoint.remove(_SPOOL)  # left by a batch that was killed
        classifier = RowClassifier(layout.event_time, None)
        spool = Spool.write(rows, checkpoint.folder(_SPOOL), batch, classifier)
        task = MatchTask(self.index, layout)
        pending = [self.output.pending(spark, spool, classifier, task)]
        matches = self.output.write(pending, spool.root, batch)
        self.output.write_rejected(RejectedRows(spark), spool, classifier, rows, batch)
        checkpoint.remove(_SPOOL)
        known = [each for each in (self.latest_us, spool.latest_us()) if each is not None]
        self.latest_us = max(known, default=None)
        if self.report is not None:
            self.report(
                BatchReport(
                    batch,
                    perf_counter() - begun,
                    events=spool.count(RowKind.EVENT) + spool.count(RowKind.TIMELESS),
                    changes=0,
                    matches=matches,
                    late=0,
                    bad=spool.count(RowKind.BAD) + spool.count(RowKind.TIMELESS),
                    corrected=0,
                    subscriptions=self.subscriptions,
                    latest=None if self.latest_us is None else from_us(self.latest_us),
                )
            )


@dataclass(slots=True)
class ChangesRunner:
    """Runs the micro-batches of a stream whose subscriptions change; for `foreachBatch`."""

    state: StreamState
    output: BatchOutput
    report: Callable[[BatchReport], None] | None
    space: Space | None = None
    """The space that filters must fit when they come in."""
    ahead: timedelta | None = None
    """By how much the time of an event may be ahead of the clock."""
    initial: Sequence[Change] = ()
    """Changes that come before all others, in the first batch."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        with self.output.as_query():
            self._run(rows, batch)

    def _run(self, rows: DataFrame, batch: int) -> None:
        begun = perf_counter()
        spark = rows.sparkSession
        self.state.begin(batch, self._identity(rows))
        # The border of lateness follows from the batches before. The events of this batch do not
        # move it, because the rows of one batch have no order.
        classifier = self._classifier(self.state.border)
        spool = Spool.write(rows, self.state.spools, batch, classifier, self._limit())
        rejected = RejectedRows(spark)
        initial = self.initial if batch == 0 else ()
        changes = [*initial, *self._read_changes(spool, rejected)]
        applied = self.state.apply(batch, changes)
        # Before the events are matched, so that workers which start only now need not apply all
        # deltas.
        if self.state.needs_snapshot:
            self.state.index(batch).save_in_worker(spark)
            self.state.use_snapshot(batch)
        matches, corrected = self._deliver(spark, spool, classifier, batch, applied)
        reason = "came too late: a newer change of the subscription holds"
        rejected.add_changes([rejected_change(each, reason) for each in applied.outdated])
        rejected.add_changes([rejected_change(e.change, e.reason) for e in applied.refused])
        bad_changes = rejected.change_count - len(applied.outdated)
        self.output.write_rejected(rejected, spool, classifier, rows, batch)
        self.state.end(batch, spool.latest_us())
        if self.report is not None:
            latest_us = self.state.latest_us
            self.report(
                BatchReport(
                    batch,
                    perf_counter() - begun,
                    events=sum(map(spool.count, (RowKind.EVENT, RowKind.LATE, RowKind.TIMELESS))),
                    changes=spool.count(RowKind.CHANGE) + len(initial),
                    matches=matches,
                    late=spool.count(RowKind.LATE) + applied.late,
                    bad=spool.count(RowKind.BAD) + spool.count(RowKind.TIMELESS) + bad_changes,
                    corrected=corrected,
                    subscriptions=self.state.subscriptions,
                    latest=None if latest_us is None else from_us(latest_us),
                )
            )

    def _limit(self) -> TimeLimit | None:
        event_time = self.output.layout.event_time
        if self.ahead is None or event_time is None:
            return None
        return TimeLimit(event_time, to_us(datetime.now(UTC) + self.ahead), self.ahead)

    def _identity(self, rows: DataFrame) -> StreamIdentity:
        layout = self.output.layout
        return StreamIdentity(
            self.output.query,
            layout.event_time,
            columns=rows.schema["event"].dataType.simpleString(),
            kept=", ".join(layout.kept),
            grouped=layout.grouped,
        )

    def _read_changes(self, spool: Spool, rejected: RejectedRows) -> list[Change]:
        table = spool.changes()
        if table is None:
            return []
        return list(read_changes(table, rejected.add_unreadable_change, self.space))

    def _classifier(self, border: datetime | None) -> RowClassifier:
        event_time = self.output.layout.event_time
        return RowClassifier(event_time, None if border is None else to_us(border))

    def _deliver(
        self,
        spark: SparkSession,
        spool: Spool,
        classifier: RowClassifier,
        batch: int,
        applied: AppliedChanges,
    ) -> tuple[int, int]:
        """Deliver the matches of a batch and the corrections of earlier ones.

        Returns the number of deliveries and the number of corrected subscriptions.
        """
        layout = self.output.layout
        task = MatchTask(self.state.index(batch), layout, ASSERT)
        pending = [self.output.pending(spark, spool, classifier, task)]
        # The latest event of the batches before. The events of this batch are matched with the new
        # versions anyway.
        latest_us = self.state.latest_us
        corrected = [
            each
            for each in applied.differences
            if latest_us is not None and to_us(each.since) <= latest_us
        ]
        since = min((each.since for each in corrected), default=None)
        batches = [] if since is None else self.state.spooled_since(batch, to_us(since))
        if not batches:
            return self.output.write(pending, spool.root, batch), len(corrected)
        # Two small indexes of the changed subscriptions only: all others match as they did.
        # They are beside the rows of the batch, because what Spark ships may stay for ever.
        place = self.state.spools.folder(f"{batch}/{_CORRECTION}")
        before, after = (
            stored_index(place, AsOfMatcher(versions), copied=not runs_here(spark))
            for versions in (
                (version for each in corrected for version in each.before),
                (version for each in corrected for version in each.after),
            )
        )
        correction = CorrectionTask(before, after, layout)
        spool_before = Spool.read(self.state.spools, batches)
        affected = self._classifier(since)  # events before the first difference are not affected
        pending.append(self.output.pending(spark, spool_before, affected, correction))
        # One write for both, because a sink takes a batch id once.
        matches = self.output.write(pending, spool.root, batch)
        for each in (before, after):
            each.discard()
        return matches, len(corrected)
