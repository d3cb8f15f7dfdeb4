"""Rejected rows: the records of a stream that cannot be read or come too late, with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.matching.history.changes import Change
from tidegate.spark.sinks.sink import Sink

EVENT, CHANGE = "event", "change"
REJECTED_SCHEMA = t.StructType(
    [
        t.StructField("kind", t.StringType()),
        t.StructField("reason", t.StringType()),
        t.StructField("record", t.StringType()),
        t.StructField("source", t.StringType()),
    ]
)
"""`kind` is `event` or `change`; `record` is the text as it was received, or the row as JSON;
`source` is the file or the position in a topic, where that is known."""

RejectedRow = tuple[str, str, str, str | None]
"""A row of ``REJECTED_SCHEMA``."""


def rejected_event(reason: Column, record: Column, source: Column) -> Column:
    """A struct of ``REJECTED_SCHEMA`` for an event."""
    return f.struct(
        f.lit(EVENT).alias("kind"),
        reason.alias("reason"),
        record.alias("record"),
        source.cast("string").alias("source"),
    )


def rejected_change(change: Change, reason: str) -> RejectedRow:
    """The row for a change that was read but cannot be applied."""
    fields = {
        "time": change.time, "op": change.op.value, "id": change.id, "filter": change.filter,
        "params": change.params, "subscriber": change.subscriber,
    }  # fmt: skip
    return CHANGE, reason, _to_json(fields), None


def _to_json(row: Mapping[str, object]) -> str:
    present = {name: value for name, value in row.items() if value is not None}
    return json.dumps(present, default=str, ensure_ascii=False)


class RejectedRows:
    """Collects the rejected rows of a micro-batch.

    Rejected changes are few and in the driver's memory already; rejected events may be many, so
    they stay DataFrames.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._changes: list[RejectedRow] = []
        self._events: list[DataFrame] = []

    @property
    def change_count(self) -> int:
        """The number of rejected changes."""
        return len(self._changes)

    def add_changes(self, rows: Sequence[RejectedRow]) -> None:
        """Add changes that were read but cannot be applied."""
        self._changes += rows

    def add_unreadable_change(self, row: Mapping[str, object], reason: str) -> None:
        """Add a row that is not a change; text from a single column `value` is kept as it is."""
        text = row.get("value")
        record = text if isinstance(text, str) and len(row) == 1 else _to_json(row)
        self._changes.append((CHANGE, reason, record, None))

    def add_events(self, rows: DataFrame, reason: str) -> None:
        """Add events, which are in the column `event` of the rows."""
        # As JSON, because rejected rows have one schema, whatever the attributes of events.
        record = rejected_event(f.lit(reason), f.to_json("event"), f.lit(None))
        self._events.append(rows.select(record.alias("bad")).select("bad.*"))

    def add_unreadable_events(self, rows: DataFrame) -> None:
        """Add rows that have the columns of ``REJECTED_SCHEMA`` already."""
        self._events.append(rows)

    def write(self, to: Sink, batch: int) -> None:
        """Write all rejected rows of a batch to a sink; nothing is written if there are none."""
        frames = list(self._events)
        if self._changes:
            frames.append(self._spark.createDataFrame(self._changes, REJECTED_SCHEMA))
        if not frames:
            return
        rows, *more = frames
        for each in more:
            rows = rows.unionByName(each)
        to.write(rows, batch)
