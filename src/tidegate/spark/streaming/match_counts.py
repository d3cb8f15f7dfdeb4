"""Counting the matches of a micro-batch in the workers, while a sink takes them.

Spark's `Observation` waits for an action on the deliveries, and would wait for ever if a sink runs
none. These counts include only the rows that were computed, and nothing waits for them.
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
from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.worker_tasks import Task

BatchCounts = dict[tuple[Any, ...], int]
"""Numbers of matches. The key is the batch, which of its `PendingDeliveries` they belong to, and
the location of the first chunk of the partition. Counts of the same key replace each other, so a
partition that is computed again, by a second action or a retried task, counts once."""


class _BatchCountsParam(AccumulatorParam[BatchCounts]):
    """How Spark merges the counts of several tasks."""

    def zero(self, value: BatchCounts) -> BatchCounts:  # noqa: ARG002 - Spark's signature
        return {}

    def addInPlace(self, value1: BatchCounts, value2: BatchCounts) -> BatchCounts:  # noqa: N802
        value1.update(value2)
        return value1


class MatchCounts:
    """Counts the matches of the micro-batches of a stream, one batch after the other."""

    def __init__(self, spark: SparkSession) -> None:
        # One accumulator for all batches, because Spark never frees one.
        self._counts: Accumulator[BatchCounts] = spark.sparkContext.accumulator(
            {}, _BatchCountsParam()
        )

    def with_counting(
        self, pending: list[PendingDeliveries], batch: int
    ) -> list[PendingDeliveries]:
        """The same deliveries, which are counted when they are computed."""
        # The counts of earlier batches have been reported; without this they would pile up.
        self._counts.value = {}
        return [
            replace(each, task=CountingTask(each.task, self._counts, (batch, index)))
            for index, each in enumerate(pending)
        ]

    def total(self, batch: int) -> int:
        """The number of matches of a batch that were computed so far."""
        # A task of an earlier batch may still run and add counts; they have another batch.
        return sum(count for key, count in self._counts.value.items() if key[0] == batch)


@dataclass(frozen=True, slots=True)
class CountingTask:
    """Runs a task on chunks of a spool and counts its matches.

    For `mapInArrow` on `chunk_locations`.
    """

    task: Task
    counts: Accumulator[BatchCounts]
    key: tuple[int, int]

    def __call__(self, locations: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonempty = (each for each in locations if each.num_rows)
        first = next(nonempty, None)
        if first is None:
            return
        matches = 0
        for rows in self.task(chain([first], nonempty)):
            matches += matches_in(rows)
            yield rows
        location = tuple(column[0].as_py() for column in first.columns)
        self.counts.add({(*self.key, *location): matches})
