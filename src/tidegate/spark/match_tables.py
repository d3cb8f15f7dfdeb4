"""Matching DataFrames of events with subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.matching.columnar.index import PAST_ENTRIES_MAX
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.versions import Version
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_events,
    checked_variables,
    kept_columns,
    result_schema,
)
from tidegate.spark.partitioning import (
    BYTES_PER_SUBSCRIPTION,
    INDEX_BYTES_MAX,
    PartitionedTask,
    bucketed,
    check_attribute,
    most_used,
    with_bucket,
)
from tidegate.spark.shipping import ship
from tidegate.spark.subscriptions import (
    check_columns,
    check_ids,
    collected,
    column_names,
    matcher_of,
    read_versions,
    without_bad,
)
from tidegate.spark.worker import DeliveryLayout, MatchTask

AUTOMATIC = "auto"


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

    Each column of ``events`` is an attribute, structs flatten to dotted names. ``subscriptions``
    has the columns `id` and `filter` and, where wanted, `subscriber`, `params` (a struct, a map, or
    JSON in a string), `since` and `until`; or it is a log of changes with `time`, `op`, `id` and
    more. With ``event_time``, a column of timestamps, each event is matched with the subscriptions
    as they stood at its time.

    The result has the columns of the event, or those of ``key``, and `subscription`, `subscriber`
    and `version`, a row for each match; with ``grouped`` a row for each event that matches, with a
    list `deliveries` of these. ``variables`` are what filters see as `@name`. Bad subscriptions are
    an error, unless ``skip_bad`` leaves them out.

    ``partition_by`` names an attribute by which both events and subscriptions are partitioned, so
    that no worker needs the whole index; None rules that out. By default it is done where the index
    is larger than a gigabyte, by the attribute that most filters compare with `=`.
    """
    check_columns(column_names(subscriptions), event_time)
    check_events(events, event_time)
    added = {"deliveries"} if grouped else {field.name for field in DELIVERY_FIELDS}
    kept = kept_columns(events, key, added)
    versions = read_versions(
        collected(subscriptions), timeless=event_time is None, skip_bad=skip_bad
    )
    layout = DeliveryLayout(event_time, tuple(kept), grouped, checked_variables(variables))
    schema = result_schema(events, kept, grouped=grouped)
    attribute = _partitioning(events, versions, partition_by)
    if attribute is not None:
        return _match_partitioned(events, versions, attribute, layout, schema, skip_bad)
    index = ship(events.sparkSession, matcher_of(versions, skip_bad=skip_bad))
    return _in_time(events, event_time, versions).mapInArrow(MatchTask(index, layout), schema)


def _partitioning(events: DataFrame, versions: list[Version], wanted: str | None) -> str | None:
    """The attribute to partition by, if any."""
    if wanted is None:
        return None
    if wanted != AUTOMATIC:
        check_attribute(events, wanted)
        return wanted
    if len(versions) * BYTES_PER_SUBSCRIPTION <= INDEX_BYTES_MAX:
        return None
    return most_used(versions, events)


def _match_partitioned(
    events: DataFrame,
    versions: list[Version],
    attribute: str,
    layout: DeliveryLayout,
    schema: StructType,
    skip_bad: bool,
) -> DataFrame:
    if skip_bad:
        versions = without_bad(versions)
    else:
        check_ids(versions)
    session = events.sparkSession
    needed = 2 * len(versions) * BYTES_PER_SUBSCRIPTION // INDEX_BYTES_MAX
    count = max(needed, session.sparkContext.defaultParallelism)
    rest, buckets = bucketed(versions, events, attribute, count)
    files = [ship(session, AsOfMatcher(each)) for each in [rest, *buckets]]
    task = PartitionedTask(files[0], files[1:], layout)
    return with_bucket(events, attribute, count).mapInArrow(task, schema)


def _in_time(events: DataFrame, event_time: str | None, versions: list[Version]) -> DataFrame:
    """The events of each partition in the order of time, if there is much of the past.

    An index leaves versions of other times alone, so events of about one time should come together.
    """
    past = sum(each.until is not None for each in versions)
    if event_time is None or events.isStreaming or past <= PAST_ENTRIES_MAX:
        return events
    return events.sortWithinPartitions(event_time)
