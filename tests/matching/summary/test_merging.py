from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.summary_tables import aimed_events, range_table, string_table, summary_tables
from tidegate.errors import SummaryError
from tidegate.language.values import Value
from tidegate.matching.summary.merging import (
    Pairs,
    key_bounds,
    merge,
    restrict,
    row_keys,
    spread,
    without,
)
from tidegate.matching.summary.tables import (
    NO_ENTRIES,
    ChannelKind,
    RowKind,
    RowPattern,
    SummaryTables,
    check_tables,
    matches,
)

GROUPS = [["a", "c", "z"], ["b", "d"], ["aa", "y"]]
some_tables = st.tuples(*(summary_tables(group) for group in GROUPS))

Id = tuple[str, int]


def ids(tables: SummaryTables, event: dict[str, Value]) -> list[Id]:
    """The (owner, number) of the entries that an event matches."""
    owners, numbers = tables.entry_owners, tables.entry_numbers
    return [(tables.owners[owners[i]], int(numbers[i])) for i in matches(tables, event)]


def prices(owner: str, rows: list[tuple[float, float, list[int]]]) -> SummaryTables:
    """Entries of one owner with rows of one table."""
    count = 1 + max(max(members) for _, _, members in rows)
    return SummaryTables(
        (owner,),
        ("price",),
        np.zeros(count, np.int32),
        np.arange(count),
        np.ones((count, 1), np.uint64),
        (range_table("price", ChannelKind.NUMBER, *rows),),
        (),
    )


def rows_of(tables: SummaryTables) -> list[tuple[float, float, list[int]]]:
    (table,) = tables.ranges
    starts = table.starts.tolist()
    return [
        (low, high, table.members[starts[row] : starts[row + 1]].tolist())
        for row, (low, high) in enumerate(zip(table.lows, table.highs, strict=True))
    ]


@given(some_tables, st.data())
def test_an_event_matches_what_it_matches_in_each(
    tables: tuple[SummaryTables, ...], data: st.DataObject
) -> None:
    merged = merge(tables)
    check_tables(merged)
    for event in data.draw(st.lists(aimed_events(*tables), min_size=3, max_size=3)):
        assert ids(merged, event) == sorted(each for t in tables for each in ids(t, event))


@given(some_tables)
def test_the_order_of_merging_makes_no_difference(tables: tuple[SummaryTables, ...]) -> None:
    merged = merge(tables)
    for order in permutations(tables):
        assert merge(order) == merged
        assert merge([merge(order[:2]), order[2]]) == merged


@given(some_tables, st.sets(st.sampled_from([name for group in GROUPS for name in group])))
def test_a_summary_is_the_merge_of_its_parts(
    tables: tuple[SummaryTables, ...], owners: set[str]
) -> None:
    merged = merge(tables)
    chosen, others = restrict(merged, owners), without(merged, owners)
    check_tables(chosen)
    check_tables(others)
    assert set(chosen.owners) == set(merged.owners) & owners
    assert set(others.owners) == set(merged.owners) - owners
    both = merge([chosen, others])
    assert restrict(both, merged.owners) == restrict(merged, merged.owners)


@given(some_tables, st.data())
def test_what_is_left_matches_as_before(
    tables: tuple[SummaryTables, ...], data: st.DataObject
) -> None:
    merged = merge(tables)
    others = without(merged, GROUPS[0])
    for event in data.draw(st.lists(aimed_events(*tables), min_size=3, max_size=3)):
        assert ids(others, event) == [each for each in ids(merged, event) if each[0] not in "acz"]


def test_a_range_is_cut_by_an_equality_of_another() -> None:
    merged = merge([prices("a", [(1, 3, [0])]), prices("b", [(2, 2, [0]), (5, 5, [0])])])
    before, after = np.nextafter(2, 0), np.nextafter(2, 3)
    assert rows_of(merged) == [
        (1, before, [0]),
        (2, 2, [0, 1]),
        (after, 3, [0]),
        (5, 5, [1]),
    ]
    assert rows_of(without(merged, ["b"])) == [(1, 3, [0])]


def test_ranges_to_infinity_and_points_at_it() -> None:
    inf = np.inf
    merged = merge([prices("a", [(-inf, inf, [0])]), prices("b", [(-inf, -inf, [0])])])
    assert rows_of(merged) == [(-inf, -inf, [0, 1]), (np.nextafter(-inf, 0), inf, [0])]
    merged = merge([prices("a", [(5, inf, [0])]), prices("b", [(inf, inf, [0])])])
    assert rows_of(merged) == [(5, np.nextafter(inf, 0), [0]), (inf, inf, [0, 1])]


def test_booleans_are_cut_between_false_and_true() -> None:
    def flags(owner: str, low: float, high: float) -> SummaryTables:
        one = np.zeros(1, np.int32)
        table = range_table("b", ChannelKind.BOOLEAN, (low, high, [0]))
        mask = np.ones((1, 1), np.uint64)
        return SummaryTables((owner,), ("b",), one, np.array([7]), mask, (table,), ())

    merged = merge([flags("a", 0, 1), flags("b", 1, 1)])
    check_tables(merged)
    assert rows_of(merged) == [(0, 0, [0]), (1, 1, [0, 1])]
    assert rows_of(without(merged, ["b"])) == [(0, 1, [0])]


def test_equal_string_rows_are_one() -> None:
    def symbols(owner: str, *names: str) -> SummaryTables:
        table = string_table("s", *((RowPattern(RowKind.EQUAL, (each,)), [0]) for each in names))
        mask = np.ones((1, 1), np.uint64)
        return SummaryTables((owner,), ("s",), np.zeros(1, np.int32), np.array([7]), mask,
                             (), (table,))  # fmt: skip

    merged = merge([symbols("a", "IBM", "OTE"), symbols("b", "OTE", "T")])
    (table,) = merged.strings
    assert [pattern.parts for pattern in table.patterns] == [("IBM",), ("OTE",), ("T",)]
    assert (table.starts.tolist(), table.members.tolist()) == ([0, 1, 3, 4], [0, 0, 1, 1])


def test_an_owner_is_in_one_summary_only() -> None:
    with pytest.raises(SummaryError, match="two of the summaries to merge have entries of 'a'"):
        merge([prices("a", [(1, 2, [0])]), prices("a", [(3, 4, [0])])])


def test_merging_nothing_and_restricting_to_nobody() -> None:
    assert merge([]) == NO_ENTRIES
    assert merge([NO_ENTRIES, NO_ENTRIES]) == NO_ENTRIES
    assert restrict(prices("a", [(1, 2, [0])]), ["b"]) == NO_ENTRIES
    assert merge([prices("a", [(1, 2, [0])])]) == prices("a", [(1, 2, [0])])


@given(st.lists(st.floats(allow_nan=False), min_size=2))
def test_keys_have_the_order_of_the_bounds(drawn: list[float]) -> None:
    array = np.array(drawn)
    keys = row_keys(array, ChannelKind.NUMBER)
    assert np.array_equal(key_bounds(keys, ChannelKind.NUMBER), array)
    assert np.array_equal(keys[:-1] < keys[1:], array[:-1] < array[1:])
    finite = array[array < np.inf]
    next_keys = row_keys(finite, ChannelKind.NUMBER) + 1
    after = np.nextafter(finite, np.inf)
    assert np.array_equal(key_bounds(next_keys, ChannelKind.NUMBER), after)


def test_empty_pairs_and_spreads() -> None:
    none = np.zeros(0, np.int64)
    assert [array.tolist() for array in Pairs(none, 0).rows()] == [[], [0], []]
    assert spread(none, none).tolist() == []
