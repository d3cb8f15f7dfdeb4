"""Setting up the query that matches a stream of events: `tidegate.spark.deliver`.

Events and changes are joined to one stream, so that one checkpoint holds how far both were read,
and a change is applied in the batch in which it is read. (Reading changes with a second query would
leave corrections waiting for the next event.) `micro_batch.py` runs the batches of that stream.

The answer is exact for events and changes that are at most ``lateness`` older than the latest event
of the batches before. Older ones are rejected, as are records that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.errors import EventError
from tidegate.language.spaces import Space
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    GROUPED_FIELD,
    check_events,
    checked_variables,
    kept_columns,
    quoted_column,
    result_schema,
)
from tidegate.spark.index_files import ship_index
from tidegate.spark.session import runs_here
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.rejected import REJECTED_SCHEMA, rejected_event
from tidegate.spark.sinks.sink import Sink
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE
from tidegate.spark.storage.locations import credentials_of, folder_at
from tidegate.spark.streaming.initial_changes import initial_changes
from tidegate.spark.streaming.micro_batch import (
    SPARK_FOLDER,
    BatchOutput,
    BatchReport,
    ChangesRunner,
    TableRunner,
)
from tidegate.spark.streaming.stream_state import StreamState
from tidegate.spark.subscription_tables import (
    build_matcher,
    check_columns,
    collect_table,
    column_names,
    read_versions,
)
from tidegate.spark.worker_tasks import DeliveryLayout

OPERATION_FIELD = t.StructField("operation", t.StringType(), False)
"""`assert` or `retract`; see `worker_tasks.py`."""

LATENESS_MAX = timedelta(days=36_500)


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
    rejected: Sink | None = None,
    trigger: Mapping[str, Any] | None = None,
    report: Callable[[BatchReport], None] | None = None,
    name: str | None = None,
    space: Space | None = None,
    ahead: timedelta | None = None,
    initial: DataFrame | pa.Table | None = None,
) -> StreamingQuery:
    """Start to match a stream of events with subscriptions; returns the running query.

    ``subscriptions`` is a table, as for `match`, or a stream of changes: with the columns `time`,
    `op`, `id` and more of a change log, or with one column `value` that holds each change as a JSON
    object. With a stream of changes each event is matched as of its time. Events and changes that
    are at most ``lateness`` older than the latest event get the exact answer, in whatever order
    they come: `to` gets the rows of `match` with one more column `operation`, which is `assert`, or
    `retract` where a late change invalidates an earlier delivery.

    Rejected rows, which are older than that or cannot be read, go to ``rejected``, by default
    Parquet files in the folder `rejected` of the checkpoint. ``checkpoint`` is a path or URI of a
    folder that the driver and all workers reach. ``trigger`` is as for Spark's `DataStreamWriter`.
    ``report`` is called after each micro-batch.

    With ``ahead`` an event of a stream with changes whose time is by more than that ahead of the
    clock is rejected; otherwise a single one dated 2099 makes all others late.

    ``initial`` is a table of subscriptions that a stream of changes begins with. It counts in the
    first micro-batch of a checkpoint; later the changes have gone on from there.

    With a ``space`` a subscription of a table that does not fit it is an error, and a change whose
    filter does not fit is rejected. Events, and updates without a filter, are not checked.
    """
    if not events.isStreaming:
        raise EventError("deliver takes a stream of events; tidegate.spark.match takes a table")
    # The columns that a source adds for bad records are not attributes.
    attributes = events.drop(BAD, RECORD, SOURCE)
    check_events(attributes, event_time)
    is_stream = isinstance(subscriptions, DataFrame) and subscriptions.isStreaming
    layout, schema = _layout(attributes, event_time, key, grouped, variables, corrections=is_stream)
    # Spark's own files are in `spark/` and ours beside them, so that one folder holds all that
    # belongs to one query.
    folder = folder_at(checkpoint, credentials_of(events.sparkSession))
    rejected_location = folder.folder("rejected").spark_path
    rejected_sink = ParquetSink(rejected_location) if rejected is None else rejected
    output = BatchOutput(folder, layout, schema, to, rejected_sink)
    if isinstance(subscriptions, DataFrame) and is_stream:
        _check_changes(subscriptions, event_time, lateness)
        if ahead is not None and not timedelta(0) <= ahead <= LATENESS_MAX:
            raise EventError(f"`ahead` is {ahead}; it must be from 0 to {LATENESS_MAX}")
        rows = _joined_stream(events, subscriptions)
        state = StreamState(
            folder.folder("tidegate"), lateness, copied=not runs_here(events.sparkSession)
        )
        begun = [] if initial is None else initial_changes(initial, event_time, space)
        runner: _Runner = ChangesRunner(state, output, report, space, ahead, begun)
    else:
        if initial is not None:
            raise EventError("`initial` goes with a stream of changes; this is a table already")
        check_columns(column_names(subscriptions), event_time)
        table = collect_table(subscriptions)
        timeless = event_time is None
        versions = read_versions(table, timeless=timeless, skip_bad=False, space=space)
        index = ship_index(events.sparkSession, build_matcher(versions, skip_bad=False))
        rows = _event_rows(events)
        runner = TableRunner(index, len(versions), output, report)
    writer = rows.writeStream.foreachBatch(runner)
    writer = writer.option("checkpointLocation", folder.folder(SPARK_FOLDER).spark_path)
    if name is not None:
        writer = writer.queryName(name)
    if trigger is not None:
        writer = writer.trigger(**trigger)
    return writer.start()


_Runner = Callable[[DataFrame, int], None]


def _layout(
    events: DataFrame,
    event_time: str | None,
    key: str | Sequence[str] | None,
    grouped: bool,
    variables: Mapping[str, object] | None,
    *,
    corrections: bool,
) -> tuple[DeliveryLayout, t.StructType]:
    """The layout of deliveries, and their columns."""
    more = [OPERATION_FIELD] if corrections else []
    added = [GROUPED_FIELD] if grouped else DELIVERY_FIELDS
    kept = kept_columns(events, key, {field.name for field in [*added, *more]})
    schema = result_schema(events, kept, grouped=grouped)
    # Encoded, because workers write Parquet from it directly. For other sinks the rows are decoded
    # when they go to Spark.
    layout = DeliveryLayout(
        event_time, tuple(kept), grouped, checked_variables(variables), encoded=True
    )
    return layout, t.StructType([*schema.fields, *more])


def _check_changes(changes: DataFrame, event_time: str | None, lateness: timedelta) -> None:
    if event_time is None:
        raise EventError("a stream of changes needs `event_time`: events are judged as of it")
    if changes.columns != ["value"]:
        check_columns(changes.columns, event_time)
    if not timedelta(0) <= lateness <= LATENESS_MAX:
        raise EventError(f"the lateness is {lateness}; it must be from 0 to {LATENESS_MAX}")


def _event_rows(events: DataFrame) -> DataFrame:
    """Rows with either a struct `event` or, for a record that cannot be read, a struct `bad`."""
    event = f.struct(
        *(quoted_column(name) for name in events.columns if name not in (BAD, RECORD, SOURCE))
    )
    if BAD not in events.columns:
        return events.select(event.alias("event"), f.lit(None).cast(REJECTED_SCHEMA).alias("bad"))
    record = rejected_event(f.col(BAD), f.col(RECORD), f.col(SOURCE))
    is_bad = f.col(BAD).isNotNull()
    return events.select(f.when(~is_bad, event).alias("event"), f.when(is_bad, record).alias("bad"))


def _joined_stream(events: DataFrame, changes: DataFrame) -> DataFrame:
    """Events and changes as one stream; a row has one of the structs `event`, `bad`, `change`."""
    # Structs, because columns of events and of changes may have the same names.
    change = f.struct(*map(quoted_column, changes.columns))
    return _event_rows(events).unionByName(
        changes.select(change.alias("change")), allowMissingColumns=True
    )
