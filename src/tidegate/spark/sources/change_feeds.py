"""Change feeds of databases as logs of changes of subscriptions.

A table with the columns `id`, `filter` and optionally `params` and `subscriber` is kept in a
database; what happens to its rows becomes changes: an insertion subscribes, an update changes the
filter and the parameters, a deletion unsubscribes. The order in which they were committed is
`seq`, because several may be of one time.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidegate.errors import ConnectorError
from tidegate.spark.columns import quoted_column

_DELTA_OPERATIONS = {
    "insert": "subscribe", "update_postimage": "update", "delete": "unsubscribe",
}  # fmt: skip
_DELTA_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
_DEBEZIUM_OPERATIONS = {"c": "subscribe", "r": "subscribe", "u": "update", "d": "unsubscribe"}
_DEBEZIUM_PLACES = ("lsn", "pos", "scn", "ts_us")
"""What databases call the place of a change in their log: PostgreSQL, MySQL, Oracle, others."""


def delta_changes(feed: DataFrame) -> DataFrame:
    """The changes in a change data feed of a Delta table, a stream or a table.

    ``feed`` has the columns of the table and those that Delta adds (`_change_type`,
    `_commit_version`, `_commit_timestamp`).
    """
    missing = [name for name in (*_DELTA_COLUMNS, "id", "filter") if name not in feed.columns]
    if missing:
        raise ConnectorError(
            f"the change data feed has no column {missing[0]!r}; read the table with the option "
            "readChangeFeed"
        )
    rows = feed.where("_change_type != 'update_preimage'")
    row: dict[str, Column] = {
        name: quoted_column(name)
        for name in ("filter", "params", "subscriber")
        if name in feed.columns
    }
    operation = _operation(f.col("_change_type"), _DELTA_OPERATIONS)
    return _changes(
        rows, f.col("_commit_timestamp"), operation, f.col("id").cast("string"), row,
        f.col("_commit_version"),
    )  # fmt: skip


def debezium_changes(records: DataFrame, value: str = "value") -> DataFrame:
    """The changes in records of Debezium, JSON in a column, with or without their schema.

    The time of a change is that of the database (`source.ts_ms`), else that of Debezium.
    """
    if value not in records.columns:
        raise ConnectorError(
            f"the records have no column {value!r}; they have {', '.join(records.columns)}"
        )
    text = quoted_column(value).cast("string")
    payload = f.coalesce(f.get_json_object(text, "$.payload"), text)
    rows = records.where(text.isNotNull()).select(payload.alias("payload"))  # null: a tombstone

    def field(path: str) -> Column:
        return f.get_json_object("payload", f"$.{path}")

    def of_row(name: str) -> Column:
        return f.when(field("op") == "d", field(f"before.{name}")).otherwise(field(f"after.{name}"))

    time_ms = f.coalesce(field("source.ts_ms"), field("ts_ms")).cast("bigint")
    place = f.coalesce(*(field(f"source.{name}") for name in _DEBEZIUM_PLACES))
    operation = _operation(field("op"), _DEBEZIUM_OPERATIONS)
    row: dict[str, Column] = {name: of_row(name) for name in ("filter", "params", "subscriber")}
    return _changes(
        rows, f.timestamp_millis(time_ms), operation, of_row("id"), row, place.cast("bigint")
    )


def _operation(name: Column, operations: dict[str, str]) -> Column:
    """The operation of a change; another one stays as it is, and is rejected with its name."""
    found = name
    for theirs, ours in operations.items():
        found = f.when(name == theirs, ours).otherwise(found)
    return found


def _changes(
    rows: DataFrame,
    time: Column,
    operation: Column,
    id: Column,
    row: dict[str, Column],
    seq: Column,
) -> DataFrame:
    """Columns of a change log; each operation has only the fields that it may have."""
    needed = {
        "filter": operation != "unsubscribe",
        "params": operation != "unsubscribe",
        "subscriber": operation == "subscribe",
    }
    columns = [f.when(needed[name], column).alias(name) for name, column in row.items()]
    return rows.select(
        time.alias("time"), operation.alias("op"), id.alias("id"), *columns, seq.alias("seq")
    )
