"""Parquet files: the good ones are read, and each bad one has a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import types as t

from tidegate import ConnectorError
from tidegate.spark.sources.event_schemas import BAD, RECORD, SOURCE
from tidegate.spark.sources.parquet_files import ParquetReader

SCHEMA = (
    t.StructType()
    .add("symbol", "string")
    .add("price", "double")
    .add("volume", "long")
    .add("time", "timestamp")
    .add("quote", t.StructType().add("bid", "double").add("venue", "string"))
)


def read(*paths: str) -> list[dict[str, object]]:
    """The rows that the reader makes of files, without absent attributes."""
    batch = pa.RecordBatch.from_arrays([pa.array(paths)], names=["path"])
    rows: list[dict[str, object]] = []
    for result in ParquetReader(SCHEMA, {})(iter([batch])):
        assert result.schema.names == [*SCHEMA.names, BAD, RECORD, SOURCE]
        rows += result.to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def written(path: Path, **columns: Any) -> str:
    pq.write_table(pa.table(columns), path)
    return f"file:{path}"


def test_good_files(tmp_path: Path) -> None:
    first = written(
        tmp_path / "a b.parquet", symbol=["IBM", None], price=[9.5, 2.0], other=[[1]] * 2
    )
    second = written(tmp_path / "c.parquet", volume=[7], quote=[{"bid": 1.5, "other": 1}])
    assert read(first, second) == [
        {"symbol": "IBM", "price": 9.5},
        {"price": 2.0},
        {"volume": 7, "quote": {"bid": 1.5, "venue": None}},
    ]


def test_types_that_hold_no_more_than_the_schema_asks_for(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.parquet",
        symbol=pa.array(["IBM"]).dictionary_encode(),
        price=pa.array([2], pa.int32()),
        volume=pa.array([3], pa.int16()),
        time=pa.array([1_000], pa.timestamp("ms", "UTC")),
    )
    (row,) = read(path)
    assert str(row.pop("time")) == "1970-01-01 00:00:01+00:00"
    assert row == {"symbol": "IBM", "price": 2.0, "volume": 3}


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"price": ["9.5"]}, "column 'price' is string, the schema says double"),
        ({"price": [9]}, "column 'price' is int64, the schema says double"),
        ({"volume": [1.5]}, "column 'volume' is double, the schema says bigint"),
        ({"symbol": [5]}, "column 'symbol' is int64, the schema says string"),
        ({"symbol": [["IBM"]]}, "column 'symbol' is a list, and a list is not a value"),
        ({"time": ["2026"]}, "column 'time' is string, the schema says timestamp"),
        ({"quote": [{"bid": "x"}]}, "column 'quote.bid' is string, the schema says double"),
        ({"quote": [1]}, "column 'quote' is int64, the schema says struct<bid:double,venue:strin"),
    ],
)
def test_a_file_that_drifted_is_one_bad_record(
    tmp_path: Path, columns: dict[str, Any], reason: str
) -> None:
    good = written(tmp_path / "good.parquet", price=[1.0])
    bad = written(tmp_path / "bad.parquet", **columns)
    first, second = read(bad, good)
    assert str(first.pop(BAD)).startswith(reason)
    assert (first, second) == ({SOURCE: bad}, {"price": 1.0})


def test_a_file_that_is_no_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_text("symbol,price")
    damaged = Path(written(tmp_path / "b.parquet", price=[1.0] * 99).removeprefix("file:"))
    damaged.write_bytes(damaged.read_bytes()[:4] + b"x" * 40 + damaged.read_bytes()[44:])
    for path in (tmp_path / "a.parquet", damaged):
        [row] = read(f"file:{path}")
        assert str(row[BAD]).startswith("cannot be read: ")
        assert row[SOURCE] == f"file:{path}"


def test_a_storage_that_does_not_answer_is_no_bad_file(tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match=f"^{tmp_path}: .*No such file"):
        read(f"file:{tmp_path}/absent.parquet")
    nowhere = {
        "fs.s3a.endpoint": "http://127.0.0.1:1",
        "fs.s3a.access.key": "k",
        "fs.s3a.secret.key": "s",
    }
    batch = pa.RecordBatch.from_arrays([pa.array(["s3a://b/c/a.parquet"])], names=["path"])
    with pytest.raises(ConnectorError, match=r"^s3a://b/c: "):
        list(ParquetReader(SCHEMA, nowhere)(iter([batch])))
