"""What the tasks of a write tell the driver, and which query they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

from tidegate.errors import LogError

CommitMessages = Sequence[WriterCommitMessage | None]
"""The messages of the tasks of a write; None for a task that failed."""

_QUERY_ID = "sql.streaming.queryId"


def query_of_task() -> str | None:
    """The id of the streaming query whose task runs here; None outside of one.

    Spark keeps the id in the checkpoint. It is not passed to the writers of a data source, but it
    is a property of their tasks.
    """
    context = TaskContext.get()
    return None if context is None else context.getLocalProperty(_QUERY_ID)


def query_of(ids: Iterable[str | None]) -> str:
    """The one query that all tasks of a micro-batch have named."""
    queries = set(ids)
    if len(queries) != 1 or None in queries:
        raise LogError("Spark passes no query id, without which events could be written twice")
    query = queries.pop()
    assert query is not None
    return query
