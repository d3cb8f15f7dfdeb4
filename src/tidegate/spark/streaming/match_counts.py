"""Counting the matches of a micro-batch in the workers, while a sink takes them.

Spark's `Observation` waits for an action on the deliveries, and would wait for ever if a sink runs
none; accumulators do not exist on Spark Connect. So each task that has computed its matches leaves
an empty file, in whose name their number is. The counts include only the rows that were computed,
and nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain

import pyarrow as pa

from tidegate.spark.delivery_rows import matches_in
from tidegate.spark.sinks.sink import PendingDeliveries
from tidegate.spark.storage.folder import Folder, as_state_error
from tidegate.spark.worker_tasks import Task


def with_counting(pending: Sequence[PendingDeliveries], folder: Folder) -> list[PendingDeliveries]:
    """The same deliveries, whose matches are counted in a folder when they are computed."""
    return [
        replace(each, task=CountingTask(each.task, folder, index))
        for index, each in enumerate(pending)
    ]


def total_count(folder: Folder) -> int:
    """The number of matches that were computed so far."""
    # A partition that is computed again, by a second action or a retried task, has the same name.
    return sum(int(name.rpartition("-")[2]) for name in folder.names())


@dataclass(frozen=True, slots=True)
class CountingTask:
    """Runs a task on chunks of a spool and counts its matches.

    For `mapInArrow` on `chunk_locations`.
    """

    task: Task
    folder: Folder
    pending: int
    """Which of the deliveries of the batch the task computes."""

    def __call__(self, locations: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonempty = (each for each in locations if each.num_rows)
        first = next(nonempty, None)
        if first is None:
            return
        matches = 0
        for rows in self.task(chain([first], nonempty)):
            matches += matches_in(rows)
            yield rows
        location = repr([column[0].as_py() for column in first.columns])
        partition = blake2b(location.encode(), digest_size=8).hexdigest()
        name = f"{self.pending}-{partition}-{matches}"
        with as_state_error(self.folder, name):
            self.folder.write(name, b"")
