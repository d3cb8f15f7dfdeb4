"""The rows of a micro-batch, kept in Arrow files as long as they may be needed.

Workers write what comes to them, and map the files when they match: nothing is made rows of Java
and columns again in between. A file has some record batches, the pieces, which are dealt to the
tasks evenly however uneven the partitions of the source were. Files are in the folder of the batch,
beside `pieces.json`, which says what is in them and is written last.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.streaming.version_files import read_json, write_json
from tidegate.spark.worker import Task


class RowKind(IntEnum):
    """What a row of a stream is."""

    EVENT = 0
    LATE = 1
    """An event of a time before the border of lateness."""
    TIMELESS = 2
    """An event without a time."""
    BAD = 3
    """A record that is no good event."""
    CHANGE = 4


@dataclass(frozen=True, slots=True)
class Sorter:
    """Tells the rows of a stream apart, which have a column for each of event, bad and change."""

    event_time: str | None
    """The attribute that has the time of events; None if they have none, and then all are good."""
    border: int | None
    """Events of a time before this, in microseconds, are late; None if none are."""

    def kinds(self, rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
        """The `RowKind` of each row."""
        kinds = np.full(rows.num_rows, RowKind.CHANGE, np.int8)
        kinds[_there(rows, "bad")] = RowKind.BAD
        if self.event_time is None:
            kinds[_there(rows, "event")] = RowKind.EVENT
            return kinds
        time_us, timed = self._times(rows)
        kinds[_there(rows, "event")] = RowKind.TIMELESS
        kinds[timed] = RowKind.EVENT
        if self.border is not None:
            kinds[timed & (time_us < self.border)] = RowKind.LATE
        return kinds

    def latest(self, rows: pa.RecordBatch) -> int | None:
        """The time of the latest event, in microseconds."""
        if self.event_time is None:
            return None
        time_us, timed = self._times(rows)
        return int(time_us[timed].max()) if timed.any() else None

    def chosen(self, rows: pa.RecordBatch, kind: RowKind) -> pa.RecordBatch:
        """The rows of one kind."""
        return rows.filter(pa.array(self.kinds(rows) == kind))

    def _times(self, rows: pa.RecordBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The time of each event, and where there is one."""
        times = pc.struct_field(rows.column("event"), [str(self.event_time)])
        time_us = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).fill_null(0)
        return _numpy(time_us), _numpy(times.is_valid())


