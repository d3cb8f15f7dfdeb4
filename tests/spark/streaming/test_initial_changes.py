"""The table that a stream of changes begins with."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.spark_streams import START, Collected, Folders, event, subscribe, update
from tidegate.errors import SubscriptionError
from tidegate.matching.history.changes import Change, Op
from tidegate.spark.streaming.initial_changes import BEGINNING, initial_changes


def table(*rows: dict[str, object]) -> pa.Table:
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def test_rows_are_subscriptions_that_begin_and_end() -> None:
    noon, one = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (12, 13))
    rows = table(
        {"id": "a", "filter": "x < :p", "params": '{"p": 1}', "subscriber": "ann"},
        {"id": "b", "filter": "x < t", "since": noon, "until": one},
    )
    assert initial_changes(rows, "time") == [
        Change(BEGINNING, Op.SUBSCRIBE, "a", "x < :p", {"p": 1}, "ann"),
        Change(noon, Op.SUBSCRIBE, "b", "x < t", {}),
        Change(one, Op.UNSUBSCRIBE, "b"),
    ]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"id": "a", "filter": "x <"}], "subscription 'a': "),
        ([{"id": "a", "filter": "x < t"}], "'a' has no `since`, from which the `t`"),
        ([{"id": "a", "filter": "x < 1"}] * 2, "there already is a subscription 'a'"),
        ([{"id": "a"}], "no column 'filter'"),
        ([{"id": "a", "op": "subscribe", "filter": "x < 1"}], "`initial` is a table of subscr"),
    ],
)
def test_bad_rows(rows: list[dict[str, object]], reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason):
        initial_changes(table(*rows), "time")


@pytest.mark.xdist_group("spark")
def test_a_stream_goes_on_from_its_table(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    rows = table({"id": "s", "filter": "a < :p", "params": '{"p": 5}'})
    folders.add("events", 0, [event(0, 1, 4), event(1, 3, 4)])
    folders.add("changes", 0, [update(2, "s", p=3), subscribe(0, "u", "a > 3")])
    [first] = folders.run(spark, to, initial=rows)
    assert (first.changes, first.subscriptions) == (3, 2)
    folders.add("events", 1, [event(2, 4, 2)])
    folders.add("changes", 1, [])
    folders.run(spark, to, initial=rows)  # it does not begin again
    found = sorted((row["number"], row["subscription"], row["operation"]) for row in to.rows)
    assert found == [
        (0, "s", "assert"), (0, "u", "assert"), (1, "u", "assert"), (2, "s", "assert"),
    ]  # fmt: skip
    versions = {row["version"] for row in to.rows if row["number"] == 0}
    assert versions == {BEGINNING, START}
