"""Deliveries written to Parquet by the workers that find them.

What goes through Spark's own writer is first made rows of Java and then columns again, which takes
several times as long as the matching. A worker has the columns already. The files get their place
in one step when all are written.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.spark.delivery_rows import matches_in
from tidegate.spark.worker import PlainTask, Task

FILES_SCHEMA = "name string, matches long"
STAGING = "_staging"
GROUP_MATCHES = 2_000_000
"""A row group has so many matches, and those of the last event."""
DICTIONARY_BYTES_MAX = 64 * 2**20
"""Columns with larger dictionaries are written as they are. By default that begins at 1 MB, which
is where a hundred thousand ids are."""


def is_local(path: str) -> bool:
    """Whether a path is one of a local or mounted folder."""
    return "://" not in path and not path.startswith("file:")


@dataclass(frozen=True, slots=True)
class WritingTask:
    """Runs a task and writes what it gives; for `mapInArrow`. Gives a row for each file."""

    task: Task
    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name = f"part-{uuid.uuid4().hex}.parquet"
        matches = 0
        file: _File | None = None
        try:
            for rows in self.task(batches):
                if file is None:
                    Path(self.folder).mkdir(parents=True, exist_ok=True)
                    file = _File(Path(self.folder) / name, rows.schema)
                count = matches_in(rows)
                file.add(rows, count)
                matches += count
        finally:
            if file is not None:
                file.close()
        if file is not None:
            yield pa.RecordBatch.from_pydict({"name": [name], "matches": [matches]})


class _File:
    """A file of Parquet whose row groups have about as many matches each.

    Rows wait until there are enough of them: each row group has a dictionary of its own, and where
    there are many small ones, writing these takes as long as all the rest. The file does not say
    that columns were coded, or Arrow would give them back as codes. It has no minimum and maximum
    of what is in lists, which nobody can use.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
        self._writer = pq.ParquetWriter(
            path,
            schema,
            write_statistics=plain,
            store_schema=False,
            dictionary_pagesize_limit=DICTIONARY_BYTES_MAX,
        )
        self._waiting: list[pa.RecordBatch] = []
        self._matches = 0

    def add(self, rows: pa.RecordBatch, matches: int) -> None:
        """Write rows that have so many matches."""
        self._waiting.append(rows)
        self._matches += matches
        if self._matches >= GROUP_MATCHES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._waiting, self._matches = [], 0

    def close(self) -> None:
        """Write what waits, and the end of the file."""
        self._flush()
        self._writer.close()


@dataclass(frozen=True, slots=True)
class PendingDeliveries:
    """Deliveries that are still to be made: events, and the task that makes them."""

    events: DataFrame
    task: Task
    schema: StructType

    def deliveries(self) -> DataFrame:
        """The deliveries."""
        return self.events.mapInArrow(PlainTask(self.task), self.schema)


def write_batch(found: Sequence[PendingDeliveries], root: Path, target: Path) -> int:
    """Make deliveries and have them in a folder; gives how many there are.

    What was in the folder goes. If there are no matches, there is no folder.
    """
    staging = root / STAGING / uuid.uuid4().hex
    matches = 0
    written: set[str] = set()
    for each in found:
        task = WritingTask(each.task, str(staging))
        files = each.events.mapInArrow(task, FILES_SCHEMA).collect()
        written.update(file["name"] for file in files)
        matches += sum(file["matches"] for file in files)
    shutil.rmtree(target, ignore_errors=True)
    if written:
        for file in staging.iterdir():
            if file.name not in written:  # of a task that failed and was tried again
                file.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        staging.rename(target)
    shutil.rmtree(root / STAGING, ignore_errors=True)
    return matches
