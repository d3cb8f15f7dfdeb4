"""The Delta sink commits each batch once, with its files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from tidegate.errors import ConnectorError
from tidegate.spark.sinks.delta import DeltaSink
from tidegate.spark.sinks.sink import PendingDeliveries, Sink, WorkerSink

pytestmark = pytest.mark.xdist_group("connectors")


def deliveries(spark: SparkSession, *ids: int) -> DataFrame:
    rows = spark.createDataFrame([(each,) for each in ids], "id bigint")
    return rows.selectExpr(
        "id",
        "concat('s', id) as subscription",
        "timestamp '2026-01-02T03:04:05.000006Z' as version",
        "struct(id * 0.5D as price) as quote",
    )


def rows_in(path: Path) -> list[dict[str, Any]]:
    return sorted(DeltaTable(path).to_pyarrow_table().to_pylist(), key=str)


def ids_in(path: Path) -> list[int]:
    return [row["id"] for row in rows_in(path)]


def test_a_table_has_a_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for batch, ids in enumerate([(1, 2), (3,)]):
        for _ in range(2):
            sink: Sink = DeltaSink(str(path))
            sink.write(deliveries(spark, *ids), batch)
    DeltaSink(str(path)).write(deliveries(spark, 1, 2), 0)
    assert ids_in(path) == [1, 2, 3]
    first = rows_in(path)[0]
    assert str(first.pop("version")) == "2026-01-02 03:04:05.000006+00:00"
    assert first == {"id": 1, "subscription": "s1", "quote": {"price": 0.5}}
    assert spark.conf.get("spark.sql.parquet.outputTimestampType") != "TIMESTAMP_MICROS"


def test_workers_write_a_batch_once(spark: SparkSession, tmp_path: Path) -> None:
    def same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches

    path = tmp_path / "table"
    sink = DeltaSink(str(path), application="app")
    assert isinstance(sink, WorkerSink)
    rows = deliveries(spark, 1, 2, 3).repartition(2)
    (path / "app" / "0").mkdir(parents=True)  # what a try left that was killed
    deliveries(spark, 9).write.mode("overwrite").parquet(str(path / "app" / "0"))
    for wanted in (3, 0):  # what is there already is not written again
        assert sink.write_in_workers([PendingDeliveries(rows, same, rows.schema)], 0) == wanted
    none = rows.where("id > 5")
    assert sink.write_in_workers([PendingDeliveries(none, same, rows.schema)], 1) == 0
    assert ids_in(path) == [1, 2, 3]
    assert str(rows_in(path)[0]["version"]) == "2026-01-02 03:04:05.000006+00:00"
    assert DeltaTable(path).transaction_version("app") == 0


def test_what_a_killed_try_left_is_not_in_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = DeltaSink(str(path), application="app")
    sink.write(deliveries(spark, 1), 0)
    deliveries(spark, 98, 99).write.parquet(str(path / "app" / "1"))
    assert ids_in(path) == [1]
    sink.write(deliveries(spark, 2), 1)
    assert ids_in(path) == [1, 2]
    assert len(list((path / "app" / "1").glob("*.parquet"))) == 1  # none of the two before


def test_an_empty_batch_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = DeltaSink(str(path), application="app")
    sink.write(deliveries(spark, 1), 0)
    sink.write(deliveries(spark, 1).where("id > 5"), 1)
    assert not (path / "app" / "1").exists()
    assert DeltaTable(path).transaction_version("app") == 0


def test_applications_count_for_themselves(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    DeltaSink(str(path), application="one").write(deliveries(spark, 1), 0)
    DeltaSink(str(path), application="two").write(deliveries(spark, 2), 0)
    assert ids_in(path) == [1, 2]


def test_deliveries_unlike_the_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    sink = DeltaSink(str(tmp_path / "table"))
    sink.write(deliveries(spark, 1), 0)
    with pytest.raises(ConnectorError, match=r"column 'operation' is .*string.* and absent in the"):
        sink.write(deliveries(spark, 2).selectExpr("*", "'assert' as operation"), 1)
    with pytest.raises(ConnectorError, match="column 'subscription' is absent in the deliveries"):
        sink.write(deliveries(spark, 2).drop("subscription"), 1)


def test_where_it_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectorError, match="local or mounted folder, which 's3://bucket/table'"):
        DeltaSink("s3://bucket/table")
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(ConnectorError, match="needs the package 'deltalake'"):
        DeltaSink("table")


def test_small_files_are_merged(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    sink = DeltaSink(str(path), compact_every=3, keep=timedelta(0))
    for batch in range(6):
        for _ in range(2):
            sink.write(deliveries(spark, batch).coalesce(1), batch)
    assert ids_in(path) == list(range(6))
    files = list(path.rglob("*.parquet"))
    assert len(files) == 4  # those of the first three batches are one now
    assert sorted(DeltaTable(path).file_uris()) == sorted(map(str, files))
    with pytest.raises(ConnectorError, match="compact_every is 0"):
        DeltaSink(str(path), compact_every=0)
    with pytest.raises(ConnectorError, match="must not be negative"):
        DeltaSink(str(path), keep=timedelta(-1))
