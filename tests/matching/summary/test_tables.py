from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from support.summary_tables import paper_tables, summary_tables, varied_tables
from tidegate.errors import SummaryError
from tidegate.language.values import Value
from tidegate.matching.summary.tables import (
    NO_ENTRIES,
    ChannelKind,
    RowKind,
    RowPattern,
    SummaryTables,
    attributes_of,
    channel_value,
    check_tables,
    mask_words,
    matches,
)

EVENT: dict[str, Value] = {
    "exchange": "NYSE", "symbol": "OTE", "when": datetime(2003, 7, 1, 9, 5, 25, tzinfo=UTC),
    "price": 8.40, "volume": 132700, "high": 8.80, "low": 8.22,
}  # fmt: skip


def test_example_1_of_the_paper_tables() -> None:
    check_tables(paper_tables())
    assert matches(paper_tables(), EVENT) == [0]
    assert matches(paper_tables(), {**EVENT, "price": 8.20, "low": 8.04}) == [1]
    assert matches(paper_tables(), {**EVENT, "price": 8.30}) == []
    assert matches(paper_tables(), {**EVENT, "symbol": "IBM"}) == []
    assert attributes_of(paper_tables(), 0) == ("exchange", "price", "symbol")


@pytest.mark.parametrize(
    ("kind", "parts", "yes", "no"),
    [
        (RowKind.ANY, [], "", None),
        (RowKind.EQUAL, ["ab"], "ab", "abc"),
        (RowKind.PREFIX, ["ab"], "abc", "a"),
        (RowKind.SUFFIX, ["ab"], "cab", "abc"),
        (RowKind.CONTAINS, ["ab"], "cabc", "a-b"),
        (RowKind.LIKE, ["a", "b"], "ab", "aba"),
        (RowKind.LIKE, ["a", "b", "c"], "axbxc", "ac"),
        (RowKind.LIKE, ["a", "a"], "aa", "a"),
        (RowKind.LIKE, ["", "ab", "ab", ""], "xabab", "aab"),
        (RowKind.LIKE, ["a"], "a", "aa"),
    ],
)
def test_a_pattern_fits(kind: RowKind, parts: list[str], yes: str, no: str | None) -> None:
    pattern = RowPattern(kind, tuple(parts))
    assert pattern.fits(yes)
    assert no is None or not pattern.fits(no)


def test_values_of_another_kind_satisfy_nothing() -> None:
    for value in (True, "8.4", datetime(2003, 7, 1, tzinfo=UTC), float("nan")):
        assert matches(paper_tables(), {**EVENT, "price": value}) == []
    assert channel_value(1, ChannelKind.BOOLEAN) is None
    assert channel_value(datetime(1970, 1, 1, tzinfo=UTC), ChannelKind.TIMESTAMP) == 0
    assert channel_value(0, ChannelKind.TIMESTAMP) is None
    assert channel_value(None, ChannelKind.NUMBER) is None


def test_an_empty_mask_matches_everything_and_one_without_rows_nothing() -> None:
    tables = replace(
        paper_tables(), ranges=(), strings=(), entry_masks=np.array([[0], [1]], np.uint64)
    )
    check_tables(tables)
    assert matches(tables, {}) == [0]
    assert matches(tables, EVENT) == [0]


@given(summary_tables())
def test_generated_tables_are_valid_and_equal_to_themselves(tables: SummaryTables) -> None:
    check_tables(tables)
    assert tables == replace(tables)
    assert (tables == NO_ENTRIES) == (not tables.owners and not tables.attributes)


def test_tables_of_different_contents_differ() -> None:
    assert paper_tables() == paper_tables()
    assert paper_tables() != replace(paper_tables(), owners=("B",))
    assert paper_tables() != replace(paper_tables(), entry_numbers=np.array([1, 3]))
    assert paper_tables() != replace(paper_tables(), entry_numbers=np.array([1, 2], np.int32))
    assert paper_tables().ranges[0] != paper_tables().strings[0]


def test_tables_with_something_of_everything() -> None:
    check_tables(varied_tables())
    assert matches(varied_tables(), {"price": 10, "symbol": "IBM", "x065": 3}) == [2, 3]
    assert matches(varied_tables(), {"price": 9.5, "symbol": "axc", "open": False}) == [1, 3]
    assert matches(varied_tables(), {"price": 10.3, "symbol": "ab"}) == [3]
    assert matches(varied_tables(), {"price": 31 / 3, "symbol": "ab"}) == [3, 4]


