"""The table of subscriptions that a stream of changes begins with, as changes."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame

from tidegate.errors import SubscriptionError
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.spaces import Space
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.records import subscription_of
from tidegate.spark.subscription_tables import (
    check_columns,
    check_ids,
    collect_table,
    column_names,
    is_change_log,
    read_versions,
)

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)
"""From when on a subscription without `since` holds."""


def initial_changes(
    table: DataFrame | pa.Table, event_time: str | None, space: Space | None = None
) -> list[Change]:
    """The rows of a table of subscriptions as the changes that would have made them.

    A row without `since` holds for all events, from 1970 on; one whose filter has `t` needs it.
    Raises SubscriptionError for a bad row.
    """
    columns = column_names(table)
    if is_change_log(columns):
        raise SubscriptionError(
            "`initial` is a table of subscriptions; a change log belongs to the stream of changes"
        )
    check_columns(columns, event_time)
    rows = read_versions(collect_table(table), timeless=False, skip_bad=False, space=space)
    check_ids(rows)
    parser, changes = BulkParser(), []
    for row in rows:
        filter = subscription_of(row, parser, space).filter
        if row.since is None and filter.evolves:
            raise SubscriptionError(
                f"subscription {row.id!r} has no `since`, from which the `t` of its filter counts"
            )
        since = BEGINNING if row.since is None else row.since
        changes.append(
            Change(since, Op.SUBSCRIBE, row.id, row.filter, row.params, row.subscriber, row.evolve)
        )
        if row.until is not None:
            changes.append(Change(row.until, Op.UNSUBSCRIBE, row.id))
    return changes
