"""Index files are written once and opened by workers, which keep a few of them open."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark import SparkFiles
from pyspark.sql import SparkSession

from tidegate import SnapshotError
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.records import SubscriptionRecord
from tidegate.spark.index_files import OPEN_INDEXES_MAX, IndexFile, ship_index


def saved(folder: Path, name: str, filter: str = "a < 2") -> IndexFile:
    path = folder / name
    AsOfMatcher([SubscriptionRecord(name, filter)]).save(path)
    return IndexFile(str(path), str(path))


def matched(matcher: AsOfMatcher, values: list[int]) -> list[int]:
    found: list[int] = matcher.match(EventBatch.of(pa.table({"a": values}))).events.tolist()
    return found


def test_an_index_stays_open(tmp_path: Path) -> None:
    file = saved(tmp_path, "s")
    opened = file.open()
    assert matched(opened, [1, 2]) == [0]
    Path(str(file.path)).unlink()
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
        IndexFile(path, path).open()


@pytest.mark.xdist_group("spark")
def test_each_index_has_a_file_of_its_own(spark: SparkSession) -> None:
    few, none = AsOfMatcher([SubscriptionRecord("s", "a < 2")]), AsOfMatcher()
    files = [ship_index(spark, few), ship_index(spark, none)]
    assert files[0].name != files[1].name
    assert all(each.path is not None and Path(each.path).is_file() for each in files)
    assert [matched(each.open(), [1, 2]) for each in files] == [[0], []]
    files[0].discard()
    files[0].discard()  # there may be nothing to remove
    assert [Path(str(each.path)).exists() for each in files] == [False, True]
    assert matched(files[0].open(), [1, 2]) == [0]  # who has it open keeps it


@pytest.mark.xdist_group("spark")
@pytest.mark.usefixtures("spark")
def test_without_a_path_it_is_among_the_files_that_spark_copied() -> None:
    copied = Path(SparkFiles.getRootDirectory()) / "copied.arrow"
    AsOfMatcher([SubscriptionRecord("s", "a < 2")]).save(copied)
    assert matched(IndexFile(copied.name, None).open(), [1, 2]) == [0]
