"""Matching a DataFrame of events with a table of subscriptions: `tidegate.spark.match`."""

from __future__ import annotations

import atexit
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tidegate.matching.columnar.sizes import PAST_ENTRIES_MAX
from tidegate.matching.history.versions import Version
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_attributes,
    check_event_time,
    checked_variables,
    kept_columns,
    needed_columns,
    result_schema,
    used_columns,
)
from tidegate.spark.index_files import driver_folder, ship_index
from tidegate.spark.misfits import Misfits, event_kinds
from tidegate.spark.partitioned.building import BuiltIndexes, build_indexes
from tidegate.spark.partitioned.equality_keys import (
    check_attribute,
    is_string_column,
    most_used_attribute,
)
from tidegate.spark.partitioned.event_buckets import event_texts, with_bucket
from tidegate.spark.partitioned.matching import PartitionedTask
from tidegate.spark.partitioned.plan import SUBSCRIPTIONS_PER_INDEX, PartitionPlan
from tidegate.spark.session import runs_here
from tidegate.spark.storage.folder import Folder
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.storage.locations import credentials_of, folder_at
from tidegate.spark.subscription_tables import (
    as_data_frame,
    build_matcher,
    check_columns,
    check_not_streaming,
    collect_table,
    column_names,
    read_versions,
)
from tidegate.spark.worker_tasks import DeliveryLayout, MatchTask

AUTOMATIC = "auto"
SUBSCRIPTIONS_MAX = 1_000_000
"""Of more subscriptions the workers build a partitioned index, unless the caller forbids that."""
SAMPLE_SIZE = 10_000
"""The number of subscriptions by which a partitioned index is planned."""
TASKS_MAX = 128
"""At most so many buckets are made for the sake of parallel tasks, because each has its index."""


def match(
    events: DataFrame,
    subscriptions: DataFrame | pa.Table,
    event_time: str | None = None,
    *,
    key: str | Sequence[str] | None = None,
    grouped: bool = False,
    variables: Mapping[str, object] | None = None,
    skip_bad: bool = False,
    partition_by: str | None = AUTOMATIC,
    storage: str | Path | None = None,
    strict: bool = False,
) -> DataFrame:
    """The matches of events, batch or streaming, with subscriptions.

    Each column of ``events`` is an attribute; structs flatten to dotted names. ``subscriptions``
    has the columns `id` and `filter` and optionally `subscriber`, `params` (a struct, a map, or
    JSON in a string), `since` and `until`; or it is a change log with `time`, `op`, `id` and more.
    With ``event_time``, a column of timestamps, each event is matched with the subscriptions as of
    its time.

    The result has the columns of the event, or those named by ``key``, and `subscription`,
    `subscriber` and `version`, one row for each match; with ``grouped`` one row for each event that
    matches, with a list `deliveries` of these. ``variables`` are the values of `@name` in filters.
    A bad subscription is an error, unless ``skip_bad`` leaves it out. A filter that names an
    attribute which the events do not have, or compares a number with a string, matches nothing: a
    `MisfitWarning` says so, or with ``strict`` an error. Of the events only the columns are read
    that filters name, the time, and those of the result.

    More than a million subscriptions are indexed by the workers, in partitions by the attribute
    that most filters compare with `=`, so that neither the driver nor a worker needs all of them.
    ``partition_by`` names another attribute, and asks for partitions of fewer subscriptions as
    well; None forbids them. ``storage`` is a folder that the driver and all workers reach, in which
    their indexes are kept until the driver ends. Without it, on one machine they are in a temporary
    folder, and on a cluster they pass through the driver one by one.
    """
    check_columns(column_names(subscriptions), event_time)
    check_not_streaming(subscriptions)
    check_event_time(events, event_time)
    if partition_by not in (None, AUTOMATIC):
        check_attribute(events, partition_by)
    added = {"deliveries"} if grouped else {field.name for field in DELIVERY_FIELDS}
    call = _Call(
        events,
        event_time,
        tuple(kept_columns(events, key, added)),
        grouped,
        checked_variables(variables),
        skip_bad,
        strict,
    )
    if partition_by is not None:
        count = _count(subscriptions)
        if partition_by != AUTOMATIC or count > SUBSCRIPTIONS_MAX:
            attribute = None if partition_by == AUTOMATIC else partition_by
            return call.with_partitions(subscriptions, count, attribute, storage)
    return call.with_one_index(subscriptions)


