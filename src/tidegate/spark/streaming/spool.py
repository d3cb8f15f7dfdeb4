"""The spool: the rows of a micro-batch, kept in Arrow files as long as they may be needed.

Workers write the rows they receive, and read the files when they match; those on a disk they map
into memory. So rows are not
converted to Java and back in between, and the events of earlier batches can be matched again when a
late change corrects them. A file holds several record batches, here called chunks, which are dealt
evenly to the tasks, however uneven the partitions of the source were.

The files of a micro-batch are in one folder, beside `chunks.json`, which lists the chunks and is
written last: without it, the folder is not a complete spool. A batch that is run again starts with
an empty folder.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.streaming.future_events import TimeLimit
from tidegate.spark.streaming.state_files import read_json, write_json
from tidegate.spark.worker_tasks import Task

_CHUNK_LIST = "chunks.json"


class RowKind(IntEnum):
    """The kinds of rows in a stream. The values index the counts of `SpooledChunk`."""

    EVENT = 0
    LATE = 1
    """An event whose time is before the border of lateness."""
    TIMELESS = 2
    """An event without a time."""
    BAD = 3
    """A record that cannot be read as an event."""
    CHANGE = 4


@dataclass(frozen=True, slots=True)
class RowClassifier:
    """Finds the kind of rows, which have one of the structs `event`, `bad` and `change`."""

    event_time: str | None
    """The attribute with the time of events; None if they have none, and then all are on time."""
    border_us: int | None
    """Events of an earlier time, in microseconds, are late; None if none are."""

    def kinds(self, rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
        """The `RowKind` of each row."""
        # A row has one of the three structs; what is neither bad nor an event is a change.
        kinds = np.full(rows.num_rows, RowKind.CHANGE, np.int8)
        kinds[_is_valid(rows, "bad")] = RowKind.BAD
        if self.event_time is None:
            kinds[_is_valid(rows, "event")] = RowKind.EVENT
            return kinds
        times_us, timed = self._times_us(rows)
        kinds[_is_valid(rows, "event")] = RowKind.TIMELESS
        kinds[timed] = RowKind.EVENT
        if self.border_us is not None:
            kinds[timed & (times_us < self.border_us)] = RowKind.LATE
        return kinds

    def latest_us(self, rows: pa.RecordBatch) -> int | None:
        """The time of the latest event, in microseconds."""
        if self.event_time is None:
            return None
        times_us, timed = self._times_us(rows)
        return int(times_us[timed].max()) if timed.any() else None

    def filtered(self, rows: pa.RecordBatch, kind: RowKind) -> pa.RecordBatch:
        """The rows of one kind."""
        return rows.filter(pa.array(self.kinds(rows) == kind))

    def _times_us(
        self, rows: pa.RecordBatch
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """The time of each event in microseconds, and whether it has one."""
        times = pc.struct_field(rows.column("event"), [str(self.event_time)])
        # A timestamp without a zone is taken as UTC, as the matcher does.
        times_us = times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).fill_null(0)
        return _to_numpy(times_us), _to_numpy(times.is_valid())


def _unpacked(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    """The fields of a struct column without nulls, as columns."""
    structs: Any = rows.column(name)
    return pa.RecordBatch.from_struct_array(structs)


def _is_valid(rows: pa.RecordBatch, name: str) -> npt.NDArray[np.bool_]:
    return _to_numpy(rows.column(name).is_valid())


def _to_numpy(array: Any) -> npt.NDArray[Any]:
    result: npt.NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return result


@dataclass(frozen=True, slots=True)
class SpooledChunk:
    """One record batch of a spool file, and what is known of it without reading it."""

    file: str
    """The name of the file in the folder of all spools."""
    index: int
    """The position of the record batch in the file."""
    counts: tuple[int, ...]
    """The number of rows of each `RowKind`, by the border that held when they were written."""
    latest_us: int | None
    """The time of the latest event, in microseconds."""


_CHUNK_SCHEMA = "file string, index int, counts array<long>, latest_us long"


@dataclass(frozen=True, slots=True)
class Spool:
    """The rows of one or more micro-batches."""

    root: Folder
    """The folder that has those of the batches."""
    chunks: list[SpooledChunk]

    @classmethod
    def write(
        cls,
        rows: DataFrame,
        root: Folder,
        batch: int,
        classifier: RowClassifier,
        limit: TimeLimit | None = None,
    ) -> Spool:
        """Write the rows of a DataFrame to the folder of a batch, which is emptied before.

        Events beyond the ``limit`` become bad records.
        """
        with as_state_error(root, str(batch)):
            root.remove(str(batch))
        task = partial(_write_chunks, root, batch, classifier, limit)
        written = rows.mapInArrow(task, _CHUNK_SCHEMA).collect()
        chunks = [
            SpooledChunk(file, index, tuple(counts), latest_us)
            for file, index, counts, latest_us in written
        ]
        listed = [[e.file, e.index, e.counts, e.latest_us] for e in chunks]
        write_json(root, f"{batch}/{_CHUNK_LIST}", listed)
        return cls(root, chunks)

    @classmethod
    def read(cls, root: Folder, batches: Iterable[int]) -> Spool:
        """The spool of several batches together."""
        return cls(
            root,
            [
                SpooledChunk(file, index, tuple(counts), latest_us)
                for batch in batches
                for file, index, counts, latest_us in read_json(root, f"{batch}/{_CHUNK_LIST}")
            ],
        )

    def count(self, kind: RowKind) -> int:
        """The number of rows of a kind, by the border that held when they were written."""
        return sum(each.counts[kind] for each in self.chunks)

    def latest_us(self) -> int | None:
        """The time of the latest event, in microseconds."""
        times = (each.latest_us for each in self.chunks if each.latest_us is not None)
        return max(times, default=None)

    def changes(self) -> pa.Table | None:
        """All changes, read into this process; None if there are none."""
        batches = [
            _unpacked(rows.filter(rows.column("change").is_valid()), "change")
            for chunk in self.chunks
            if chunk.counts[RowKind.CHANGE]
            for rows in _read_chunks(self.root, [(chunk.file, chunk.index)])
        ]
        return pa.Table.from_batches(batches) if batches else None

    def events_since(self, time_us: int | None) -> list[SpooledChunk]:
        """The chunks that may have events, of this time or later if one is given.

        Events that were late when they were written are excluded by the border of the reader.
        """
        if time_us is None:
            return [each for each in self.chunks if each.counts[RowKind.EVENT]]
        return [e for e in self.chunks if e.latest_us is not None and e.latest_us >= time_us]

    def rows(self, kind: RowKind, classifier: RowClassifier, like: DataFrame) -> DataFrame:
        """The rows of a kind, with the columns of the DataFrame ``like``, as they were written."""
        chunks = [each for each in self.chunks if each.counts[kind]]
        task = partial(_rows_of_kind, self.root, classifier, kind)
        return chunk_locations(like.sparkSession, chunks).mapInArrow(task, like.schema)


def chunk_locations(spark: SparkSession, chunks: Sequence[SpooledChunk]) -> DataFrame:
    """The files and positions of chunks, spread over as many partitions as there are cores."""
    files = pa.array([each.file for each in chunks], pa.string())
    indexes = pa.array([each.index for each in chunks], pa.int32())
    return spark.createDataFrame(pa.Table.from_arrays([files, indexes], names=["file", "index"]))


@dataclass(frozen=True, slots=True)
class SpooledTask:
    """Runs a task on the spooled events that are not late.

    For `mapInArrow` on `chunk_locations`.
    """

    task: Task
    root: Folder
    classifier: RowClassifier

    def __call__(self, locations: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return self.task(
            _unpacked(rows, "event")
            for rows in _rows_of_kind(self.root, self.classifier, RowKind.EVENT, locations)
        )


def _write_chunks(
    root: Folder,
    batch: int,
    classifier: RowClassifier,
    limit: TimeLimit | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the rows of a partition to a file; yields a row for each chunk."""
    # A retried task writes another file; only the chunks that the successful one yields are listed.
    file = f"{batch}/{uuid.uuid4().hex}.arrow"
    chunks: list[SpooledChunk] = []
    writer: pa.ipc.RecordBatchFileWriter | None = None
    sink: pa.NativeFile | None = None
    try:
        for received in batches:
            if received.num_rows == 0:
                continue
            rows = received if limit is None else limit.apply(received)
            if writer is None:
                with as_state_error(root, file):
                    sink = root.open_output(file)
                writer = pa.ipc.new_file(sink, rows.schema)
            writer.write_batch(rows)
            counts = np.bincount(classifier.kinds(rows), minlength=len(RowKind)).tolist()
            latest_us = classifier.latest_us(rows)
            chunks.append(SpooledChunk(file, len(chunks), tuple(counts), latest_us))
    finally:
        if writer is not None and sink is not None:
            with as_state_error(root, file):
                writer.close()
                sink.close()
    columns: list[Any] = [
        pa.array([each.file for each in chunks], pa.string()),
        pa.array([each.index for each in chunks], pa.int32()),
        pa.array([each.counts for each in chunks], pa.list_(pa.int64())),
        pa.array([each.latest_us for each in chunks], pa.int64()),
    ]
    yield pa.RecordBatch.from_arrays(columns, names=["file", "index", "counts", "latest_us"])


def _rows_of_kind(
    root: Folder, classifier: RowClassifier, kind: RowKind, locations: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in locations:
        pairs: Any = zip(*(each.to_pylist() for each in batch.columns), strict=True)
        for rows in _read_chunks(root, pairs):
            filtered = classifier.filtered(rows, kind)
            if filtered.num_rows:
                yield filtered


def _read_chunks(root: Folder, locations: Iterable[tuple[str, int]]) -> Iterator[pa.RecordBatch]:
    for file, index in locations:
        with as_state_error(root, file), root.open_input(file) as source:
            rows = pa.ipc.open_file(source).get_batch(index)
        yield rows
