"""The benchmark of changes of summaries, on small sizes."""

from __future__ import annotations

from itertools import islice

from tidegate.experiments import summary_cost


def test_each_operation_is_timed_at_each_size() -> None:
    told: list[str] = []
    rows = list(summary_cost.costs([20, 60], count=10, progress=told.append))
    assert [(row.operation, row.size) for row in rows] == [
        (operation, size)
        for size in (20, 60)
        for operation in ("subscribe", "update", "unsubscribe", "match")
    ]
    assert all(0 < row.median_us <= row.slowest_us for row in rows)
    assert told == ["summary, 20 subscriptions", "summary, 60 subscriptions"]


def test_fewer_subscriptions_are_the_first_of_more() -> None:
    few, more = ([str(each) for each in islice(summary_cost.filters(), n)] for n in (3, 9))
    assert more[:3] == few
