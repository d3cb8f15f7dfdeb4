"""The Parquet sink has each batch once, in a folder that belongs to one query."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from support.s3_server import BUCKET, S3Server
from tidegate.errors import ConnectorError
from tidegate.spark.sinks.parquet import ParquetSink
from tidegate.spark.sinks.parquet_writing import computed, write_batch
from tidegate.spark.sinks.sink import Sink
from tidegate.spark.storage.locations import folder_at

pytestmark = pytest.mark.xdist_group("connectors")


def deliveries(spark: SparkSession, *ids: int) -> DataFrame:
    rows = spark.createDataFrame([(each,) for each in ids], "id bigint")
    return rows.selectExpr("id", "concat('s', id % 2) as subscription", "'ann' as subscriber")


def ids_in(spark: SparkSession, path: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(path)).collect()
    return sorted((row.batch, row.id) for row in rows)


def run(spark: SparkSession, sink: Sink, folder: Path, checkpoint: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl").write_text('{"id": 1}\n')
    rows = spark.readStream.schema("id bigint").json(str(folder))
    writer = rows.writeStream.foreachBatch(sink.write).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()


def test_a_batch_that_is_written_twice_is_there_once(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink: Sink = ParquetSink(str(path))
    sink.write(deliveries(spark, 1, 2), 0)
    sink.write(deliveries(spark, 3, 4, 5), 1)
    sink.write(deliveries(spark, 3, 4, 5), 1)
    assert ids_in(spark, path) == [(0, 1), (0, 2), (1, 3), (1, 4), (1, 5)]


def test_files_of_a_killed_attempt_are_removed(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = ParquetSink(str(path))
    sink.write(deliveries(spark, 1), 0)
    for batch in (1, 2):  # as if an attempt was killed while Spark moved its files into place
        deliveries(spark, 98, 99).write.parquet(str(path / f"batch={batch}"))
        (path / f"batch={batch}" / "_SUCCESS").unlink()
        (path / f"batch={batch}" / "_temporary").mkdir()
    sink.write(deliveries(spark, 2), 1)
    sink.write(deliveries(spark).where("id > 5"), 2)
    assert ids_in(spark, path) == [(0, 1), (1, 2)]
    assert not (path / "batch=2").exists()


def test_a_folder_belongs_to_one_query(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "out"
    run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "first")
    run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "first")  # restarted
    with pytest.raises(StreamingQueryException, match="has the batches of another query"):
        run(spark, ParquetSink(str(path)), tmp_path / "in", tmp_path / "second")
    assert ids_in(spark, path) == [(0, 1)]


def test_a_column_named_batch_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConnectorError, match="have a column 'batch'"):
        ParquetSink(str(tmp_path)).write(spark.range(1).withColumnRenamed("id", "batch"), 0)


def test_without_renames_strangers_are_removed_from_the_final_folder(
    spark: SparkSession, s3: S3Server, tmp_path: Path
) -> None:
    root = folder_at(f"s3://{BUCKET}/{tmp_path.name}", s3.credentials)
    root.write("batch=3/part-left-over.parquet", b"half a file")
    for _ in range(2):
        assert write_batch([computed(spark.range(0, 2, 1, 1))], root, "batch=3") == 2
        [name] = root.folder("batch=3").names()
        with root.open_input(f"batch=3/{name}") as source:
            assert pq.read_table(source).column("id").to_pylist() == [0, 1]
    assert write_batch([computed(spark.range(0))], root, "batch=3") == 0
    assert root.names() == []


def test_only_the_last_batches_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    sink = ParquetSink(tmp_path / "out", keep_batches=2)
    (tmp_path / "out" / "batch=notes").mkdir(parents=True)
    for batch in (0, 1, 5, 5):
        sink.write(deliveries(spark, batch), batch)
    assert sorted(path.name for path in (tmp_path / "out").glob("batch*")) == [
        "batch=5", "batch=notes",
    ]  # fmt: skip
    sink.write(deliveries(spark, 6), 6)
    (tmp_path / "out" / "batch=notes").rmdir()
    assert ids_in(spark, tmp_path / "out") == [(5, 5), (6, 6)]
    with pytest.raises(ConnectorError, match="keep_batches is 0; keep at least 1"):
        ParquetSink(tmp_path, keep_batches=0)
