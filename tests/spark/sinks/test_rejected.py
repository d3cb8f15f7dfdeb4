"""Rejected rows are kept as they were received, with the reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.matching.history.changes import Change, Op
from tidegate.spark.sinks.rejected import (
    CHANGE,
    EVENT,
    REJECTED_SCHEMA,
    RejectedRows,
    rejected_change,
)

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@dataclass
class Kept:
    """A sink that keeps its rows in memory."""

    batches: dict[int, list[tuple[object, ...]]] = field(default_factory=dict)

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        assert deliveries.columns == REJECTED_SCHEMA.names
        self.batches[batch_id] = [tuple(row) for row in deliveries.collect()]


def test_a_change_is_kept_as_json_without_absent_fields() -> None:
    change = Change(NOON, Op.UPDATE, "s", params={"p": "ä", "q": NOON, "r": None})
    kind, reason, record, source = rejected_change(change, "came too late")
    assert (kind, reason, source) == (CHANGE, "came too late", None)
    params = {"p": "ä", "q": "2026-01-02 12:00:00+00:00", "r": None}
    time = "2026-01-02 12:00:00+00:00"
    assert json.loads(record) == {"time": time, "op": "update", "id": "s", "params": params}
    assert "ä" in record


def test_a_rejected_change_can_be_read_again() -> None:
    change = Change(NOON, Op.SUBSCRIBE, "s", "a < :p", {"p": 1.5}, "ann")
    assert Change.of(json.loads(rejected_change(change, "came too late")[2])) == change


@pytest.mark.parametrize(
    ("row", "record"),
    [
        ({"value": '{"op": '}, '{"op": '),  # a text is kept as it is
        ({"value": ""}, ""),
        ({"value": None}, "{}"),
        ({"value": "x", "id": None}, '{"value": "x"}'),
        ({"time": NOON, "op": None, "id": "s"}, '{"time": "2026-01-02 12:00:00+00:00", "id": "s"}'),
    ],
)
def test_a_row_that_is_not_a_change(
    spark: SparkSession, row: dict[str, object], record: str
) -> None:
    rejected, sink = RejectedRows(spark), Kept()
    rejected.add_unreadable_change(row, "is bad")
    rejected.write(sink, 3)
    assert sink.batches == {3: [(CHANGE, "is bad", record, None)]}


def test_all_rejected_rows_of_a_batch_are_written_at_once(spark: SparkSession) -> None:
    rejected, sink = RejectedRows(spark), Kept()
    events = spark.sql("select struct(1 as a, cast(null as string) as b) as event")
    rejected.add_events(events, "has no time")
    rejected.add_unreadable_events(
        spark.createDataFrame([(EVENT, "no JSON", "{", "f.json")], REJECTED_SCHEMA)
    )
    rejected.add_changes([rejected_change(Change(NOON, Op.UNSUBSCRIBE, "s"), "came too late")])
    assert rejected.change_count == 1
    rejected.write(sink, 0)
    rows = sorted(sink.batches[0], key=str)
    assert [row[:2] for row in rows] == [
        (CHANGE, "came too late"), (EVENT, "has no time"), (EVENT, "no JSON"),
    ]  # fmt: skip
    assert [row[2:] for row in rows[1:]] == [('{"a":1}', None), ("{", "f.json")]


def test_nothing_is_written_if_no_row_is_rejected(spark: SparkSession) -> None:
    sink = Kept()
    RejectedRows(spark).write(sink, 0)
    assert sink.batches == {}
