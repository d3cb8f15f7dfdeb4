"""Setting up a stream: what cannot be matched is refused before the query starts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from support.spark_streams import EVENT_SCHEMA, Collected, Folders, Row, event, subscribe
from tidegate import EventError, SubscriptionError
from tidegate.spark import deliver
from tidegate.spark.streaming.deliver import LATENESS_MAX

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize(
    ("column", "options", "reason"),
    [
        ("cast(time as string)", {}, "'time' holds the time .* must be of timestamps, not string"),
        ("a", {}, "no column 'time' with their time; they have a"),
        ("time", {"event_time": None}, "a stream of changes needs `event_time`"),
        ("time", {"lateness": timedelta(microseconds=-1)}, "the lateness is -1 day.*must be from"),
        ("time", {"lateness": LATENESS_MAX + timedelta(days=1)}, "the lateness is 36501 days"),
    ],
)
def test_what_cannot_be_the_time_of_a_stream_is_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path, column: str, options: Row, reason: str
) -> None:
    folders = Folders(tmp_path)
    events = spark.readStream.schema(EVENT_SCHEMA).json(str(folders.root / "events"))
    alias = column if column == "a" else f"{column} as time"
    changes = spark.readStream.text(str(folders.root / "changes"))
    given = {"event_time": "time", "checkpoint": tmp_path / "checkpoint", **options}
    with pytest.raises(EventError, match=reason):
        deliver(events.selectExpr(alias), changes, Collected(), **given)  # type: ignore[arg-type]
    assert not (tmp_path / "checkpoint").exists()


def test_a_table_of_events_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    table = pa.table({"id": ["s"], "filter": ["id < 5"]})
    with pytest.raises(EventError, match=r"takes a stream of events; tidegate\.spark\.match"):
        deliver(spark.range(1), table, Collected(), checkpoint=tmp_path)


def test_bad_subscriptions_of_a_table_are_refused_before_it_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    folders = Folders(tmp_path)
    events = spark.readStream.schema(EVENT_SCHEMA).json(str(folders.root / "events"))
    for table, reason in (
        (pa.table({"id": ["s"]}), "no column 'filter'"),
        (pa.table({"id": ["s", "s"], "filter": ["a < 5"] * 2}), "already is a subscription 's'"),
    ):
        with pytest.raises(SubscriptionError, match=reason):
            deliver(events, table, Collected(), checkpoint=tmp_path / "checkpoint")
    assert not (tmp_path / "checkpoint").exists()


def test_a_change_may_be_json_in_a_column_value(spark: SparkSession, tmp_path: Path) -> None:
    folders, to = Folders(tmp_path), Collected()
    folders.add("changes", 0, [subscribe(0, "s", "a < 5")])
    folders.add("events", 0, [event(0, 1, 4), event(1, 1, 7)])
    query = deliver(
        spark.readStream.schema(EVENT_SCHEMA).json(str(tmp_path / "events")),
        spark.readStream.text(str(tmp_path / "changes")),
        to, event_time="time", checkpoint=tmp_path / "checkpoint", key="number", name="by_value",
        trigger={"availableNow": True},
    )  # fmt: skip
    query.awaitTermination()
    assert query.name == "by_value"
    assert [(row["number"], row["subscription"]) for row in to.rows] == [(0, "s")]
