"""How many matches a sink takes, counted where they are made.

Spark's `Observation` waits for an action on the deliveries, and would wait for ever for that of a
sink that runs none. This counts what was taken, and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from tidegate.spark.delivery_rows import matches_in
from tidegate.spark.sinks.parquet_writing import PendingDeliveries
from tidegate.spark.worker import Task

BatchCounts = dict[tuple[Any, ...], int]
"""Matches by what they were made of: the batch, which of its parts, and the first piece of a
partition. So one that is made again, by a second action or another try, counts once."""


class _Joining(AccumulatorParam[BatchCounts]):
    """Counts of several tasks together."""

    def zero(self, value: BatchCounts) -> BatchCounts:  # noqa: ARG002 - Spark's signature
        return {}

    def addInPlace(self, value1: BatchCounts, value2: BatchCounts) -> BatchCounts:  # noqa: N802
        value1.update(value2)
        return value1


class MatchCounts:
    """Counts the matches of the micro-batches of a stream, one batch after the other."""

    def __init__(self, spark: SparkSession) -> None:
        # one for all batches: Spark keeps each for ever
        self._counts: Accumulator[BatchCounts] = spark.sparkContext.accumulator({}, _Joining())

    def counted(self, found: list[PendingDeliveries], batch: int) -> list[PendingDeliveries]:
        """The same deliveries, which are counted when they are made."""
        self._counts.value = {}
        return [
            replace(each, task=CountedTask(each.task, self._counts, (batch, part)))
            for part, each in enumerate(found)
        ]

    def of(self, batch: int) -> int:
        """How many matches of a batch were made since."""
        return sum(count for key, count in self._counts.value.items() if key[0] == batch)


@dataclass(frozen=True, slots=True)
class CountedTask:
    """Runs a task on pieces of a spool and counts the matches; for `mapInArrow` on `places`."""

    task: Task
    counts: Accumulator[BatchCounts]
    key: tuple[int, int]

    def __call__(self, given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = (each for each in given if each.num_rows)
        first = next(pieces, None)
        if first is None:
            return
        matches = 0
        for rows in self.task(chain([first], pieces)):
            matches += matches_in(rows)
            yield rows
        place = tuple(column[0].as_py() for column in first.columns)
        self.counts.add({(*self.key, *place): matches})
