"""What a stream sets aside: what cannot be read and what comes too late, each with the reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from tidegate.matching.history.changes import Change
from tidegate.spark.sinks.sink import Sink

EVENT, CHANGE = "event", "change"
ASIDE_SCHEMA = t.StructType(
    [
        t.StructField("kind", t.StringType()),
        t.StructField("reason", t.StringType()),
        t.StructField("record", t.StringType()),
        t.StructField("source", t.StringType()),
    ]
)
"""`kind` is `event` or `change`; `record` is the text that came, or the same as JSON; `source` the
file or the place in a topic, where that is known."""

RejectedRow = tuple[str, str, str, str | None]


def event_records(reason: Column, record: Column, source: Column) -> Column:
    """Events that are set aside."""
    return f.struct(
        f.lit(EVENT).alias("kind"),
        reason.alias("reason"),
        record.alias("record"),
        source.cast("string").alias("source"),
    )


def change_record(change: Change, reason: str) -> RejectedRow:
    """A change that is set aside."""
    fields = {
        "time": change.time, "op": change.op.value, "id": change.id, "filter": change.filter,
        "params": change.params, "subscriber": change.subscriber,
    }  # fmt: skip
    return CHANGE, reason, _as_text(fields), None


def _as_text(row: Mapping[str, object]) -> str:
    there = {name: value for name, value in row.items() if value is not None}
    return json.dumps(there, default=str, ensure_ascii=False)


class SetAside:
    """Collects what a micro-batch sets aside."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._records: list[RejectedRow] = []
        self._rows: list[DataFrame] = []

    def __len__(self) -> int:
        """How many single records there are; rows of Spark are not counted."""
        return len(self._records)

    def add(self, records: Sequence[RejectedRow]) -> None:
        """Set records aside."""
        self._records += records

    def bad_change(self, row: Mapping[str, object], reason: str) -> None:
        """Set a row aside that is no change."""
        text = row.get("value")
        record = text if isinstance(text, str) and len(row) == 1 else _as_text(row)
        self._records.append((CHANGE, reason, record, None))

    def add_events(self, rows: DataFrame, reason: str) -> None:
        """Set events aside, which stand in the column `event` of some rows."""
        record = event_records(f.lit(reason), f.to_json("event"), f.lit(None))
        self._rows.append(rows.select(record.alias("bad")).select("bad.*"))

    def add_rows(self, rows: DataFrame) -> None:
        """Set rows of Spark aside."""
        self._rows.append(rows)

    def write(self, to: Sink, batch: int) -> None:
        """Write all that was set aside in a batch; nothing if there is nothing."""
        if self._records:
            self._rows.append(self._spark.createDataFrame(self._records, ASIDE_SCHEMA))
        if not self._rows:
            return
        rows, *more = self._rows
        for each in more:
            rows = rows.unionByName(each)
        to.write(rows, batch)
