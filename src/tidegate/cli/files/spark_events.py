"""Events of a file, handed to Spark.

They are read and checked as for every other engine, and written to Parquet files. In Spark a column
has one type, so an attribute has a column for each kind of value that it has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from tidegate.cli.files.events import EventChunk
from tidegate.matching.batches import EventBatch

INDEX = "event"
TIME = "time"

_TIME_TYPE = pa.timestamp("us", "UTC")


class SparkEvents:
    """Events in Parquet files: their indexes, their times, and a column for each kind of value."""

    def __init__(self, folder: Path, event_time: str | None) -> None:
        self._folder = folder
        self._has_times = event_time is not None
        self._names: dict[tuple[str, pa.DataType], str] = {}
        self._files = 0

    @property
    def event_time(self) -> str | None:
        """The column that has the time of events, if they have one."""
        return TIME if self._has_times else None

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that columns hold."""
        return {name: attribute for (attribute, _), name in self._names.items()}

    def write(self, chunk: EventChunk) -> None:
        """Add a file with some events."""
        if isinstance(chunk.events, pa.Table):
            batch = EventBatch.of(chunk.events)
        else:
            batch = EventBatch.of_events(chunk.events)
        columns: dict[str, Any] = {INDEX: pa.array(chunk.indexes, pa.int64())}
        if self._has_times:
            columns[TIME] = pa.array(chunk.time_us()).cast(_TIME_TYPE)
        for attribute, column in batch.columns:
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            if not pa.types.is_null(plain.type):
                columns[self._name(attribute, plain.type)] = plain
        self._write(pa.table(columns))

    def _write(self, table: pa.Table) -> None:
        pq.write_table(table, self._folder / f"{self._files:06}.parquet")
        self._files += 1

    def _name(self, attribute: str, kind: pa.DataType) -> str:
        return self._names.setdefault((attribute, kind), f"a{len(self._names)}")

    def frame(self, spark: SparkSession) -> DataFrame:
        """All events that were written; the files are read when the answer is asked for."""
        if not self._files:
            empty = {INDEX: pa.int64(), **({TIME: _TIME_TYPE} if self._has_times else {})}
            self._write(pa.schema(empty).empty_table())
        return spark.read.option("mergeSchema", True).parquet(str(self._folder))
