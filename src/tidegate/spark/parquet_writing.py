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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.spark.worker import Task

FILES_SCHEMA = "name string, matches long"
STAGING = "_staging"


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
        writer: pq.ParquetWriter | None = None
        try:
            for rows in self.task(batches):
                if writer is None:
                    Path(self.folder).mkdir(parents=True, exist_ok=True)
                    writer = _writer(Path(self.folder) / name, rows.schema)
                writer.write_batch(rows)
                matches += _matches(rows)
        finally:
            if writer is not None:
                writer.close()
        if writer is not None:
            yield pa.RecordBatch.from_pydict({"name": [name], "matches": [matches]})


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer that keeps no minimum and maximum of what is in lists, which nobody can use."""
    plain = [field.name for field in schema if not pa.types.is_nested(field.type)]
    return pq.ParquetWriter(path, schema, write_statistics=plain)


def _matches(rows: pa.RecordBatch) -> int:
    """How many matches some rows have, which may be grouped."""
    if "deliveries" not in rows.schema.names:
        return rows.num_rows
    lists: Any = rows.column("deliveries")
    return len(lists.flatten())


@dataclass(frozen=True, slots=True)
class Found:
    """Deliveries that are still to be made: events, and the task that makes them."""

    events: DataFrame
    task: Task
    schema: StructType

    def deliveries(self) -> DataFrame:
        """The deliveries."""
        return self.events.mapInArrow(self.task, self.schema)


def write_batch(found: Sequence[Found], root: Path, target: Path) -> int:
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
