"""Matching in SQL: a table function for the subscriptions of a table.

    register_match_function(spark, "wanted", spark.table("quotes"), subscriptions)
    spark.sql("SELECT * FROM wanted(TABLE(SELECT * FROM quotes WHERE price > 9))")

Spark's functions take one table, so a function is made for one set of subscriptions: they are
indexed when it is registered. And a function over Arrow batches must say its columns beforehand, so
it takes tables that have the columns of one that is given then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError, EventError
from tidegate.spark.columns import (
    DELIVERY_FIELDS,
    check_attributes,
    check_event_time,
    checked_variables,
    kept_columns,
    result_schema,
)
from tidegate.spark.index_files import ship_index
from tidegate.spark.misfits import Misfits, event_kinds
from tidegate.spark.subscription_tables import (
    build_matcher,
    check_columns,
    collect_table,
    column_names,
    read_versions,
)
from tidegate.spark.worker_tasks import DecodingTask, DeliveryLayout, MatchTask


def register_match_function(
    spark: SparkSession,
    name: str,
    events: DataFrame,
    subscriptions: DataFrame | pa.Table,
    event_time: str | None = None,
    *,
    key: str | Sequence[str] | None = None,
    variables: Mapping[str, object] | None = None,
    skip_bad: bool = False,
    strict: bool = False,
) -> None:
    """Register a table function that gives the matches of a table of events, as `match` does.

    Of ``events`` only the columns are taken; no row is read. The other arguments are those of
    `match`. Needs Spark 4.1.
    """
    if not hasattr(f, "arrow_udtf"):
        raise ConnectorError(
            "a function for SQL needs Spark 4.1; "
            "match(...).createOrReplaceTempView(...) makes a view with any"
        )
    check_columns(column_names(subscriptions), event_time)
    check_event_time(events, event_time)
    kept = kept_columns(events, key, {field.name for field in DELIVERY_FIELDS})
    versions = read_versions(
        collect_table(subscriptions), timeless=event_time is None, skip_bad=skip_bad
    )
    matcher = build_matcher(versions, skip_bad=skip_bad)
    misfits = Misfits()
    misfits.add_all(matcher, event_kinds(events))
    misfits.report(strict=strict)
    attributes = matcher.attributes()
    check_attributes(events, attributes)
    used = frozenset(attributes if event_time is None else attributes | {event_time})
    layout = DeliveryLayout(event_time, tuple(kept), False, checked_variables(variables), used=used)
    task = DecodingTask(MatchTask(ship_index(spark, matcher), layout))
    schema = result_schema(events, kept, grouped=False)
    columns = events.columns

    class MatchFunction:
        """The handler of the function; Spark makes one for each partition."""

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            """The rows of deliveries of some events."""
            if batch.schema.names != columns:
                raise EventError(
                    f"the function {name} takes tables with the columns {', '.join(columns)}, "
                    f"not {', '.join(batch.schema.names)}"
                )
            for rows in task(iter([batch])):
                yield pa.Table.from_batches([rows])

    made: Any = f.arrow_udtf(MatchFunction, returnType=schema)
    spark.udtf.register(name, made)