def _inside(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """What is in a column of structures, all of which are there."""
    structures: Any = rows.column(name)
    return pa.RecordBatch.from_struct_array(structures)


def _there(rows: pa.RecordBatch, name: str) -> npt.NDArray[np.bool_]:
    return _numpy(rows.column(name).is_valid())


def _numpy(array: Any) -> npt.NDArray[Any]:
    result: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return result


@dataclass(frozen=True, slots=True)
class SpooledBatch:
    """A record batch of a file."""

    file: str
    index: int
    counts: tuple[int, ...]
    """How many rows there are of each `RowKind`."""
    latest: int | None
    """The time of the latest event, in microseconds."""


_PIECES_SCHEMA = "file string, index int, counts array<long>, latest long"


@dataclass(frozen=True, slots=True)
class Spool:
    """The rows of a micro-batch."""

    pieces: list[SpooledBatch]

    @classmethod
    def write(cls, rows: DataFrame, folder: Path, sorter: Sorter) -> Spool:
        """Write rows of Spark to a folder; what was in it goes."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        task = partial(_write_pieces, str(folder), sorter)
        written = rows.mapInArrow(task, _PIECES_SCHEMA).collect()
        pieces = [
            SpooledBatch(file, index, tuple(counts), last) for file, index, counts, last in written
        ]
        noted = [[Path(each.file).name, each.index, each.counts, each.latest] for each in pieces]
        write_json(folder / "pieces.json", noted)
        return cls(pieces)

    @classmethod
    def read(cls, folders: Iterable[Path]) -> Spool:
        """What was written to some folders."""
        return cls(
            [
                SpooledBatch(str(folder / name), index, tuple(counts), latest)
                for folder in folders
                for name, index, counts, latest in read_json(folder / "pieces.json")
            ]
        )

    def count(self, kind: RowKind) -> int:
        """How many rows there are of a kind, by the border they were written with."""
        return sum(each.counts[kind] for each in self.pieces)

    def latest(self) -> int | None:
        """The time of the latest event, in microseconds."""
        return max((each.latest for each in self.pieces if each.latest is not None), default=None)

    def changes(self) -> pa.Table | None:
        """All changes, read here; None if there are none."""
        found = [
            _inside(rows.filter(rows.column("change").is_valid()), "change")
            for piece in self.pieces
            if piece.counts[RowKind.CHANGE]
            for rows in _read_pieces([(piece.file, piece.index)])
        ]
        return pa.Table.from_batches(found) if found else None

    def events_since(self, time_us: int | None) -> list[SpooledBatch]:
        """The pieces that may have good events; of a time or later, if one is given."""
        if time_us is None:
            return [each for each in self.pieces if each.counts[RowKind.EVENT]]
        return [each for each in self.pieces if each.latest is not None and each.latest >= time_us]

    def rows(self, kind: RowKind, sorter: Sorter, like: DataFrame) -> DataFrame:
        """The rows of a kind, as they came."""
        pieces = [each for each in self.pieces if each.counts[kind]]
        task = partial(_chosen_rows, sorter, kind)
        return places(like.sparkSession, pieces).mapInArrow(task, like.schema)


def places(spark: SparkSession, pieces: Sequence[SpooledBatch]) -> DataFrame:
    """Where pieces are, dealt to as many partitions as there are cores."""
    files = pa.array([each.file for each in pieces], pa.string())
    indexes = pa.array([each.index for each in pieces], pa.int32())
    return spark.createDataFrame(pa.Table.from_arrays([files, indexes], names=["file", "index"]))


@dataclass(frozen=True, slots=True)
class SpooledTask:
    """Runs a task on the events, of a time or later, of pieces; for `mapInArrow` on `places`."""

    task: Task
    sorter: Sorter

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(
            _inside(rows, "event") for rows in _chosen_rows(self.sorter, RowKind.EVENT, given)
        )


def _write_pieces(
    folder: str, sorter: Sorter, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write what comes to a file; gives a row for each piece."""
    path = f"{folder}/{uuid.uuid4().hex}.arrow"
    pieces: list[SpooledBatch] = []
    writer: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for rows in batches:
            if rows.num_rows == 0:
                continue
            writer = writer or pa.ipc.new_file(path, rows.schema)
            writer.write_batch(rows)
            counts = np.bincount(sorter.kinds(rows), minlength=len(RowKind)).tolist()
            pieces.append(SpooledBatch(path, len(pieces), tuple(counts), sorter.latest(rows)))
    finally:
        if writer is not None:
            writer.close()
    columns: list[Any] = [
        pa.array([each.file for each in pieces], pa.string()),
        pa.array([each.index for each in pieces], pa.int32()),
        pa.array([each.counts for each in pieces], pa.list_(pa.int64())),
        pa.array([each.latest for each in pieces], pa.int64()),
    ]
    yield pa.RecordBatch.from_arrays(columns, names=["file", "index", "counts", "latest"])


def _chosen_rows(
    sorter: Sorter, kind: RowKind, given: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for some in given:
        wanted: Any = zip(*(each.to_pylist() for each in some.columns), strict=True)
        for rows in _read_pieces(wanted):
            chosen = sorter.chosen(rows, kind)
            if chosen.num_rows:
                yield chosen


def _read_pieces(wanted: Iterable[tuple[str, int]]) -> Iterator[pa.RecordBatch]:
    for file, index in wanted:
        with pa.memory_map(file) as source:
            yield pa.ipc.open_file(source).get_batch(index)
