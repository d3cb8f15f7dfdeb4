from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.budget import EXACT_ENOUGH, PAPER, SummaryBudget
from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.member_lists import MemberLists, Terms
from tidegate.matching.summary.row_patterns import ANY_TEXT, covers, pattern_of
from tidegate.matching.summary.strings import StringRows, text_bytes
from tidegate.matching.summary.tables import RowPattern

BUDGETS = [
    EXACT_ENOUGH,
    PAPER,
    SummaryBudget(rows_max=1),
    SummaryBudget(rows_max=4),
    SummaryBudget(bytes_max=30),
    SummaryBudget(rows_max=3, joins_covered=True),
]
patterns = st.lists(st.text("ab", max_size=3), min_size=1, max_size=3).map(
    lambda pieces: pattern_of(tuple(pieces))
)
TEXTS = ["", "a", "b", "ab", "ba", "aab", "abab", "bbba", "aaa", "c"]


def equal(text: str) -> RowPattern:
    return pattern_of((text,))


def prefix(text: str) -> RowPattern:
    return pattern_of((text, ""))


class Table:
    """Rows, with the patterns that are in them by term."""

    def __init__(self, budget: SummaryBudget) -> None:
        self.budget = budget
        self.lists, self.terms = MemberLists(), Terms()
        self.rows = StringRows(self.lists, self.terms, budget)
        self.held: dict[int, RowPattern] = {}

    def add(self, *patterns: RowPattern) -> list[int]:
        added = []
        for pattern in patterns:
            term = self.terms.add(0, 0.0, 0.0, loose=False)
            self.rows.add(term, pattern)
            self.held[term] = pattern
            added.append(term)
        return added

    def remove(self, term: int) -> None:
        self.rows.remove(term, self.held.pop(term))
        self.terms.free(term)

    def found(self, text: str) -> dict[int, bool]:
        lists: list[int] = []
        self.rows.find(text, lists)
        return {
            member >> 1: not (member | each) & LOOSE
            for each in lists
            for member in self.lists.members(each >> 1).tolist()
        }

    def check(self) -> None:
        names, row_of, terms = self.rows.arrays()
        assert list(names) == sorted(set(names))
        assert set(row_of.tolist()) == set(range(len(names)))
        assert sorted(terms.tolist()) == sorted(self.held)
        assert len(names) <= self.budget.rows_max
        for row, term in zip(row_of.tolist(), terms.tolist(), strict=True):
            assert covers(names[row], self.held[term])
        for text in TEXTS:
            needed = {term for term, pattern in self.held.items() if pattern.fits(text)}
            found = self.found(text)
            assert needed <= found.keys() <= self.held.keys()
            assert {term for term, sure in found.items() if sure} <= needed
            if self.budget is EXACT_ENOUGH:
                assert found == dict.fromkeys(needed, True)
        if self.budget is PAPER:
            assert not any(covers(a, b) for a in names for b in names if a != b)


@pytest.mark.parametrize("budget", BUDGETS)
@given(st.lists(patterns, min_size=1, max_size=14), st.lists(st.integers(0, 13), max_size=10))
def test_rows_stand_for_what_their_terms_need(
    budget: SummaryBudget, added: list[RowPattern], removed: list[int]
) -> None:
    table = Table(budget)
    for number, pattern in enumerate(added):
        table.add(pattern)
        table.check()
        for place in removed:
            if place == number and table.held:
                table.remove(sorted(table.held)[place % len(table.held)])
                table.check()
    for term in sorted(table.held):
        table.remove(term)
        table.check()
    assert table.rows.is_empty
    assert len(table.rows) == 0


def test_a_general_row_takes_over_and_gives_way_again() -> None:
    table = Table(PAPER)
    table.add(equal("microsoft"), equal("micronet"), equal("intel"))
    assert len(table.rows) == 3
    general, wider = table.add(pattern_of(("m", "t")), prefix("m"))
    assert table.rows.patterns == [equal("intel"), prefix("m")]
    assert table.found("mouse").keys() == {0, 1, general, wider}
    assert table.found("mouse")[wider]
    table.remove(wider)
    assert table.rows.patterns == [equal("intel"), pattern_of(("m", "t"))]
    assert table.found("mouse") == {}
    table.remove(general)
    assert table.rows.patterns == [equal("intel"), equal("micronet"), equal("microsoft")]
    assert table.found("mat") == {}


def test_a_row_stays_while_another_needs_it() -> None:
    table = Table(PAPER)
    one, other = table.add(prefix("a"), prefix("a"))
    table.add(equal("ab"))
    table.remove(one)
    assert table.rows.patterns == [prefix("a")]
    table.remove(other)
    assert table.rows.patterns == [equal("ab")]


def test_similar_rows_are_joined_under_a_budget_and_come_back() -> None:
    table = Table(SummaryBudget(rows_max=4))
    table.add(equal("abcd"), equal("abce"), equal("xyz"), equal("uvw"))
    (fifth,) = table.add(equal("rst"))
    assert prefix("abc") in table.rows.patterns
    assert table.found("abcd") == {0: False, 1: False}
    for term in [fifth, 3, 2]:
        table.remove(term)
    assert table.rows.patterns == [equal("abcd"), equal("abce")]
    assert table.found("abcd") == {0: True}


def test_a_joined_row_becomes_as_narrow_as_it_can() -> None:
    table = Table(SummaryBudget(rows_max=1))
    table.add(equal("abcd"), equal("abce"), equal("x"))
    assert table.rows.patterns == [ANY_TEXT]
    table.remove(2)
    assert table.rows.patterns == [prefix("abc")]
    table.remove(0)
    assert table.rows.patterns == [equal("abce")]


def test_the_size_of_a_pattern() -> None:
    assert text_bytes(pattern_of(("ab", "é"))) == 4
    assert text_bytes(ANY_TEXT) == 0