@dataclass(frozen=True, slots=True)
class _Call:
    """The arguments of ``match``, checked."""

    events: DataFrame
    event_time: str | None
    kept: tuple[str, ...]
    grouped: bool
    variables: Mapping[str, Any]
    skip_bad: bool
    strict: bool

    def with_one_index(self, subscriptions: DataFrame | pa.Table) -> DataFrame:
        """The matches by one index of all subscriptions, which the driver makes."""
        versions = read_versions(
            collect_table(subscriptions), timeless=self._timeless, skip_bad=self.skip_bad
        )
        matcher = build_matcher(versions, skip_bad=self.skip_bad)
        misfits = Misfits()
        misfits.add_all(matcher, event_kinds(self.events))
        misfits.report(strict=self.strict)
        events, layout = self._prepared(matcher.attributes(), ())
        past = sum(each.until is not None for each in versions)
        index = ship_index(self._session, matcher)
        task = MatchTask(index, layout)
        return self._sorted_by_time(events, past).mapInArrow(task, self._schema)

    def with_partitions(
        self,
        subscriptions: DataFrame | pa.Table,
        count: int,
        attribute: str | None,
        storage: str | Path | None,
    ) -> DataFrame:
        """The matches by indexes that the workers make, in partitions by an attribute.

        Without one it is the attribute that most filters fix.
        """
        table = as_data_frame(self._session, subscriptions)
        sample = self._sample(table, count)
        attribute = attribute or most_used_attribute(sample, self.events)
        plan = self._plan(attribute, count, sample)
        built = self._built(table, plan, count, storage)
        built.notes.misfits.report(strict=self.strict)
        needed = () if attribute is None else (attribute,)
        events, layout = self._prepared(built.notes.attributes, needed)
        rest = [built.files[each] for each in range(plan.rest_shards) if each in built.files]
        buckets = [
            [built.files[each] for each in plan.of_bucket(bucket) if each in built.files]
            for bucket in range(plan.buckets)
        ]
        task = PartitionedTask(rest, buckets, layout)
        divided = self._sorted_by_time(with_bucket(events, plan), built.past)
        return divided.mapInArrow(task, self._schema)

    def _sample(self, table: DataFrame, count: int) -> list[Version]:
        share = min(1.0, 1.1 * SAMPLE_SIZE / max(1, count))
        some = table if share == 1 else table.sample(fraction=share, seed=0)
        rows = some.limit(SAMPLE_SIZE).toArrow()
        return read_versions(rows, timeless=self._timeless, skip_bad=True)

    def _plan(self, attribute: str | None, count: int, sample: list[Version]) -> PartitionPlan:
        tasks = int(self._session.conf.get("spark.sql.shuffle.partitions") or 0)
        return PartitionPlan.of(
            attribute,
            is_string=attribute is not None and is_string_column(self.events, attribute),
            buckets=max(count // SUBSCRIPTIONS_PER_INDEX, min(tasks, TASKS_MAX), 1),
            subscriptions=count,
            sample=sample,
            event_texts=() if attribute is None else event_texts(self.events, attribute),
        )

    def _built(
        self, table: DataFrame, plan: PartitionPlan, count: int, storage: str | Path | None
    ) -> BuiltIndexes:
        return build_indexes(
            table,
            plan,
            count,
            _folder(self._session, storage),
            event_kinds(self.events),
            copied=not runs_here(self._session),
            timeless=self._timeless,
            skip_bad=self.skip_bad,
        )

    def _prepared(
        self, attributes: set[str], needed: Sequence[str]
    ) -> tuple[DataFrame, DeliveryLayout]:
        """The events without columns that nothing needs, and how the others are read."""
        check_attributes(self.events, attributes)
        time = set() if self.event_time is None else {self.event_time}
        layout = DeliveryLayout(
            self.event_time,
            self.kept,
            self.grouped,
            self.variables,
            used=frozenset(attributes | time),
        )
        used = used_columns(self.events, attributes)
        return needed_columns(self.events, {*used, *time, *needed, *self.kept}), layout

    def _sorted_by_time(self, events: DataFrame, past: int) -> DataFrame:
        """The events, sorted by time within each partition if there are many ``past`` versions.

        The index skips parts whose versions are of other times than all events of an Arrow batch,
        so the events of a batch should be of about the same time. A stream cannot be sorted.
        """
        if self.event_time is None or events.isStreaming or past <= PAST_ENTRIES_MAX:
            return events
        return events.sortWithinPartitions(self.event_time)

    @property
    def _timeless(self) -> bool:
        return self.event_time is None

    @property
    def _session(self) -> SparkSession:
        return self.events.sparkSession

    @property
    def _schema(self) -> StructType:
        return result_schema(self.events, self.kept, grouped=self.grouped)


def _count(subscriptions: DataFrame | pa.Table) -> int:
    if isinstance(subscriptions, pa.Table):
        return int(subscriptions.num_rows)
    return subscriptions.count()


def _folder(spark: SparkSession, storage: str | Path | None) -> Folder | None:
    """The folder for the indexes of one call; None if there is none that all workers reach."""
    name = f"tidegate-{uuid.uuid4().hex}"
    if storage is None:
        return LocalFolder(driver_folder() / name) if runs_here(spark) else None
    place = folder_at(storage, credentials_of(spark))
    atexit.register(_remove, place, name)
    return place.folder(name)


def _remove(folder: Folder, name: str) -> None:
    with suppress(OSError):  # what cannot be reached when the driver ends stays
        folder.remove(name)
