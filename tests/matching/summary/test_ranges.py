from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.summary.budget import EXACT_ENOUGH, PAPER, SummaryBudget
from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.member_lists import MemberLists, Terms
from tidegate.matching.summary.ranges import RangeRows, gaps
from tidegate.matching.summary.tables import ChannelKind

NUMBER = ChannelKind.NUMBER
BUDGETS = [
    EXACT_ENOUGH,
    PAPER,
    SummaryBudget(rows_max=1),
    SummaryBudget(rows_max=4),
    SummaryBudget(bytes_max=100),
    SummaryBudget(rows_max=3, joins_covered=True),
]

GREATEST = 1.7976931348623157e308
whole = st.integers(-4, 12).map(float)
ends = st.one_of(whole, st.sampled_from([-math.inf, math.inf, 2.0**53, GREATEST, -GREATEST]))
intervals = st.tuples(ends, ends).map(lambda pair: (min(pair), max(pair)))
points = whole.map(lambda value: (value, value))
Interval = tuple[float, float]


class Table:
    """Rows, with the intervals that are in them by term."""

    def __init__(self, budget: SummaryBudget, kind: ChannelKind = NUMBER) -> None:
        self.lists, self.terms = MemberLists(), Terms()
        self.rows = RangeRows(kind, self.lists, self.terms, budget)
        self.held: dict[int, Interval] = {}

    def add(self, *intervals: Interval) -> list[int]:
        added = []
        for interval in intervals:
            term = self.terms.add(0, *interval, loose=False)
            self.rows.add(term)
            self.held[term] = interval
            added.append(term)
        return added

    def remove(self, term: int) -> None:
        self.rows.remove(term)
        self.terms.free(term)
        del self.held[term]

    def found(self, value: float) -> dict[int, bool]:
        """The terms that a value finds, with whether they are sure."""
        lists: list[int] = []
        self.rows.find(value, lists)
        members = [m for each in lists for m in self.lists.members(each >> 1).tolist()]
        assert len({member >> 1 for member in members}) == len(members)
        return {member >> 1: not member & LOOSE for member in members}

    def ranges(self) -> list[tuple[float, float, list[int]]]:
        """The rows with their terms."""
        lows, highs, row_of, terms = self.rows.arrays()
        return [
            (low, high, sorted(terms[row_of == row].tolist()))
            for row, (low, high) in enumerate(zip(lows.tolist(), highs.tolist(), strict=True))
        ]

    def check(self, budget: SummaryBudget) -> None:
        lows, highs, row_of, _ = self.rows.arrays()
        assert (lows <= highs).all()
        assert (highs[:-1] < lows[1:]).all()
        assert set(row_of.tolist()) == set(range(len(lows)))
        assert len(self.rows) <= budget.rows_max
        for value in values_around(self.held.values()):
            needed = {term for term, (low, high) in self.held.items() if low <= value <= high}
            found = self.found(value)
            assert needed <= found.keys() <= self.held.keys()
            assert {term for term, sure in found.items() if sure} <= needed
            if budget is EXACT_ENOUGH:
                assert found == dict.fromkeys(needed, True)


def values_around(intervals: Iterable[Interval]) -> list[float]:
    ends = {end for interval in intervals for end in interval} | {0.0}
    near = [math.nextafter(end, to) for end in ends for to in (-math.inf, math.inf)]
    return [*ends, *near, 0.5]


@pytest.mark.parametrize("budget", BUDGETS)
@given(
    st.lists(intervals | points, min_size=1, max_size=14),
    st.lists(st.integers(0, 13), max_size=10),
)
def test_rows_hold_what_their_terms_need(
    budget: SummaryBudget, added: list[Interval], removed: list[int]
) -> None:
    table = Table(budget)
    for number, interval in enumerate(added):
        table.add(interval)
        table.check(budget)
        for place in removed:
            if place == number and table.held:
                table.remove(sorted(table.held)[place % len(table.held)])
                table.check(budget)
    for term in sorted(table.held):
        table.remove(term)
        table.check(budget)
    assert table.rows.is_empty
    assert table.ranges() == []


@pytest.mark.parametrize("budget", [EXACT_ENOUGH, PAPER])
@given(st.lists(intervals | points, max_size=9), st.lists(intervals | points, max_size=9))
def test_what_left_leaves_no_trace(
    budget: SummaryBudget, staying: list[Interval], leaving: list[Interval]
) -> None:
    table, fresh = Table(budget), Table(budget)
    gone = table.add(*leaving)
    kept = table.add(*staying)
    for term in gone:
        table.remove(term)
    expected = fresh.add(*staying)
    renamed = dict(zip(kept, expected, strict=True))
    rows = [(low, high, sorted(renamed[p] for p in terms)) for low, high, terms in table.ranges()]
    assert rows == fresh.ranges()


