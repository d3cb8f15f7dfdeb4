"""The interface of sinks, through which a micro-batch writes its deliveries.

Spark runs a micro-batch again, with the same id and the same rows, if the process was killed before
Spark noted in the checkpoint that the batch is done. So a sink must be able to write a batch twice
and still hold it once; the docstring of each sink explains how.
`tests/spark/test_kills.py` kills the sinks at the worst moments.

Deliveries have the columns of the event, `subscription`, `subscriber`, `version` and, where a
stream of changes can cause corrections, `operation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidegate.spark.session import is_connect
from tidegate.spark.worker_tasks import DecodingTask, Task


class Sink(Protocol):
    """Takes the deliveries of a micro-batch.

    Writing a batch again, with the same id and the same deliveries, must change nothing.
    """

    def write(self, deliveries: DataFrame, batch_id: int) -> None:
        """Write the deliveries of a batch; they are durable when this returns."""
        ...


@dataclass(frozen=True, slots=True)
class PendingDeliveries:
    """Deliveries that are not computed yet: the rows of events, and the task that matches them."""

    events: DataFrame
    task: Task
    schema: StructType
    """The columns of the deliveries."""

    def deliveries(self) -> DataFrame:
        """The deliveries as a DataFrame, for sinks that write through Spark."""
        return self.events.mapInArrow(DecodingTask(self.task), self.schema)


@runtime_checkable
class WorkerSink(Sink, Protocol):
    """A sink whose rows can be written by the workers that compute them, which is faster."""

    def write_in_workers(self, pending: Sequence[PendingDeliveries], batch_id: int) -> int:
        """Write a batch; returns the number of deliveries."""
        ...


def query_id(rows: DataFrame) -> str | None:
    """The id of the streaming query that runs this batch; None where that is not known.

    Spark stores the id in the checkpoint, so a query that is restarted keeps it. It is not known
    outside of a query, nor on Spark Connect in a function of one's own for `foreachBatch`.
    """
    if _RUNNING.get() is not None or is_connect(rows.sparkSession):
        return _RUNNING.get()
    return rows.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")


_RUNNING: ContextVar[str | None] = ContextVar("_RUNNING", default=None)


@contextmanager
def running_query(id: str) -> Iterator[None]:
    """Say to the sinks that are called meanwhile which query calls them."""
    token = _RUNNING.set(id)
    try:
        yield
    finally:
        _RUNNING.reset(token)
