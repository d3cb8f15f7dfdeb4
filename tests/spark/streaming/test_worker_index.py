"""Workers continue from the index they hold by deltas, and start from a snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tidegate import StateError
from tidegate.language.values import to_us
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.as_of import AsOfMatcher
from tidegate.matching.history.changes import Change, Op
from tidegate.matching.history.timelines import Timelines
from tidegate.matching.history.versions import VersionDelta
from tidegate.spark.storage.local_folder import LocalFolder
from tidegate.spark.streaming import worker_index
from tidegate.spark.streaming.worker_index import NO_SNAPSHOT, WorkerIndex, read_delta, write_delta

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def found(matcher: AsOfMatcher, second: float) -> list[tuple[str, int]]:
    """What `a = 1` matches at a time, with the second from which each version holds."""
    batch = EventBatch.of(pa.table({"a": [1.0]})).judged_at(np.array([to_us(at(second))]))
    matches = matcher.match(batch)
    ids = matches.columns.subscription.take(matches.numbers).to_pylist()
    since = matches.columns.since.take(matches.numbers).to_pylist()
    return sorted((str(id), (time - START).seconds) for id, time in zip(ids, since, strict=True))


CHANGES = [
    [Change(at(0), Op.SUBSCRIBE, id, "a < :p", {"p": 5}) for id in ("s", "u")],
    [Change(at(2), Op.UPDATE, "s", None, {"p": 0}), Change(at(4), Op.UPDATE, "s", None, {"p": 3}),
     Change(at(3), Op.UNSUBSCRIBE, "u")],
    [Change(at(1), Op.UPDATE, "s", None, {"p": 1}), Change(at(5), Op.SUBSCRIBE, "v", "a > 0")],
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The deltas of three batches."""
    timelines = Timelines()
    for batch, changes in enumerate(CHANGES):
        write_delta(LocalFolder(tmp_path), batch, VersionDelta.of(timelines.take(changes)))
    return tmp_path


def index(
    folder: Path, batch: int, snapshot: int = NO_SNAPSHOT, *, worker: str = ""
) -> WorkerIndex:
    """An index; by another token this process holds nothing, like another worker."""
    return WorkerIndex(LocalFolder(folder), f"{folder.name}{worker}", snapshot, batch)


def test_deltas_are_applied_one_after_the_other(folder: Path) -> None:
    assert found(index(folder, 0).open(), 9) == [("s", 0), ("u", 0)]
    after = index(folder, 1).open()
    assert [found(after, second) for second in (1, 2, 3, 4)] == [
        [("s", 0), ("u", 0)], [("u", 0)], [], [("s", 4)],
    ]  # fmt: skip
    after = index(folder, 2).open()
    assert [found(after, second) for second in (0, 1, 4, 5)] == [
        [("s", 0), ("u", 0)], [("u", 0)], [("s", 4)], [("s", 4), ("v", 5)],
    ]  # fmt: skip


def test_what_is_held_is_not_read_again(folder: Path) -> None:
    held = index(folder, 1).open()
    (folder / "delta" / "0.json").unlink()
    (folder / "delta" / "1.json").unlink()
    assert index(folder, 1).open() is held
    assert index(folder, 2).open() is held


def test_a_batch_that_is_run_again_is_read_from_the_beginning(folder: Path) -> None:
    index(folder, 2).open()
    assert found(index(folder, 1).open(), 9) == [("s", 4)]


def test_a_snapshot_replaces_the_deltas_before_it(folder: Path) -> None:
    index(folder, 1).save()
    for batch in (0, 1):
        (folder / "delta" / f"{batch}.json").unlink()
    new = index(folder, 2, snapshot=1, worker="new")
    assert found(new.open(), 9) == [("s", 4), ("v", 5)]
    assert [path.name for path in (folder / "snapshot").iterdir()] == ["1.arrow"]


def test_the_process_that_wrote_a_snapshot_continues_from_it(folder: Path) -> None:
    before = index(folder, 1).open()
    index(folder, 1).save()
    after = index(folder, 1).open()
    assert after is not before
    assert [found(after, second) for second in (1, 2, 4)] == [
        [("s", 0), ("u", 0)], [("u", 0)], [("s", 4)],
    ]  # fmt: skip


def test_versions_that_ended_are_forgotten(folder: Path) -> None:
    timelines = Timelines()
    matcher = AsOfMatcher()
    for changes in CHANGES[:2]:
        write_delta(LocalFolder(folder), 1, VersionDelta.of(timelines.take(changes)))
        matcher.apply(read_delta(LocalFolder(folder), 1))
    ended, _ = timelines.make_final(at(3))
    assert len(ended) == 2
    write_delta(LocalFolder(folder), 2, VersionDelta.of([], ended))
    matcher.apply(read_delta(LocalFolder(folder), 2))
    assert [found(matcher, second) for second in (1, 2, 4)] == [[], [], [("s", 4)]]


def test_only_some_streams_are_held(folder: Path) -> None:
    first = index(folder, 0).open()
    for number in range(worker_index.HELD_STREAMS_MAX):
        index(folder, 0, worker=str(number)).open()
    assert index(folder, 0).open() is not first


def test_a_delta_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"delta/0\.json: No such file"):
        index(tmp_path, 0).open()


def test_on_a_cluster_each_machine_has_a_copy_of_the_snapshot(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path / "machine"))
    there = replace(index(folder, 1), copied=True)
    there.save()
    [copy] = (tmp_path / "machine" / "tidegate").glob("*.arrow")
    (folder / "snapshot" / "1.arrow").unlink()  # on another machine, while this one uses it
    assert found(there.open(), 9) == [("s", 4)]
    new = replace(index(folder, 2, snapshot=1), copied=True)
    assert found(new.open(), 9) == [("s", 4), ("v", 5)]
    assert copy.exists()


def test_a_snapshot_that_is_missing_is_named(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_EXECUTOR_DIRS", str(tmp_path / "machine"))
    with pytest.raises(StateError, match=r"snapshot/1\.arrow: No such file"):
        replace(index(folder, 2, snapshot=1, worker="other"), copied=True).open()


@pytest.mark.xdist_group("spark")
def test_a_worker_writes_the_snapshot(spark: SparkSession, folder: Path) -> None:
    index(folder, 2).save_in_worker(spark)
    (folder / "delta" / "2.json").unlink()
    assert found(index(folder, 2, snapshot=2).open(), 9) == [("s", 4), ("v", 5)]
