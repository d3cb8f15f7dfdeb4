from __future__ import annotations

import pytest

from tidegate.errors import SummaryError
from tidegate.matching.summary.budget import EXACT_ENOUGH, PAPER, UNSPREAD_MAX, SummaryBudget


def test_rows_bytes_and_ids_are_bounded() -> None:
    budget = SummaryBudget(rows_max=4, bytes_max=100, spread_max=2)
    assert not budget.exceeded(rows=4, text_bytes=60, ids=10, constraints=5)
    assert budget.exceeded(rows=5, text_bytes=60, ids=10, constraints=5)
    assert budget.exceeded(rows=4, text_bytes=61, ids=10, constraints=5)
    wide = SummaryBudget(spread_max=2)
    assert not wide.exceeded(rows=9, text_bytes=0, ids=UNSPREAD_MAX, constraints=9)
    assert wide.exceeded(rows=9, text_bytes=0, ids=UNSPREAD_MAX + 1, constraints=9)
    assert not wide.exceeded(rows=9, text_bytes=0, ids=2 * UNSPREAD_MAX, constraints=UNSPREAD_MAX)


def test_a_table_of_one_row_is_never_too_large() -> None:
    assert not SummaryBudget(bytes_max=1).exceeded(1, 100, 100, 100)


def test_what_exceeds_a_budget_is_reduced_a_little_further() -> None:
    budget = SummaryBudget(rows_max=80, bytes_max=800, joins_covered=True).eased()
    assert (budget.rows_max, budget.bytes_max, budget.joins_covered) == (70, 700, True)
    assert SummaryBudget(rows_max=1).eased().rows_max == 1


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(SummaryError, match="rows_max of a budget is 0; it must be 1 or more"):
        SummaryBudget(rows_max=0)
    with pytest.raises(SummaryError, match="bytes_max of a budget is 0"):
        SummaryBudget(bytes_max=0)
    with pytest.raises(SummaryError, match="spread_max of a budget is -1"):
        SummaryBudget(spread_max=-1)


def test_the_presets() -> None:
    assert (EXACT_ENOUGH.joins_covered, PAPER.joins_covered) == (False, True)
