from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

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


# -- the figures of the paper --------------------------------------------------------------------


def test_example_1_counts_three_attributes_and_two() -> None:
    """S1 is found with a counter of 3; that of S2 is 2, and its mask has 4 attributes."""
    summary = summary_of(S1, S2, budget=PAPER)
    assert found(summary, FIGURE_2) == [0]
    counted = [0, 0]
    for name, value in FIGURE_2.items():
        for number in range(2):
            alone = Summary(PAPER)
            for each, text in enumerate((S1, S2)):
                terms = [term for term in text.split(" and ") if term.startswith(name)]
                alone.add("home", each, parse(" and ".join(terms) or "false"))
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


def run(
    budget: SummaryBudget,
    data: st.DataObject,
    filters: st.SearchStrategy[Filter],
    events: Callable[..., st.SearchStrategy[dict[str, Value]]],
) -> None:
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
        [len(table.members) for table in tables.all_tables],
    )


# -- subscriptions -------------------------------------------------------------------------------


def test_each_conjunct_is_an_entry() -> None:
    summary = Summary()
    assert summary.add("home", 7, parse("a = 1 and b = 2 or c = 3")) == 2
    assert summary.add("home", 8, parse("a in (1, 2) and b = 2 or a in (1, 2) and b = 3")) == 1
    assert (len(summary), summary.entries) == (2, 3)
    assert found(summary, {"a": 1, "b": 2, "c": 3}) == [7, 8]
    assert found(summary, {"a": 1, "b": 3}) == [8]
    tables = summary.tables()
    assert tables.entry_numbers.tolist() == [0, 1, 2]
    assert sorted(tables.entry_masks[:, 0].tolist()) == [0b011, 0b011, 0b100]


def test_a_filter_that_never_matches_has_no_entries() -> None:
    summary = Summary()
    assert summary.add("home", 0, Filter(parse("x < 1 or y = 2").node)) == 2
    assert summary.add("home", 1, parse("false")) == 0
    assert ("home", 1) in summary
    summary.remove("home", 1)
    assert ("home", 1) not in summary


def test_a_filter_that_always_matches_has_an_empty_mask() -> None:
    summary = summary_of("true", "x = 1")
    assert found(summary, {}) == [0]
    assert found(summary, {"x": 1}) == [0, 1]
    summary.replace("home", 0, parse("x = 2"))
    summary.replace("home", 1, parse("true"))
    assert (found(summary, {}), found(summary, {"x": 2})) == ([1], [0, 1])
    tables = summary.tables()
    assert tables.entry_masks.tolist() == [[1], [0]]
    assert SummaryIndex(tables).matching(Event.of({})) == [("home", 1)]


def test_subscriptions_of_several_owners() -> None:
    summary = Summary()
    for owner in ("b", "a", "c"):
        summary.add(owner, 5, parse("x = 1"))
    summary.add("b", 6, parse("x = 2"))
    summary.remove("c", 5)
    assert summary.matching(Event.of({"x": 1})) == [("b", 5), ("a", 5)]
    tables = summary.tables()
    assert (tables.owners, tables.entry_owners.tolist()) == (("a", "b"), [0, 1, 1])
    assert tables.entry_numbers.tolist() == [0, 0, 1]
    index = SummaryIndex(tables)
    assert index.owners_matching(Event.of({"x": 1})) == {"a", "b"}
    assert index.owners_matching(Event.of({"x": 2})) == {"b"}
    assert len(index) == 3


def test_a_replacement_changes_only_what_differs() -> None:
    summary = summary_of("x > 5 and y > 5 or z = 1", "x > 2")
    before = summary.tables()
    summary.replace("home", 0, parse("x > 5 and y > 7 or z = 1"))
    after = summary.tables()
    assert after.entry_numbers.tolist() == before.entry_numbers.tolist()
    assert [t == u for t, u in zip(before.ranges, after.ranges, strict=True)] == [
        True,
        False,
        True,
    ]
    summary.replace("home", 0, parse("z = 1"))
    assert summary.entries == 2
    assert found(summary, {"z": 1, "x": 3}) == [0, 1]
    assert summary.rows("y") == 0


def test_an_attribute_is_counted_once_however_many_rows_it_satisfies() -> None:
    summary = summary_of("s in ('ab', 'abc') and x = 1", "s contains 'a'", budget=PAPER)
    assert summary.rows("s") == 1
    assert found(summary, {"s": "abc"}) == [1]
    assert found(summary, {"s": "abc", "x": 1}) == [0, 1]


