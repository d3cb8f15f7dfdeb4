"""The sizes of summaries, for few subscriptions."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate.experiments import summary_sizes
from tidegate.experiments.summary_sizes import DrawnSubscriptions
from tidegate.matching.summary.tables import check_tables


def test_a_row_for_each_summary() -> None:
    rows = list(
        summary_sizes.measure(subsumptions=(0.1, 0.9), brokers=(1, 3), subscriptions=50, batch=5)
    )
    assert [(row.workload, row.subsumption, row.brokers) for row in rows] == [
        ("paper", 0.1, 1),
        ("paper", 0.1, 3),
        ("paper", 0.9, 1),
        ("paper", 0.9, 3),
        ("cuts", 0.0, 1),
        ("cuts", 0.0, 3),
        ("exact", 0.0, 1),
    ]
    for row in rows:
        assert row.subscriptions == 50 * row.brokers
        assert 0 < row.difference_bytes < row.wire_bytes
        assert row.wire_bytes < row.formula_bytes
        assert row.deflated_bytes < row.wire_bytes
    by_name = {(row.workload, row.brokers): row for row in rows}
    assert by_name["cuts", 3].wire_bytes < by_name["cuts", 3].listed_bytes


def test_the_more_is_subsumed_the_smaller_is_a_summary() -> None:
    rows = list(summary_sizes.measure(["paper"], brokers=[1], subscriptions=100))
    for size in ("formula_bytes", "wire_bytes", "rows"):
        sizes = [getattr(row, size) for row in rows]
        assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("workload", summary_sizes.WORKLOADS)
def test_subscriptions_are_as_in_the_paper(workload: str) -> None:
    drawn = DrawnSubscriptions(workload, 0.5, 2, 30, seed=3)
    tables = drawn.tables(np.ones(60, np.bool_))
    check_tables(tables)
    assert tables == DrawnSubscriptions(workload, 0.5, 2, 30, seed=3).tables(np.ones(60, np.bool_))
    assert all(int(mask).bit_count() == 5 for mask in tables.entry_masks[:, 0])
    assert (len(tables.ranges), len(tables.strings)) == (4, 6)
    if workload == "paper":
        for table in tables.ranges:
            assert np.count_nonzero(table.lows < table.highs) == 2
