"""Index files are written once and opened by workers, which keep a few of them open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import SnapshotError, StateError
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark import index_files
from tidegate.spark.index_files import (
    OPEN_INDEXES_MAX,
    BroadcastFile,
    DriverFile,
    IndexFile,
    ship_index,
    stored_index,
)
from tidegate.spark.storage.local_folder import LocalFolder


def saved(folder: Path, name: str, filter: str = "a < 2") -> IndexFile:
    path = folder / name
    AsOfMatcher([SubscriptionRecord(name, filter)]).save(path)
    return IndexFile(str(path), DriverFile(str(path)))


def driver_path(file: IndexFile) -> Path:
    assert isinstance(file.source, DriverFile)
    return Path(file.source.path)


def matched(matcher: AsOfMatcher, values: list[int]) -> list[int]:
    found: list[int] = matcher.match(EventBatch.of(pa.table({"a": values}))).events.tolist()
    return found


def test_an_index_stays_open(tmp_path: Path) -> None:
    file = saved(tmp_path, "s")
    opened = file.open()
    assert matched(opened, [1, 2]) == [0]
    driver_path(file).unlink()
    assert file.open() is opened
    assert matched(file.open(), [3, 0]) == [1]


def test_the_one_that_was_not_used_for_longest_is_closed(tmp_path: Path) -> None:
    files = [saved(tmp_path, f"s{number}") for number in range(OPEN_INDEXES_MAX + 1)]
    opened = [each.open() for each in files[:OPEN_INDEXES_MAX]]
    assert files[0].open() is opened[0]  # used again, so the next one has to go
    files[OPEN_INDEXES_MAX].open()
    assert files[0].open() is opened[0]
    assert files[1].open() is not opened[1]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = str(tmp_path / "none.arrow")
    with pytest.raises(SnapshotError, match=r"none\.arrow"):
        IndexFile(path, DriverFile(path)).open()


@pytest.mark.xdist_group("spark")
def test_each_index_has_a_file_of_its_own(spark: SparkSession) -> None:
    few, none = AsOfMatcher([SubscriptionRecord("s", "a < 2")]), AsOfMatcher()
    files = [ship_index(spark, few), ship_index(spark, none)]
    assert files[0].name != files[1].name
    assert all(driver_path(each).is_file() for each in files)
    assert [matched(each.open(), [1, 2]) for each in files] == [[0], []]
    files[0].discard()
    files[0].discard()  # there may be nothing to remove
    assert [driver_path(each).exists() for each in files] == [False, True]
    assert matched(files[0].open(), [1, 2]) == [0]  # who has it open keeps it


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder for copies, with a driver that takes its workers for those of a cluster."""
    monkeypatch.setattr(index_files, "runs_here", lambda _: False)
    monkeypatch.setattr(index_files, "PART_BYTES", 1_000)
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path))
    return tmp_path / "tidegate"


@pytest.mark.xdist_group("spark")
def test_on_a_cluster_a_file_is_broadcast_in_parts(spark: SparkSession, elsewhere: Path) -> None:
    file = ship_index(spark, AsOfMatcher([SubscriptionRecord("s", "a < 2")]))
    assert isinstance(file.source, BroadcastFile)
    assert len(file.source.parts) > 1
    assert matched(file.open(), [1, 2]) == [0]
    assert [each.name for each in elsewhere.glob("*.arrow")] == [file.name]
    file.discard()
    with pytest.raises(Exception, match="destroy"):
        file.source.parts[0].unpersist()


@pytest.mark.xdist_group("spark")
def test_tasks_find_what_was_broadcast_and_share_one_copy(
    spark: SparkSession, elsewhere: Path
) -> None:
    file = ship_index(spark, AsOfMatcher([SubscriptionRecord("s", "x < 2")]))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ["SPARK_EXECUTOR_DIRS"] = str(elsewhere.parent)
        for batch in batches:
            numbers = file.open().match(EventBatch.of(batch)).events
            yield pa.record_batch({"x": batch.column("x").take(numbers)})

    found = spark.range(0, 40, 1, 4).selectExpr("id % 10 as x").mapInArrow(task, "x long")
    assert sorted(row.x for row in found.collect()) == [0] * 4 + [1] * 4
    assert [each.name for each in elsewhere.glob("*.arrow")] == [file.name]


@pytest.mark.parametrize("copied", [False, True])
def test_a_stream_keeps_its_indexes_in_its_own_folder(
    tmp_path: Path, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path / "machine"))
    place = LocalFolder(tmp_path / "place")
    matcher = AsOfMatcher([SubscriptionRecord("s", "a < 2")])
    file = stored_index(place, matcher, copied=copied)
    assert place.names() == [file.name]
    assert matched(file.open(), [1, 2]) == [0]
    assert (tmp_path / "machine").exists() is copied
    file.discard()
    assert place.names() == []
    assert matched(file.open(), [3, 0]) == [1]  # who has it open keeps it


def test_an_index_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path / "machine"))
    file = stored_index(LocalFolder(tmp_path / "place"), AsOfMatcher(), copied=True)
    file.discard()
    with pytest.raises(StateError, match=rf"place/{file.name}: No such file"):
        file.open()
