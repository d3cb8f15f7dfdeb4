"""The benchmark of summaries, on small sizes."""

from __future__ import annotations

from itertools import islice

from tidegate.experiments import summary_cost
from tidegate.experiments.summary_cost import BUDGETS


def test_each_operation_is_timed_at_each_size() -> None:
    told: list[str] = []
    rows = list(summary_cost.costs([20, 60], count=10, budget="16 rows", progress=told.append))
    assert [(row.operation, row.size) for row in rows] == [
        (operation, size)
        for size in (20, 60)
        for operation in ("subscribe", "update", "unsubscribe", "match")
    ]
    assert all(0 < row.median_us <= row.slowest_us for row in rows)
    assert told == ["summary, 20 subscriptions, 16 rows", "summary, 60 subscriptions, 16 rows"]


def test_a_smaller_budget_is_smaller_and_less_precise() -> None:
    rows = {row.budget: row for row in summary_cost.precision(150, count=30)}
    assert list(rows) == list(BUDGETS)
    assert rows["exact"].found == rows["exact"].matching
    assert rows["1 rows"].rows <= 3
    assert rows["1 rows"].bytes < rows["16 rows"].bytes < rows["exact"].bytes
    assert rows["1 rows"].found > rows["16 rows"].found >= rows["exact"].found
    assert len({row.matching for row in rows.values()}) == 1


def test_fewer_subscriptions_are_the_first_of_more() -> None:
    few, more = ([str(each) for each in islice(summary_cost.filters(), n)] for n in (3, 9))
    assert more[:3] == few
