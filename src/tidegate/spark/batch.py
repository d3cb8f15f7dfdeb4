"""Matching DataFrames of events with subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.language.filters import check_values
from tidegate.spark.columns import DELIVERY_FIELDS, check_events, kept_columns, result_schema
from tidegate.spark.shipping import ship
from tidegate.spark.subscriptions import check_columns, collected, matcher_of, read_versions
from tidegate.spark.worker import Layout, MatchTask


def match(
    events: DataFrame,
    subscriptions: DataFrame | pa.Table,
    event_time: str | None = None,
    *,
    key: str | Sequence[str] | None = None,
    grouped: bool = False,
    variables: Mapping[str, object] | None = None,
    skip_bad: bool = False,
) -> DataFrame:
    """The matches of events, batch or streaming, with subscriptions.

    Each column of ``events`` is an attribute, structs flatten to dotted names. ``subscriptions``
    has the columns `id` and `filter` and, where wanted, `subscriber`, `params` (a struct, a map, or
    JSON in a string), `since` and `until`; or it is a log of changes with `time`, `op`, `id` and
    more. With ``event_time``, a column of timestamps, each event is matched with the subscriptions
    as they stood at its time.

    The result has the columns of the event, or those of ``key``, and `subscription`, `subscriber`
    and `version`, a row for each match; with ``grouped`` a row for each event that matches, with a
    list `deliveries` of these. ``variables`` are what filters see as `@name`.
    """
    check_columns(_names(subscriptions), event_time)
    check_events(events, event_time)
    added = {"deliveries"} if grouped else {field.name for field in DELIVERY_FIELDS}
    kept = kept_columns(events, key, added)
    values = check_values("variable @", variables or {})
    known = {name: value for name, value in values.items() if value is not None}
    versions = read_versions(
        collected(subscriptions), timeless=event_time is None, skip_bad=skip_bad
    )
    index = ship(events.sparkSession, matcher_of(versions, skip_bad=skip_bad))
    task = MatchTask(index, Layout(event_time, tuple(kept), grouped, known))
    return events.mapInArrow(task, result_schema(events, kept, grouped=grouped))


def _names(table: DataFrame | pa.Table) -> list[str]:
    return table.column_names if isinstance(table, pa.Table) else table.columns
