"""Events of a file in Spark: each attribute has a column for each kind of its values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tidegate.cli.files.events import EventChunk
from tidegate.cli.files.spark_events import INDEX, TIME, SparkEvents
from tidegate.language.events import Event

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
Row = dict[str, object]


def chunk(first: int, *events: Row, event_time: str | None = None) -> EventChunk:
    indexes = np.arange(first, first + len(events), dtype=np.int64)
    made = []
    for each in events:
        time = each.get(event_time) if event_time is not None else None
        made.append(Event.of(each, time if isinstance(time, datetime) else None))
    return EventChunk(indexes, made, event_time)


def rows_in(events: SparkEvents, rows: list[Row]) -> list[Row]:
    """Rows of columns as rows of attributes, without those that are absent."""
    names = {INDEX: INDEX, TIME: TIME, **events.attributes}
    return [
        {names[name]: value for name, value in row.items() if value is not None} for row in rows
    ]


def files(folder: Path) -> list[pa.Table]:
    return [pq.read_table(each) for each in sorted(folder.iterdir())]


def test_each_kind_has_a_column(tmp_path: Path) -> None:
    events = SparkEvents(tmp_path, None)
    given: list[Row] = [{"a": 1}, {"a": "x"}, {"a": True}, {"a": 2.5}, {"a": NOON}, {"A": 1}, {}]
    events.write(chunk(0, *given))
    [table] = files(tmp_path)
    assert table.num_columns == 7
    assert list(events.attributes.values()).count("a") == 5
    found = rows_in(events, table.to_pylist())
    assert found == [{INDEX: index, **each} for index, each in enumerate(given)]
    kinds = [type(row.get("a")) for row in found]
    assert kinds == [int, str, bool, float, datetime, type(None), type(None)]


def test_an_attribute_keeps_its_column_from_file_to_file(tmp_path: Path) -> None:
    events = SparkEvents(tmp_path, None)
    events.write(chunk(0, {"a": 1, "b": "x"}))
    first = events.attributes
    events.write(chunk(1, {"b": "y", "c": 1}))
    assert list(events.attributes.items())[:2] == list(first.items())
    found = [row for table in files(tmp_path) for row in rows_in(events, table.to_pylist())]
    assert found == [{INDEX: 0, "a": 1, "b": "x"}, {INDEX: 1, "b": "y", "c": 1}]


def test_attributes_may_be_called_as_our_columns_are(tmp_path: Path) -> None:
    events = SparkEvents(tmp_path, "time")
    events.write(chunk(5, {"time": NOON, "event": "e", "a0": 1}, event_time="time"))
    [table] = files(tmp_path)
    assert (events.event_time, set(events.attributes.values())) == (TIME, {"time", "event", "a0"})
    [row] = table.to_pylist()
    by_attribute = {attribute: row[name] for name, attribute in events.attributes.items()}
    assert by_attribute == {"time": NOON, "event": "e", "a0": 1}
    assert (row[INDEX], row[TIME]) == (5, NOON)


def test_tables_come_with_nulls_and_dictionaries(tmp_path: Path) -> None:
    columns: dict[str, Any] = {
        "s": pa.array(["a", None, "a"]).dictionary_encode(),
        "n": pa.nulls(3),
        "in": pa.array([{"x": 1}, None, {"x": None}]),
        "at": pa.array([NOON + timedelta(seconds=n) for n in range(3)], pa.timestamp("ms", "UTC")),
    }
    events = SparkEvents(tmp_path, "at")
    events.write(EventChunk(np.array([0, 2, 4]), pa.table(columns), "at"))
    [table] = files(tmp_path)
    found = rows_in(events, table.to_pylist())
    assert [row.get("s") for row in found] == ["a", None, "a"]
    assert [row.get("in.x") for row in found] == [1, None, None]
    assert [row[INDEX] for row in found] == [0, 2, 4]
    assert [row[TIME] for row in found] == columns["at"].to_pylist()
    assert "n" not in events.attributes.values()


@pytest.mark.xdist_group("spark")
def test_spark_has_all_columns_of_all_files(spark: SparkSession, tmp_path: Path) -> None:
    events = SparkEvents(tmp_path, None)
    events.write(chunk(0, {"a": 1, "A": "x"}))
    events.write(chunk(1, {"a": "one"}))
    frame = events.frame(spark)
    assert set(frame.columns) == {INDEX, *events.attributes}
    found = sorted(rows_in(events, frame.toArrow().to_pylist()), key=lambda row: str(row[INDEX]))
    assert found == [{INDEX: 0, "a": 1, "A": "x"}, {INDEX: 1, "a": "one"}]


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("event_time", "columns"), [(None, "event bigint"), ("at", "event bigint,time timestamp")]
)
def test_no_events(
    spark: SparkSession, tmp_path: Path, event_time: str | None, columns: str
) -> None:
    events = SparkEvents(tmp_path, event_time)
    frame = events.frame(spark)
    assert ",".join(f"{name} {kind}" for name, kind in frame.dtypes) == columns
    assert frame.isEmpty()
    assert events.attributes == {}
