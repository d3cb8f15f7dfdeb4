"""Queries of tasks; the tests of the data source have real ones."""

from __future__ import annotations

import pytest

from tidegate.errors import LogError
from tidegate.spark.commit_messages import query_of, query_of_task


def test_all_tasks_name_one_query() -> None:
    assert query_of_task() is None  # outside of a task
    assert query_of(["q", "q"]) == "q"
    for ids in ([], [None], ["q", None], ["q", "r"]):
        with pytest.raises(LogError, match="passes no query id"):
            query_of(ids)
