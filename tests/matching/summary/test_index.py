from __future__ import annotations

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import NO_ENTRIES, matches

TEXTS = [
    "x > 5 and s starts with 'ab'",
    "x between 2 and 9 or s in ('a', 'abc')",
    "x is not null",
    "b = true and s contains 'b'",
    "true",
]
EVENTS: list[dict[str, object]] = [
    {},
    {"x": 6, "s": "abc"},
    {"x": True, "s": "abc", "b": True},
    {"x": 3.5, "s": "b", "b": 1},
    {"x": "a", "s": "a"},
    {"other": 1},
]


def test_finds_what_the_tables_mean() -> None:
    """The property tests of `test_summary.py` say the same of generated filters."""
    summary = Summary()
    for number, text in enumerate(TEXTS):
        summary.add("ab"[number % 2], number, parse(text))
    tables = summary.tables()
    index = SummaryIndex(tables)
    assert len(index) == len(tables.entry_owners) == 6
    for each in EVENTS:
        event = Event.of(each)
        expected = matches(tables, event.attributes)
        assert sorted(index.find(event.attributes).tolist()) == expected
        ids = [
            (tables.owners[tables.entry_owners[entry]], int(tables.entry_numbers[entry]))
            for entry in expected
        ]
        assert sorted(index.matching(event)) == ids
        assert index.owners_matching(event) == {owner for owner, _ in ids}


def test_the_summary_of_nobody() -> None:
    index = SummaryIndex(NO_ENTRIES)
    assert len(index) == 0
    assert index.owners_matching(Event.of({"x": 1})) == set()