def test_a_range_is_cut_where_another_begins() -> None:
    table = Table(EXACT_ENOUGH)
    table.add((0.0, 5.0), (3.0, 9.0), (4.0, 4.0))
    below = [math.nextafter(each, -math.inf) for each in (3.0, 4.0)]
    above = [math.nextafter(each, math.inf) for each in (4.0, 5.0)]
    assert table.ranges() == [
        (0.0, below[0], [0]),
        (3.0, below[1], [0, 1]),
        (4.0, 4.0, [0, 1, 2]),
        (above[0], 5.0, [0, 1]),
        (above[1], 9.0, [1]),
    ]


def test_whole_numbers_have_no_gaps_between_them() -> None:
    table = Table(EXACT_ENOUGH, ChannelKind.TIMESTAMP)
    table.add((0.0, 4.0), (5.0, 9.0), (0.0, 9.0))
    assert table.ranges() == [(0.0, 4.0, [0, 2]), (5.0, 9.0, [1, 2])]
    table.remove(0)
    table.remove(1)
    assert table.ranges() == [(0.0, 9.0, [2])]


def test_what_every_value_satisfies_is_in_no_row_but_in_all_of_the_table() -> None:
    table = Table(EXACT_ENOUGH, ChannelKind.BOOLEAN)
    table.add((0.0, 1.0))
    assert (len(table.rows), table.ranges()) == (0, [(0.0, 1.0, [0])])
    table.add((1.0, 1.0))
    assert (len(table.rows), table.ranges()) == (1, [(0.0, 0.0, [0]), (1.0, 1.0, [0, 1])])


def test_section_3_1_of_the_paper() -> None:
    """A constraint within a row joins it; one that overlaps rows makes one of them."""
    table = Table(PAPER)
    table.add((1.0, 5.0), (2.0, 3.0), (8.0, 8.0))
    assert table.ranges() == [(1.0, 5.0, [0, 1]), (8.0, 8.0, [2])]
    assert (table.found(4.0), table.found(2.5)) == ({0: True, 1: False}, {0: True, 1: False})
    (wide,) = table.add((4.0, 9.0))
    assert table.ranges() == [(1.0, 9.0, [0, 1, 2, 3])]
    table.remove(wide)
    assert table.ranges() == [(1.0, 5.0, [0, 1]), (8.0, 8.0, [2])]
    table.remove(0)
    assert table.ranges() == [(2.0, 3.0, [1]), (8.0, 8.0, [2])]


def test_neighbours_are_joined_under_a_budget_and_taken_apart_again() -> None:
    table = Table(SummaryBudget(rows_max=4))
    table.add((0.0, 0.0), (1.0, 1.0), (100.0, 100.0), (200.0, 200.0))
    assert len(table.rows) == 4
    (last,) = table.add((300.0, 300.0))
    assert table.ranges()[0] == (0.0, 1.0, [0, 1])
    assert table.found(0.0) == {0: False, 1: False}
    assert len(table.rows) <= 4
    for term in [last, 3, 2]:
        table.remove(term)
    assert table.ranges() == [(0.0, 0.0, [0]), (1.0, 1.0, [1])]
    assert table.found(0.0) == {0: True}


def test_a_joined_row_shrinks_to_what_is_left() -> None:
    table = Table(SummaryBudget(rows_max=1))
    table.add((0.0, 1.0), (5.0, 6.0), (9.0, 9.0))
    assert table.ranges() == [(0.0, 9.0, [0, 1, 2])]
    table.remove(0)
    assert table.ranges() == [(5.0, 9.0, [1, 2])]
    table.remove(2)
    assert table.ranges() == [(5.0, 6.0, [1])]
    assert table.found(5.5) == {1: True}


def test_wide_ranges_that_overlap_are_not_listed_a_quadratic_number_of_times() -> None:
    table = Table(SummaryBudget(spread_max=8))
    rng = np.random.default_rng(1)
    count = 3000
    for low, width in zip(rng.random(count).tolist(), rng.random(count).tolist(), strict=True):
        table.add((low, low + width))
    listed = sum(len(terms) for _, _, terms in table.ranges())
    assert listed <= max(65_536, 8 * count)
    assert len(table.rows) > 20


def test_rows_without_terms_give_all_of_their_lists_back() -> None:
    table = Table(EXACT_ENOUGH)
    for _ in range(100):
        for term in table.add((1.0, 2.0), (-math.inf, math.inf)):
            table.remove(term)
        assert table.rows.is_empty
        table.rows.free()
        table.rows = RangeRows(NUMBER, table.lists, table.terms, EXACT_ENOUGH)
    assert table.lists.reserved < 10


def test_gaps() -> None:
    lows, highs = gaps(NUMBER, np.array([0.0, 3.0]), np.array([1.0, 9.0]), -math.inf, math.inf)
    assert lows.tolist() == [-math.inf, math.nextafter(1, 2), math.nextafter(9, 10)]
    assert highs.tolist() == [math.nextafter(0, -1), math.nextafter(3, 0), math.inf]
    none = np.zeros(0)
    assert [each.tolist() for each in gaps(NUMBER, none, none, 1.0, 2.0)] == [[1.0], [2.0]]
    full = np.array([-math.inf]), np.array([math.inf])
    assert [each.tolist() for each in gaps(NUMBER, *full, -math.inf, math.inf)] == [[], []]
