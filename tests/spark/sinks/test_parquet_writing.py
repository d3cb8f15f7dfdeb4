"""Parquet files written by workers: a batch is replaced as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from tidegate import ConnectorError
from tidegate.spark.sinks.parquet_writing import (
    STAGING,
    WriteParquetTask,
    write_batch,
)
from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.storage.local_folder import LocalFolder

Batches = Iterator[pa.RecordBatch]
SCHEMA = t.StructType([t.StructField("id", t.LongType())])


def same(batches: Batches) -> Batches:
    return batches


def nothing(batches: Batches) -> Batches:
    for _ in batches:
        yield from ()


def numbers(*values: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(values, pa.int64())})


def written(folder: Path) -> list[int]:
    return sorted(int(str(each)) for each in pq.read_table(folder).column("id").to_pylist())


# -- in a worker ------------------------------------------------------------------------------


def test_a_partition_is_one_file(tmp_path: Path) -> None:
    task = WriteParquetTask(same, LocalFolder(tmp_path / "deep" / "out"))
    [told] = [
        row
        for rows in task(iter([numbers(1, 2), numbers(), numbers(3)]))
        for row in rows.to_pylist()
    ]
    [file] = (tmp_path / "deep" / "out").iterdir()
    assert told == {"name": file.name, "matches": 3}
    assert pq.read_table(file).column("id").to_pylist() == [1, 2, 3]


def test_of_grouped_deliveries_each_counts(tmp_path: Path) -> None:
    lists = pa.array([["a", "b"], [], ["c"]])
    rows = pa.record_batch({"deliveries": lists})
    for batch, wanted in ((rows, 3), (rows.slice(1), 1), (rows.slice(0, 1), 2)):
        [told] = WriteParquetTask(same, LocalFolder(tmp_path))(iter([batch]))
        assert told.column("matches").to_pylist() == [wanted]


def coded(*texts: str | None) -> pa.RecordBatch:
    column: Any = pa.array(texts, pa.string()).dictionary_encode()
    return pa.record_batch({"s": column})


@pytest.mark.parametrize("group", [1, 3, 1_000])
def test_codes_are_read_as_texts_whatever_their_dictionaries(
    tmp_path: Path, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.spark.sinks.parquet_writing.ROW_GROUP_MATCHES", group)
    batches = [coded("a", "b"), coded("c", None, "a"), coded(None), coded("b", "a")]
    list(WriteParquetTask(same, LocalFolder(tmp_path))(iter(batches)))
    [file] = tmp_path.iterdir()
    column = pq.read_table(file).column("s")
    assert column.type == pa.string()
    assert column.to_pylist() == ["a", "b", "c", None, "a", None, "b", "a"]
    groups = pq.ParquetFile(file).metadata.num_row_groups
    assert groups == {1: 4, 3: 2, 1_000: 1}[group]


@pytest.mark.parametrize("batches", [[], [numbers(1)]])
def test_without_deliveries_there_is_no_file(tmp_path: Path, batches: list[pa.RecordBatch]) -> None:
    assert list(WriteParquetTask(nothing, LocalFolder(tmp_path / "out"))(iter(batches))) == []
    assert not (tmp_path / "out").exists()


def test_a_task_that_fails_tells_of_no_file(tmp_path: Path) -> None:
    def failing(batches: Batches) -> Batches:
        yield next(batches)
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(WriteParquetTask(failing, LocalFolder(tmp_path))(iter([numbers(1)])))


# -- a batch ----------------------------------------------------------------------------------


@pytest.mark.xdist_group("spark")
def test_a_batch_takes_the_place_of_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    target = tmp_path / "batch=0"
    found = [
        PendingDeliveries(spark.range(0, 5, 1, 2), same, SCHEMA),
        PendingDeliveries(spark.range(7, 9, 1, 1), same, SCHEMA),
    ]
    assert write_batch(found, LocalFolder(tmp_path), target.name) == 7
    assert written(target) == [0, 1, 2, 3, 4, 7, 8]
    assert write_batch(found[1:], LocalFolder(tmp_path), target.name) == 2
    assert written(target) == [7, 8]
    assert sorted(row.id for row in found[1].deliveries().collect()) == [7, 8]
    assert (
        write_batch(
            [PendingDeliveries(spark.range(3), nothing, SCHEMA)], LocalFolder(tmp_path), target.name
        )
        == 0
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.xdist_group("spark")
def test_what_a_try_left_does_not_come_in(spark: SparkSession, tmp_path: Path) -> None:
    """The file of a task that was retried, and the folder of a batch that was killed."""

    def twice(batches: Batches) -> Batches:
        folder = next(each for each in (tmp_path / STAGING).iterdir() if each.name != "old")
        pq.write_table(pa.table({"id": [99]}), folder / "part-lost.parquet")
        yield from batches

    def late(batches: Batches) -> Batches:
        yield next(batches)
        yield from twice(batches)

    (tmp_path / STAGING / "old").mkdir(parents=True)
    target = tmp_path / "batch=1"
    assert (
        write_batch(
            [PendingDeliveries(spark.range(0, 3, 1, 1), late, SCHEMA)],
            LocalFolder(tmp_path),
            target.name,
        )
        == 3
    )
    assert written(target) == [0, 1, 2]
    assert [each.name for each in tmp_path.iterdir()] == ["batch=1"]


@pytest.mark.xdist_group("spark")
def test_a_file_that_the_driver_does_not_see_is_an_error(
    spark: SparkSession, tmp_path: Path
) -> None:
    """As if the folder was one of the worker's machine."""

    def hiding(batches: Batches) -> Batches:
        yield from batches
        for each in tmp_path.rglob("part-*"):
            each.unlink()

    found = PendingDeliveries(spark.range(0, 3, 1, 1), same, SCHEMA)
    hidden = PendingDeliveries(spark.range(0, 3, 1, 1), hiding, SCHEMA)
    with pytest.raises(ConnectorError, match=r"does not see [12]; it must be a folder that all"):
        write_batch([found, hidden], LocalFolder(tmp_path), "batch=0")


@pytest.mark.xdist_group("spark")
def test_a_batch_that_fails_leaves_what_was_there(spark: SparkSession, tmp_path: Path) -> None:
    def failing(batches: Batches) -> Batches:
        yield next(batches)
        raise ValueError("no more")

    target = tmp_path / "batch=0"
    write_batch(
        [PendingDeliveries(spark.range(0, 2, 1, 1), same, SCHEMA)],
        LocalFolder(tmp_path),
        target.name,
    )
    with pytest.raises(PySparkException, match="no more"):
        write_batch(
            [PendingDeliveries(spark.range(5), failing, SCHEMA)], LocalFolder(tmp_path), target.name
        )
    assert written(target) == [0, 1]