def test_how_many_words_a_mask_has() -> None:
    assert [mask_words(count) for count in (0, 1, 64, 65, 128, 129)] == [1, 1, 1, 2, 2, 3]


def price(**changes: Any) -> SummaryTables:
    low, middle, volume = paper_tables().ranges
    return replace(paper_tables(), ranges=(low, replace(middle, **changes), volume))


def symbol(**changes: Any) -> SummaryTables:
    exchange, last = paper_tables().strings
    return replace(paper_tables(), strings=(exchange, replace(last, **changes)))


EQUAL_A, EQUAL_B = RowPattern(RowKind.EQUAL, ("a",)), RowPattern(RowKind.EQUAL, ("b",))

BROKEN: list[tuple[str, Callable[[], SummaryTables]]] = [
    ("an owner is empty", lambda: replace(paper_tables(), owners=("",))),
    ("an owner is not valid", lambda: replace(paper_tables(), owners=("\ud800",))),
    ("owners are not in", lambda: replace(paper_tables(), owners=("b", "a"))),
    ("attributes are not in", lambda: replace(paper_tables(), attributes=("a", "a"))),
    ("of another type", lambda: replace(paper_tables(), entry_numbers=np.array([1.0, 2.0]))),
    ("have the shape", lambda: replace(paper_tables(), entry_masks=np.zeros((2, 2), np.uint64))),
    ("differ in number", lambda: replace(paper_tables(), entry_numbers=np.array([1]))),
    ("has no such owner", lambda: replace(paper_tables(), entry_owners=np.array([0, 1], np.int32))),
    (
        "has no such owner",
        lambda: replace(paper_tables(), entry_owners=np.array([-1, 0], np.int32)),
    ),
    ("number is negative", lambda: replace(paper_tables(), entry_numbers=np.array([-1, 2]))),
    ("entries are not in", lambda: replace(paper_tables(), entry_numbers=np.array([2, 2]))),
    ("bit of no", lambda: replace(paper_tables(), entry_masks=np.array([[13], [62]], np.uint64))),
    ("range tables are", lambda: replace(paper_tables(), ranges=paper_tables().ranges[::-1])),
    ("string tables are", lambda: replace(paper_tables(), strings=paper_tables().strings * 2)),
    ("not of an attribute", lambda: symbol(attribute="symbols")),
    ("range table of strings", lambda: price(kind=ChannelKind.STRING)),
    ("no boolean", lambda: price(kind=ChannelKind.BOOLEAN)),
    ("not float64", lambda: price(lows=np.array([8, 9]))),
    ("lacks the bound", lambda: price(lows=np.array([8.0]))),
    ("lacks the start", lambda: price(starts=np.array([0, 2]))),
    ("ends before it", lambda: price(lows=np.array([8.3, 8.4]))),
    ("NaN", lambda: price(highs=np.array([8.2, np.nan]))),
    ("overlap", lambda: price(highs=np.array([8.4, 8.5]))),
    ("starts or members", lambda: price(members=np.array([1, 0]))),
    ("beside its members", lambda: price(starts=np.array([0, 1, 3]))),
    ("without members", lambda: price(starts=np.array([0, 0, 2]))),
    ("is no entry", lambda: price(members=np.array([1, 2], np.int32))),
    ("is no entry", lambda: price(members=np.array([-1, 1], np.int32))),
    (
        "mask lacks it",
        lambda: replace(paper_tables(), entry_masks=np.array([[9], [30]], np.uint64)),
    ),
    ("EQUAL of 2 parts", lambda: symbol(patterns=(RowPattern(RowKind.EQUAL, ("a", "b")),))),
    ("ANY of 1 parts", lambda: symbol(patterns=(RowPattern(RowKind.ANY, ("a",)),))),
    ("LIKE of 0 parts", lambda: symbol(patterns=(RowPattern(RowKind.LIKE, ()),))),
    ("text that is not", lambda: symbol(patterns=(RowPattern(RowKind.EQUAL, ("\udfff",)),))),
    ("one twice", lambda: symbol(patterns=(EQUAL_B, EQUAL_A))),
    ("lacks the start", lambda: symbol(patterns=(EQUAL_A, EQUAL_B))),
    ("not ascending", lambda: symbol(members=np.array([1, 0], np.int32))),
    ("no rows", lambda: symbol(patterns=(), starts=np.array([0]), members=np.zeros(0, np.int32))),
]


@pytest.mark.parametrize(("complaint", "broken"), BROKEN)
def test_broken_tables_are_refused(complaint: str, broken: Callable[[], SummaryTables]) -> None:
    with pytest.raises(SummaryError, match=complaint):
        check_tables(broken())
