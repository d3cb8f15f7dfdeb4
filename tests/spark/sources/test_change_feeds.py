"""Change feeds of databases, in their own formats."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import ConnectorError
from tidegate.matching.history.changes import Change, Op
from tidegate.spark.sources.change_feeds import debezium_changes, delta_changes
from tidegate.spark.subscription_tables import check_columns, read_changes

pytestmark = pytest.mark.xdist_group("spark")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1_000)


def read(rows: DataFrame) -> tuple[list[Change], list[str]]:
    """The changes of a log, in the order of their places, and the reasons of bad ones."""
    check_columns(rows.columns, "time")
    bad: list[str] = []
    found = list(read_changes(rows.toArrow(), lambda _, reason: bad.append(reason)))
    return sorted(found, key=lambda each: each.place), bad


WANTED = [
    Change(NOON, Op.SUBSCRIBE, "7", "x < :p", {"p": 1}, "ann", seq=1),
    Change(NOON, Op.UPDATE, "7", "x < :p", {"p": 2}, seq=2),
    Change(NOON, Op.UNSUBSCRIBE, "7", seq=3),
]


def test_the_feed_of_a_delta_table(spark: SparkSession) -> None:
    rows = [
        (7, "x < :p", '{"p": 1}', "ann", "insert", 1),
        (7, "x < :p", '{"p": 1}', "ann", "update_preimage", 2),
        (7, "x < :p", '{"p": 2}', "ann", "update_postimage", 2),
        (7, "x < :p", '{"p": 2}', "ann", "delete", 3),
    ]
    names = "id long, filter string, params string, subscriber string"
    feed = spark.createDataFrame(rows, f"{names}, _change_type string, _commit_version long")
    timed = feed.selectExpr("*", f"timestamp_millis({NOON_MS}) as _commit_timestamp")
    assert read(delta_changes(timed)) == (WANTED, [])
    with pytest.raises(ConnectorError, match="no column '_commit_timestamp'; read the table with"):
        delta_changes(feed)


@pytest.mark.parametrize("with_schema", [False, True])
def test_records_of_debezium(spark: SparkSession, with_schema: bool) -> None:
    def record(op: str, before: object, after: object, place: int) -> str:
        payload = {
            "before": before, "after": after, "op": op, "ts_ms": NOON_MS + 99,
            "source": {"ts_ms": NOON_MS, "lsn": place, "db": "market"},
        }  # fmt: skip
        return json.dumps({"schema": {}, "payload": payload} if with_schema else payload)

    first = {"id": 7, "filter": "x < :p", "params": '{"p": 1}', "subscriber": "ann"}
    second = {**first, "params": {"p": 2}}  # a column of JSON in place of text
    values = [
        record("c", None, first, 1),
        record("u", first, second, 2),
        record("d", second, None, 3),
        None,  # the tombstone after a deletion
        record("t", None, None, 4),  # the table was truncated
    ]
    rows = spark.createDataFrame([(each,) for each in values], "value string")
    found, bad = read(debezium_changes(rows))
    assert found == WANTED
    assert len(bad) == 1
    with pytest.raises(ConnectorError, match="no column 'value'; they have key"):
        debezium_changes(rows.selectExpr("value as key"))
