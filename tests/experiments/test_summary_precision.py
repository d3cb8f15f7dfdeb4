"""The experiments on matching and precision, with few subscriptions."""

from __future__ import annotations

from tidegate.experiments.summary_precision import PAPER_BUDGET, matching_times, precision
from tidegate.simulation.overlays.paper_networks import summaries13


def test_the_index_and_the_summaries_are_timed() -> None:
    told: list[str] = []
    rows = {
        row.method: row
        for row in matching_times(6, 10, rounds=2, topology=summaries13(), progress=told.append)
    }
    assert list(rows) == [
        "columnar index", "summaries", "summaries, 16 rows", "summaries of all",
        "summaries of all, as in 3.1",
    ]  # fmt: skip
    assert all(0 < row.fastest_us <= row.us <= row.slowest_us for row in rows.values())
    assert rows["columnar index"].found == rows["summaries of all"].found
    assert rows["columnar index"].found <= rows["summaries of all, as in 3.1"].found
    assert rows["summaries"].entries < rows["summaries of all"].entries == 13 * 6
    assert len(told) == 1


def test_a_smaller_budget_sends_fewer_bytes_and_more_events() -> None:
    rows = {
        (row.budget, row.covered_left_out): row
        for row in precision(6, 30, rows=(2, 1), topology=summaries13())
    }
    assert {budget for budget, _ in rows} == {"exact", PAPER_BUDGET, "2 rows", "1 rows"}
    for left_out in (True, False):
        exact, one = rows["exact", left_out], rows["1 rows", left_out]
        assert exact.in_vain == 0
        assert exact.brokers_found == exact.brokers_matching == one.brokers_matching
        assert one.bytes < exact.bytes
        assert one.in_vain > 0
    assert rows["exact", True].bytes < rows["exact", False].bytes
    assert rows[PAPER_BUDGET, False].rows_max is None
