"""Parquet files written by the workers that match the events.

Rows that go through Spark's own writer are first converted from Arrow columns to Java rows and then
to columns again, which takes several times as long as the matching. A worker already has the
columns, so it writes the file itself. The files of all workers are moved to their final folder by
one rename after the last of them is complete, so a reader sees all files of a batch or none. An
object store has no rename; there the workers write to the final folder, and what no successful task
reported is removed from it at the end.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from tidegate.errors import ConnectorError
from tidegate.spark.delivery_rows import matches_in
from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.storage.folder import Folder
from tidegate.spark.worker_tasks import Task

FILES_SCHEMA = "name string, matches long"
_PART = "part-"
"""The beginning of the names of our files."""
STAGING = "_staging"
"""The folder of files that are not complete; Spark's readers skip names with an underscore."""
ROW_GROUP_MATCHES = 2_000_000
"""A row group is written once it has this many matches; its last event may add some more."""
DICTIONARY_BYTES_MAX = 64 * 2**20
"""A column whose dictionary is larger is written without one. Parquet's default of 1 MB is reached
by about a hundred thousand ids."""


def computed(rows: DataFrame) -> PendingDeliveries:
    """Rows that need no task, to be written as they are."""
    return PendingDeliveries(rows, _same, rows.schema)


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


@dataclass(frozen=True, slots=True)
class WriteParquetTask:
    """Runs a task and writes its output to one file; yields a row for the file.

    For `mapInArrow`.
    """

    task: Task
    folder: Folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A retried task writes a second file, because the name is random; `write_batch` knows by
        # the rows of the successful attempts which files count.
        name = f"{_PART}{uuid.uuid4().hex}.parquet"
        matches = 0
        file: _ParquetFile | None = None
        try:
            for rows in self.task(batches):
                if rows.num_rows == 0:
                    continue
                if file is None:
                    file = _ParquetFile(self.folder.open_output(name), rows.schema)
                count = matches_in(rows)
                file.add(rows, count)
                matches += count
        finally:
            if file is not None:
                file.close()
        if file is not None:
            yield pa.RecordBatch.from_pydict({"name": [name], "matches": [matches]})


class _ParquetFile:
    """A Parquet file whose row groups have about the same number of matches each.

    Rows are buffered until there are enough for a row group: each row group has a dictionary of its
    own, and writing the dictionaries of many small groups takes as long as everything else. The
    Arrow schema is not stored in the file, or Arrow would read dictionary columns instead of
    strings. Nested columns have no minimum and maximum, because no reader can use those.
    """

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = sink
        flat = [field.name for field in schema if not pa.types.is_nested(field.type)]
        self._writer = pq.ParquetWriter(
            sink,
            schema,
            write_statistics=flat,
            store_schema=False,
            dictionary_pagesize_limit=DICTIONARY_BYTES_MAX,
        )
        self._buffered: list[pa.RecordBatch] = []
        self._matches = 0

    def add(self, rows: pa.RecordBatch, matches: int) -> None:
        """Add rows; ``matches`` is the number of matches in them."""
        self._buffered.append(rows)
        self._matches += matches
        if self._matches >= ROW_GROUP_MATCHES:
            self._flush()

    def _flush(self) -> None:
        if self._buffered:
            table = pa.Table.from_batches(self._buffered)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._buffered, self._matches = [], 0

    def close(self) -> None:
        """Write the buffered rows and the footer of the file."""
        self._flush()
        self._writer.close()
        self._sink.close()


def write_batch(pending: Sequence[PendingDeliveries], root: Folder, target: str) -> int:
    """Compute deliveries and write them to the folder ``target``; returns the number of matches.

    An existing folder is replaced. Without matches there is no folder. Files are staged below
    ``root``, which nobody else may write to meanwhile.
    """
    name = f"{STAGING}/{uuid.uuid4().hex}" if root.has_rename else target
    staging = root.folder(name)
    matches = 0
    written: set[str] = set()
    for each in pending:
        task = WriteParquetTask(each.task, staging)
        files = each.events.mapInArrow(task, FILES_SCHEMA).collect()
        written.update(file["name"] for file in files)
        matches += sum(file["matches"] for file in files)
    present = set(staging.names())
    if written - present:
        raise ConnectorError(
            f"{staging.location}: of the {len(written)} files that workers wrote, the driver does "
            f"not see {len(written - present)}; it must be a folder that all machines share"
        )
    for other in present - written:  # left by a task that failed and was retried
        if other.startswith(_PART):  # what belongs to others is left alone
            staging.remove(other)
    if root.has_rename:
        # The old folder is removed only now: if a task fails, that of an earlier attempt stays.
        root.remove(target)
        if written:
            root.rename(name, target)
        root.remove(STAGING)
    elif not written:
        root.remove(target)
    return matches
