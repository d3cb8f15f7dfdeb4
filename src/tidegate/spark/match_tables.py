"""Matching a DataFrame of events with a table of subscriptions: `tidegate.spark.match`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.matching.columnar.sizes import PAST_ENTRIES_MAX
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Version
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_events,
    checked_variables,
    kept_columns,
    result_schema,
)
from tidegate.spark.index_files import ship_index
from tidegate.spark.partitioning import (
    BYTES_PER_SUBSCRIPTION,
    INDEX_BYTES_MAX,
    PartitionedTask,
    check_attribute,
    most_used_attribute,
    split_into_buckets,
    with_bucket,
)
from tidegate.spark.subscription_tables import (
    build_matcher,
    check_columns,
    check_ids,
    collect_table,
    column_names,
    indexable_versions,
    read_versions,
)
from tidegate.spark.worker_tasks import DeliveryLayout, MatchTask

AUTOMATIC = "auto"
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
    A bad subscription is an error, unless ``skip_bad`` leaves it out.

    ``partition_by`` names an attribute by which both events and subscriptions are partitioned, so
    that no worker needs the whole index; None forbids that. By default an index of more than a
    gigabyte is partitioned, by the attribute that most filters compare with `=`.
    """
    check_columns(column_names(subscriptions), event_time)
    check_events(events, event_time)
    added = {"deliveries"} if grouped else {field.name for field in DELIVERY_FIELDS}
    kept = kept_columns(events, key, added)
    versions = read_versions(
        collect_table(subscriptions), timeless=event_time is None, skip_bad=skip_bad
    )
    layout = DeliveryLayout(event_time, tuple(kept), grouped, checked_variables(variables))
    schema = result_schema(events, kept, grouped=grouped)
    attribute = _partition_attribute(events, versions, partition_by)
    if attribute is not None:
        return _match_partitioned(events, versions, attribute, layout, schema, skip_bad)
    index = ship_index(events.sparkSession, build_matcher(versions, skip_bad=skip_bad))
    return _sorted_by_time(events, event_time, versions).mapInArrow(
        MatchTask(index, layout), schema
    )


def _partition_attribute(
    events: DataFrame, versions: list[Version], partition_by: str | None
) -> str | None:
    """The attribute to partition by; None if one index for all workers will do."""
    if partition_by is None:
        return None
    if partition_by != AUTOMATIC:
        check_attribute(events, partition_by)
        return partition_by
    if len(versions) * BYTES_PER_SUBSCRIPTION <= INDEX_BYTES_MAX:
        return None
    return most_used_attribute(versions, events)


def _match_partitioned(
    events: DataFrame,
    versions: list[Version],
    attribute: str,
    layout: DeliveryLayout,
    schema: StructType,
    skip_bad: bool,
) -> DataFrame:
    # Two versions with the same id may go to different buckets, whose indexes cannot notice it. So
    # bad versions are found here, before they are split.
    if skip_bad:
        versions = indexable_versions(versions)
    else:
        check_ids(versions)
    session = events.sparkSession
    # Buckets are uneven, so there are twice as many as would do if all were of the same size.
    needed = 2 * len(versions) * BYTES_PER_SUBSCRIPTION // INDEX_BYTES_MAX
    tasks = int(session.conf.get("spark.sql.shuffle.partitions") or 0)
    count = max(needed, min(tasks, TASKS_MAX), 1)
    rest, buckets = split_into_buckets(versions, events, attribute, count)
    files = [ship_index(session, AsOfMatcher(each)) for each in [rest, *buckets]]
    task = PartitionedTask(files[0], files[1:], layout)
    return with_bucket(events, attribute, count).mapInArrow(task, schema)


def _sorted_by_time(
    events: DataFrame, event_time: str | None, versions: list[Version]
) -> DataFrame:
    """The events, sorted by time within each partition if there are many past versions.

    The index skips parts whose versions are of other times than all events of an Arrow batch, so
    the events of a batch should be of about the same time. A stream cannot be sorted.
    """
    past = sum(each.until is not None for each in versions)
    if event_time is None or events.isStreaming or past <= PAST_ENTRIES_MAX:
        return events
    return events.sortWithinPartitions(event_time)
