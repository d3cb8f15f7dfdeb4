from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import events_aimed_at, nodes, typed_events_aimed_at, typed_predicates
from tidegate.errors import SummaryError, UnresolvedError
from tidegate.language.events import Event
from tidegate.language.filters import Filter, parse
from tidegate.language.values import Value
from tidegate.matching.summary.budget import EXACT_ENOUGH, PAPER, SummaryBudget
from tidegate.matching.summary.ids import IdLayout
from tidegate.matching.summary.index import SummaryIndex
from tidegate.matching.summary.summary import Summary
from tidegate.matching.summary.tables import check_tables, matches

BUDGETS = {
    "exact": EXACT_ENOUGH,
    "paper": PAPER,
    "three rows": SummaryBudget(rows_max=3),
    "one row": SummaryBudget(rows_max=1),
    "few bytes": SummaryBudget(bytes_max=60),
    "three rows as in the paper": SummaryBudget(rows_max=3, joins_covered=True),
}
budgets = pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS.keys())

S1 = "exchange like 'N%SE' and symbol = 'OTE' and price < 8.70 and price > 8.30"
S2 = "symbol starts with 'OT' and price = 8.20 and volume > 130000 and low < 8.05"
FIGURE_2: dict[str, Value] = {
    "exchange": "NYSE",
    "symbol": "OTE",
    "price": 8.40,
    "volume": 132700,
    "high": 8.80,
    "low": 8.22,
}


def summary_of(*texts: str, budget: SummaryBudget = EXACT_ENOUGH) -> Summary:
    summary = Summary(budget)
    for number, text in enumerate(texts):
        summary.add("home", number, parse(text))
    return summary


def found(summary: Summary, event: Mapping[str, Value]) -> list[int]:
    return sorted(number for _, number in summary.matching(Event.of(event)))


def check(summary: Summary, filters: Mapping[int, Filter], event: Mapping[str, Value]) -> None:
    """Everything that matches is found; what is said to be sure matches; all forms agree."""
    matching = {n for n, filter in filters.items() if filter.matches(Event(event))}
    assert matching <= set(found(summary, event))
    entries, sure = summary.find(event)
    assert len(set(entries.tolist())) == len(entries)
    certain = {summary.key(entry)[1] for entry in entries[sure].tolist()}
    assert certain <= matching
    tables = summary.tables()
    check_tables(tables)
    expected = matches(tables, event)
    assert sorted(SummaryIndex(tables).find(event).tolist()) == expected
    assert len(entries) == len(expected)
    again = Summary.of_tables(tables, summary.budget)
    assert len(again.find(event).entries) >= len(expected)


# -- the figures of the paper --------------------------------------------------------------------


def test_example_1_counts_three_attributes_and_two() -> None:
    """S1 is found with a counter of 3; that of S2 is 2, and its mask has 4 attributes."""
    summary = summary_of(S1, S2, budget=PAPER)
    assert found(summary, FIGURE_2) == [0]
    satisfied = {
        name: found(summary_of(S1, S2, budget=PAPER), {name: FIGURE_2[name]}) for name in FIGURE_2
    }
    assert satisfied == dict.fromkeys(FIGURE_2, [])
    counted = [0, 0]
    for name, value in FIGURE_2.items():
        for number in range(2):
            alone = Summary(PAPER)
            for each, text in enumerate((S1, S2)):
                parts = [part for part in text.split(" and ") if part.startswith(name)]
                alone.add("home", each, parse(" and ".join(parts) or "false"))
            counted[number] += number in found(alone, {name: value})
    assert counted == [3, 2]


def test_figures_4_and_5() -> None:
    tables = summary_of(S1, S2, budget=PAPER).tables()
    price = next(table for table in tables.ranges if table.attribute == "price")
    assert [round(low, 6) for low in price.lows.tolist()] == [8.2, 8.3]
    assert [round(high, 6) for high in price.highs.tolist()] == [8.2, 8.7]
    assert price.members.tolist() == [1, 0]
    symbol = next(table for table in tables.strings if table.attribute == "symbol")
    assert [(pattern.kind.name, pattern.parts) for pattern in symbol.patterns] == [
        ("PREFIX", ("OT",))
    ]
    assert symbol.members.tolist() == [0, 1]


# -- what is found -------------------------------------------------------------------------------


@budgets
@given(data=st.data())
def test_never_a_false_negative(budget: SummaryBudget, data: st.DataObject) -> None:
    """Any filters, events at their bounds, changes on the way."""
    run(budget, data, nodes().map(Filter), events_aimed_at)


@budgets
@given(data=st.data())
def test_never_a_false_negative_with_typed_attributes(
    budget: SummaryBudget, data: st.DataObject
) -> None:
    run(budget, data, nodes(typed_predicates()).map(Filter), typed_events_aimed_at)


def run(budget, data, filters, events) -> None:  # type: ignore[no-untyped-def]
    drawn = data.draw(st.lists(filters, min_size=1, max_size=8))
    summary, held = Summary(budget), dict(enumerate(drawn))
    for number, filter in held.items():
        summary.add("home", number, filter)
    event = events(*(each.node for each in drawn))
    for _ in range(data.draw(st.integers(1, 4))):
        check(summary, held, data.draw(event))
        number = data.draw(st.integers(0, len(drawn) - 1))
        if number not in held:
            held[number] = data.draw(st.sampled_from(drawn))
            summary.add("home", number, held[number])
        elif data.draw(st.booleans()):
            held[number] = data.draw(st.sampled_from(drawn))
            summary.replace("home", number, held[number])
        else:
            summary.remove("home", number)
            del held[number]


@given(data=st.data())
def test_without_a_budget_the_tables_depend_on_the_subscriptions_alone(
    data: st.DataObject,
) -> None:
    drawn = data.draw(st.lists(nodes().map(Filter), min_size=1, max_size=8))
    for budget in (EXACT_ENOUGH, PAPER):
        fresh, changed = Summary(budget), Summary(budget)
        leaving = data.draw(st.lists(st.sampled_from(range(len(drawn))), unique=True))
        for number in data.draw(st.permutations(range(len(drawn)))):
            changed.add(str(number), number, drawn[number])
        for number in leaving:
            changed.remove(str(number), number)
        for number, filter in enumerate(drawn):
            if number not in leaving:
                fresh.add(str(number), number, filter)
        assert rows_of(changed) == rows_of(fresh)


def rows_of(summary: Summary) -> object:
    """The tables without the local numbers, which depend on the order."""
    tables = summary.tables()
    return (
        tables.owners,
        tables.attributes,
        [(t.attribute, t.kind, t.lows.tolist(), t.highs.tolist()) for t in tables.ranges],
        [(t.attribute, t.patterns) for t in tables.strings],
        [len(table.members) for table in (*tables.ranges, *tables.strings)],
    )
