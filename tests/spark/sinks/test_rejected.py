"""What is set aside is kept as it came, with the reason."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.matching.history.changes import Change, Op
from tidegate.spark.sinks.rejected import ASIDE_SCHEMA, CHANGE, EVENT, SetAside, change_record

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@dataclass
class Kept:
    """A sink that keeps what it is given."""

    batches: dict[int, list[tuple[object, ...]]] = field(default_factory=dict)

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        assert deliveries.columns == ASIDE_SCHEMA.names
        self.batches[batch_id] = [tuple(row) for row in deliveries.collect()]


def test_a_change_is_kept_as_json_without_what_it_does_not_have() -> None:
    change = Change(NOON, Op.UPDATE, "s", params={"p": "ä", "q": NOON, "r": None})
    kind, reason, record, source = change_record(change, "came too late")
    assert (kind, reason, source) == (CHANGE, "came too late", None)
    params = {"p": "ä", "q": "2026-01-02 12:00:00+00:00", "r": None}
    time = "2026-01-02 12:00:00+00:00"
    assert json.loads(record) == {"time": time, "op": "update", "id": "s", "params": params}
    assert "ä" in record


def test_a_change_that_is_kept_can_be_taken_again() -> None:
    change = Change(NOON, Op.SUBSCRIBE, "s", "a < :p", {"p": 1.5}, "ann")
    assert Change.of(json.loads(change_record(change, "came too late")[2])) == change


@pytest.mark.parametrize(
    ("row", "record"),
    [
        ({"value": '{"op": '}, '{"op": '),  # a text is kept as it came
        ({"value": ""}, ""),
        ({"value": None}, "{}"),
        ({"value": "x", "id": None}, '{"value": "x"}'),
        ({"time": NOON, "op": None, "id": "s"}, '{"time": "2026-01-02 12:00:00+00:00", "id": "s"}'),
    ],
)
def test_a_row_that_is_no_change(spark: SparkSession, row: dict[str, object], record: str) -> None:
    aside, sink = SetAside(spark), Kept()
    aside.bad_change(row, "is bad")
    aside.write(sink, 3)
    assert sink.batches == {3: [(CHANGE, "is bad", record, None)]}


def test_all_that_a_batch_sets_aside_is_written_at_once(spark: SparkSession) -> None:
    aside, sink = SetAside(spark), Kept()
    events = spark.sql("select struct(1 as a, cast(null as string) as b) as event")
    aside.add_events(events, "has no time")
    aside.add_rows(spark.createDataFrame([(EVENT, "no JSON", "{", "f.json")], ASIDE_SCHEMA))
    aside.add([change_record(Change(NOON, Op.UNSUBSCRIBE, "s"), "came too late")])
    assert len(aside) == 1
    aside.write(sink, 0)
    found = sorted(sink.batches[0], key=str)
    assert [row[:2] for row in found] == [
        (CHANGE, "came too late"), (EVENT, "has no time"), (EVENT, "no JSON"),
    ]  # fmt: skip
    assert [row[2:] for row in found[1:]] == [('{"a":1}', None), ("{", "f.json")]


def test_nothing_is_written_where_there_is_nothing(spark: SparkSession) -> None:
    sink = Kept()
    SetAside(spark).write(sink, 0)
    assert sink.batches == {}