def test_masks_grow_with_the_attributes() -> None:
    summary = Summary()
    texts = [f"a{number} = 1 and common > {number}" for number in range(150)]
    for number, text in enumerate(texts):
        summary.add("home", number, parse(text))
    tables = summary.tables()
    check_tables(tables)
    assert tables.entry_masks.shape == (150, 3)
    event: dict[str, Value] = {"a77": 1, "a140": 1, "common": 100}
    assert found(summary, event) == [77]
    assert SummaryIndex(tables).matching(Event.of(event)) == [("home", 77)]
    summary.replace("home", 77, parse(texts[140]))
    assert found(summary, {"a140": 1, "common": 1000}) == [77, 140]


def test_rounded_values_are_found_and_not_sure() -> None:
    summary = summary_of("x = 9007199254740993", "x > 9007199254740992", "x < 9007199254740993")
    for value in (2**53, 2**53 + 1, float(2**53), 2**53 + 2):
        assert not summary.find({"x": value})[1].any()
    assert found(summary, {"x": 2**53 + 1}) == [0, 1, 2]
    assert found(summary, {"x": 1}) == [2]


def test_an_attribute_that_nobody_names_any_more_gives_its_bit_back() -> None:
    summary = Summary(layout=IdLayout(attributes_max=3))
    summary.add("home", 0, parse("common > 5"))
    for number in range(200):
        text = f"n{number} = 1 and s{number} starts with 'a' or n{number} is not null"
        summary.add("home", 1, parse(text))
        event: dict[str, Value] = {"common": 6, f"n{number}": 1, f"s{number}": "ab"}
        assert found(summary, event) == [0, 1]
        check_tables(summary.tables())
        if number % 2:
            summary.remove("home", 1)
        else:  # while one of the entries keeps what the other gives back
            summary.replace("home", 1, parse(f"common = 1 and n{number} = 1"))
            assert summary.rows(f"s{number}") == 0
            summary.replace("home", 1, parse("common = 1"))
            summary.remove("home", 1)
    assert summary.tables() == summary_of("common > 5").tables()
    assert summary.ids.attributes == {"common": 0}


def test_a_bit_that_was_given_back_is_in_no_old_mask() -> None:
    summary = summary_of("a = 1 and b = 1", "a = 1", "a = 1 and b = 2")
    summary.replace("home", 0, parse("a = 1"))
    summary.remove("home", 2)
    summary.add("home", 3, parse("c = 1 and a = 1"))
    assert found(summary, {"a": 1}) == [0, 1]
    assert found(summary, {"a": 1, "c": 1}) == [0, 1, 3]
    assert summary.tables().attributes == ("a", "c")


# -- errors --------------------------------------------------------------------------------------


def test_what_cannot_be_added_changes_nothing() -> None:
    summary = Summary(layout=IdLayout(brokers_max=1, subscriptions_max=2, attributes_max=2))
    summary.add("home", 0, parse("x = 1"))
    before = summary.tables()
    with pytest.raises(SummaryError, match="subscription 0 of 'home' is in the summary already"):
        summary.add("home", 0, parse("x = 1"))
    with pytest.raises(SummaryError, match="set brokers_max"):
        summary.add("other", 0, parse("x = 1"))
    with pytest.raises(SummaryError, match="set subscriptions_max"):
        summary.add("home", 1, parse("x = 1 or y = 1"))
    with pytest.raises(SummaryError, match="set attributes_max"):
        summary.replace("home", 0, parse("x = 1 and y = 1 and z = 1"))
    with pytest.raises(SummaryError, match="no subscription 1 of 'home'"):
        summary.remove("home", 1)
    with pytest.raises(SummaryError, match="no subscription 0 of 'other'"):
        summary.replace("other", 0, parse("x = 1"))
    with pytest.raises(UnresolvedError):
        summary.add("home", 1, parse("x < :limit"))
    assert summary.tables() == before
    summary.ids.grow(3)
    summary.replace("home", 0, parse("x = 1 and y = 1 and z = 1"))
    assert found(summary, {"x": 1, "y": 1, "z": 1}) == [0]


def test_an_attribute_without_a_row_is_satisfied_by_nothing() -> None:
    """Whoever sends such tables gets what they mean."""
    tables = replace(
        summary_of("x = 1 and y = 1").tables(), ranges=summary_of("x = 1").tables().ranges
    )
    check_tables(tables)
    assert matches(tables, {"x": 1, "y": 1}) == []
    assert SummaryIndex(tables).matching(Event.of({"x": 1, "y": 1})) == []
