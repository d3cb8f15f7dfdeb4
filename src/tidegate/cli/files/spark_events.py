"""Events of a file as a Spark DataFrame.

Events are read and checked as for every other engine, so that bad lines and indexes are the same,
and written to Parquet files, which Spark reads. In Spark a column has one type, so an attribute has
a column for each kind of its values.
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
"""The column of event indexes."""
TIME = "time"
"""The column of event times."""

_TIME_TYPE = pa.timestamp("us", "UTC")


class SparkEvents:
    """Events in Parquet files: indexes, times, and columns by attribute and kind of value."""

    def __init__(self, folder: Path, event_time: str | None) -> None:
        self._folder = folder
        self._has_times = event_time is not None
        # Columns are named a0, a1, ...: an attribute may have the name of our own columns, and
        # Spark does not distinguish `a` from `A`.
        self._columns: dict[tuple[str, pa.DataType], str] = {}
        self._files = 0

    @property
    def event_time(self) -> str | None:
        """The column of event times, if there is one."""
        return TIME if self._has_times else None

    @property
    def attributes(self) -> dict[str, str]:
        """The attribute of each column."""
        return {column: attribute for (attribute, _), column in self._columns.items()}

    def write(self, chunk: EventChunk) -> None:
        """Write a chunk of events to a file of its own."""
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
                columns[self._column(attribute, plain.type)] = plain
        self._write(pa.table(columns))

    def _write(self, table: pa.Table) -> None:
        pq.write_table(table, self._folder / f"{self._files:06}.parquet")
        self._files += 1

    def _column(self, attribute: str, kind: pa.DataType) -> str:
        return self._columns.setdefault((attribute, kind), f"a{len(self._columns)}")

    def frame(self, spark: SparkSession) -> DataFrame:
        """All written events as a DataFrame."""
        if not self._files:  # Spark cannot infer the schema of an empty folder
            empty = {INDEX: pa.int64(), **({TIME: _TIME_TYPE} if self._has_times else {})}
            self._write(pa.schema(empty).empty_table())
        return spark.read.option("mergeSchema", True).parquet(str(self._folder))
