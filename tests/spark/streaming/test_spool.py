"""The spool: rows are classified, written in chunks, and read again by kind."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from tidegate.errors import StateError
from tidegate.language.values import to_us
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming.spool import RowClassifier, RowKind, Spool, chunk_locations

START = datetime(2026, 1, 1, tzinfo=UTC)
BORDER_US = to_us(START + timedelta(seconds=2))
CLASSIFIER = RowClassifier("time", BORDER_US)
EVENT = pa.struct([("time", pa.timestamp("us", "UTC")), ("x", pa.int64())])
SCHEMA = "event struct<time timestamp, x long>, bad struct<reason string>, change struct<id string>"


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def batch(events: list[object], bad: list[object], change: list[object]) -> pa.RecordBatch:
    arrays = [
        pa.array(events, EVENT),
        pa.array(bad, pa.struct([("reason", pa.string())])),
        pa.array(change, pa.struct([("id", pa.string())])),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=["event", "bad", "change"])


ROWS = batch(
    [{"time": at(2), "x": 1}, {"time": START, "x": 2}, {"time": None, "x": 3}, None, None],
    [None, None, None, {"reason": "torn"}, None],
    [None, None, None, None, {"id": "a"}],
)


def test_each_row_is_of_one_kind() -> None:
    assert CLASSIFIER.kinds(ROWS).tolist() == [
        RowKind.EVENT, RowKind.LATE, RowKind.TIMELESS, RowKind.BAD, RowKind.CHANGE,
    ]  # fmt: skip
    assert RowClassifier("time", None).kinds(ROWS).tolist()[:2] == [RowKind.EVENT, RowKind.EVENT]
    assert CLASSIFIER.latest_us(ROWS) == BORDER_US
    assert CLASSIFIER.latest_us(ROWS.slice(2)) is None
    assert CLASSIFIER.filtered(ROWS, RowKind.BAD).num_rows == 1


def test_without_a_time_all_events_are_good() -> None:
    classifier = RowClassifier(None, None)
    assert classifier.kinds(ROWS).tolist() == [*[RowKind.EVENT] * 3, RowKind.BAD, RowKind.CHANGE]
    assert classifier.latest_us(ROWS) is None


def test_the_border_itself_is_not_late() -> None:
    assert RowClassifier("time", BORDER_US).kinds(ROWS)[0] == RowKind.EVENT
    assert RowClassifier("time", BORDER_US + 1).kinds(ROWS)[0] == RowKind.LATE


def test_times_of_other_units_and_without_zone_are_utc() -> None:
    kind = pa.struct([("time", pa.timestamp("s"))])
    rows = ROWS.set_column(0, "event", pa.array([{"time": at(2).replace(tzinfo=None)}] * 5, kind))
    assert CLASSIFIER.latest_us(rows) == BORDER_US


def spark_rows(spark: SparkSession) -> DataFrame:
    good = [(Row(time=at(second), x=second), None, None) for second in range(6)]
    other = [(None, Row(reason="torn"), None), (None, None, Row(id="a")), (None, None, Row(id="b"))]
    return spark.createDataFrame([*good, *other], SCHEMA).repartition(2)


@pytest.mark.xdist_group("spark")
def test_what_is_written_is_read(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark_rows(spark)
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "left over").touch()
    root = LocalFolder(tmp_path)
    written = Spool.write(rows, root, 0, CLASSIFIER)
    assert not (tmp_path / "0" / "left over").exists()
    spool = Spool.read(root, [0])
    assert spool == written
    assert [spool.count(kind) for kind in RowKind] == [4, 2, 0, 1, 2]
    assert spool.latest_us() == to_us(at(5))
    changes = spool.changes()
    assert changes is not None
    assert sorted(map(str, changes.column("id").to_pylist())) == ["a", "b"]
    late = spool.rows(RowKind.LATE, CLASSIFIER, rows).select("event.x").collect()
    assert sorted(row.x for row in late) == [0, 1]
    assert spool.events_since(to_us(at(6))) == []
    assert len(spool.events_since(None)) == sum(
        chunk.counts[RowKind.EVENT] > 0 for chunk in spool.chunks
    )
    assert chunk_locations(spark, []).count() == 0


@pytest.mark.xdist_group("spark")
def test_a_batch_without_rows(spark: SparkSession, tmp_path: Path) -> None:
    spool = Spool.write(spark_rows(spark).where("false"), LocalFolder(tmp_path), 0, CLASSIFIER)
    assert spool.chunks == []
    assert spool.changes() is None
    assert spool.latest_us() is None


def test_an_incomplete_spool_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"chunks\.json"):
        Spool.read(LocalFolder(tmp_path), [0])
