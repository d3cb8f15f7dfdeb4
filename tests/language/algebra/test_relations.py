"""Filter relations: examples from the papers, and properties.

The properties aim events at the bounds of the filters. For conjunctions without patterns a "no" of
covers, a "yes" of overlaps and a "wider" of merge each have to be backed by an event.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import (
    conjunctions,
    events_aimed_at,
    filters,
    nodes,
    predicates,
    telling_values,
    typed_events_aimed_at,
    typed_predicates,
)
from tidegate import Filter, UnresolvedError, parse
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import Node, all_of
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value

Event = dict[str, Value]

exact = conjunctions(predicates(patterns=False)) | conjunctions(typed_predicates(patterns=False))
typed_filters = nodes(typed_predicates()).map(Filter)


def _satisfiable(filter: Filter) -> Filter:
    """A conjunction without those of its predicates that would make it match no event."""
    kept: list[Node] = []
    for predicate in predicates_of(filter.node):
        if not Filter(all_of([*kept, predicate])).never_matches:
            kept.append(predicate)
    return Filter(all_of(kept))


satisfiable = exact.map(_satisfiable)


# -- examples -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("price < 10", "price < 5"),
        ("price < 10", "price < 5 and symbol = 'IBM'"),
        ("price <= 10", "price < 10"),
        ("price < 10", "price <= 9.999999999999998"),
        ("price != 10", "price < 10"),
        ("price != 10", "price in (9, 11)"),
        ("price between 1 and 10", "price in (1, 2.5, 10)"),
        ("x < 9007199254740993", "x <= 9007199254740992"),
        ("x >= 5 and x <= 5", "x = 5.0"),
        ("up != false", "up = true"),
        ("up is not null", "up = true"),
        ("s starts with 'a'", "s starts with 'ab'"),
        ("s ends with 'b'", "s ends with 'ab' and s != 'ab'"),
        ("s contains 'b'", "s ends with 'ab'"),
        ("s != 'a'", "s ends with 'b'"),
        ("s like 'N%SE'", "s like 'NY%SE'"),
        ("s like 'N%SE'", "s starts with 'N' and s ends with 'SE'"),
        ("x < 5 or y < 5", "x < 3 and z = 1"),
        ("x < 5 or x > 7", "x = 1 or x = 9"),
        ("true", "x = 1"),
        ("x = 1", "x < 1 and x > 2"),
        ("at < timestamp '2026-01-02T00:00:00Z'", "at <= timestamp '2026-01-01T23:59:59.999999Z'"),
        ("x not between 1 and 2", "x < 1"),
        ("x < 5 or x >= 5", "x = 7"),
    ],
)
def test_one_covers_the_other(wide: str, narrow: str) -> None:
    assert parse(wide).covers(_parse(narrow))
    assert parse(wide).overlaps(_parse(narrow)) == (not _parse(narrow).never_matches)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("price < 10", "price > 5"),
        ("price < 10", "volume < 10"),
        ("price < 10", "price <= 10"),
        ("x = 1", "x = 'a' or x = 1"),
        ("x is not null", "true"),
        ("s starts with 'ab'", "s ends with 'ab'"),
        ("x != 1", "x is not null"),
        ("x = 1 and y = 1", "x = 1"),
    ],
)
def test_not_both_ways(a: str, b: str) -> None:
    assert not (parse(a).covers(parse(b)) and parse(b).covers(parse(a)))
    assert not parse(a).equals(parse(b))
    assert parse(a).overlaps(parse(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x between 1 and 5", "x >= 1 and x <= 5"),
        ("x in (1, 2)", "x = 2 or x = 1.0"),
        ("not (x = 1 or y = 2)", "x != 1 and y != 2"),
        ("s like 'ab%'", "s starts with 'ab'"),
        ("s like 'N%SE'", "s starts with 'N' and s ends with 'SE'"),
        ("x < 1 or x >= 1", "x <= infinity"),
        ("up in (true, false)", "up >= false"),
        ("false", "x < 1 and x > 2"),
    ],
)
def test_equal_meanings(a: str, b: str) -> None:
    assert _parse(a).equals(_parse(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x < 1", "x >= 1"),
        ("x = 1", "x = true"),
        ("x = 1", "x = '1'"),
        ("s starts with 'a'", "s starts with 'b'"),
        ("s ends with 'a'", "s ends with 'b'"),
        ("s starts with 'a'", "s < 'a'"),
        ("x = 1 and y = 1", "x = 1 and y = 2"),
        ("x > 9007199254740992", "x < 9007199254740993"),
        ("s in ('a', 'b')", "s like '%c'"),
        ("x = 1 or y = 1", "x = 2 and y = 2"),
        ("false", "true"),
    ],
)
def test_no_event_matches_both(a: str, b: str) -> None:
    assert not parse(a).overlaps(parse(b))
    assert str(parse(a).intersect(parse(b))) == "false"


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        ("price < 5", "price between 5 and 9", "price <= 9 (exact)"),
        ("price < 5", "price < 3", "price < 5 (exact)"),
        ("price < 3", "price > 5", "price < 3 or price > 5 (exact)"),
        ("s = 'a'", "s = 'b'", "s in ('a', 'b') (exact)"),
        ("x = 1 and y = 1", "x = 1 and y = 2", "x = 1 and y in (1, 2) (exact)"),
        ("x = 1 and y = 1", "x = 2 and y = 2", "x in (1, 2) and y in (1, 2) (wider)"),
        ("x = 1 and y = 1", "x = 1 and z = 1", "x = 1 (wider)"),
        ("x = 1", "y = 1", "true (wider)"),
        ("x = 1", "true", "true (exact)"),
        ("x = 1", "false", "x = 1 (exact)"),
        ("false", "false", "false (exact)"),
        ("x < 1 or x > 5 and y = 1", "x between 1 and 5", "x >= -infinity (wider)"),
        ("s ends with 'a'", "s ends with 'b'", "s ends with 'a' or s ends with 'b' (exact)"),
    ],
)
def test_merge(a: str, b: str, merged: str) -> None:
    assert str(parse(a).merge(parse(b))) == merged


def test_merge_knows_the_same_strings_said_differently() -> None:
    a = parse("x = 1 and s starts with 'N' and s ends with 'SE'")
    assert a.merge(parse("x = 2 and s like 'N%SE'")).exact


def test_intersect_is_in_normal_form() -> None:
    both = parse("x < 5 or y = 1").intersect(parse("x > 3 and z = 1"))
    assert str(both) == "x > 3 and x < 5 and z = 1 or x > 3 and y = 1 and z = 1"


@pytest.mark.parametrize("relation", ["covers", "equals", "overlaps", "intersect", "merge"])
@pytest.mark.parametrize("text", ["x < :p", "x < t", "x < @load", "x < now()"])
def test_relations_need_values(relation: str, text: str) -> None:
    for a, b in ((parse(text), parse("x < 1")), (parse("x < 1"), parse(text))):
        with pytest.raises(UnresolvedError, match=r"take it at one moment with \.at"):
            getattr(a, relation)(b)


def test_where_the_careful_answer_is_given() -> None:
    # a conjunction that only several disjuncts together cover
    either = parse("x < 5 and y = 1 or y = 2")
    assert not either.covers(parse("x < 3 and y in (1, 2)"))
    assert not either.covers(either.intersect(parse("x < 3")))
    # `like` against `like`: a text that starts and ends with one and the same 'a' is no 'a%a'
    assert not parse("s like '%a_' or s like '%a__%'").covers(parse("s like '%a%' and s like '%b'"))
    # patterns that no text has at once
    assert parse("s like '_'").overlaps(parse("s like '__'"))
    # five rectangles around each other make one that no two of them make
    ring = "x < 2 and y < 1 or x >= 2 and y < 2 or x >= 1 and y >= 2 or x < 1 and y >= 1"
    assert not parse(ring).merge(parse("x >= 1 and x < 2 and y >= 1 and y < 2")).exact


# -- the papers' examples -----------------------------------------------------------------------

SUBSCRIPTION_1 = "exchange like 'N%SE' and symbol = 'OTE' and price < 8.70 and price > 8.30"
SUBSCRIPTION_2 = "symbol starts with 'OT' and price = 8.20 and volume > 130000 and low < 8.05"
EVENT_1 = {
    "exchange": "NYSE",
    "symbol": "OTE",
    "when": datetime(2003, 7, 1, 10, 5, 25, tzinfo=UTC),
    "price": 8.40,
    "volume": 132700,
    "high": 8.80,
    "low": 8.22,
}


def test_summaries_figures_2_and_3() -> None:
    first, second = parse(SUBSCRIPTION_1), parse(SUBSCRIPTION_2)
    assert first.matches(EVENT_1)
    assert not second.matches(EVENT_1)
    assert second.matches(EVENT_1 | {"price": 8.20, "low": 8.0})
    assert not first.covers(second)
    assert not second.covers(first)
    assert not first.overlaps(second)  # for price
    assert str(first.normal_form.to_node()) == (
        "exchange like 'N%SE' and price > 8.3 and price < 8.7 and symbol = 'OTE'"
    )


ALARM = {"what": "alarm", "date": datetime(2001, 8, 1, 2, 40, 3, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("notification", "subscription", "matches"),
    [
        (ALARM, "what = 'alarm'", True),
        (ALARM, "what = 'alarm' and level > 3", False),  # no level
        ({"what": "alarm", "level": 10}, "what = 'alarm' and level > 3 and level < 7", False),
        ({"what": "alarm", "level": 5}, "what = 'alarm' and level > 3 and level < 7", True),
    ],
)
def test_siena_table_of_notifications_and_subscriptions(
    notification: Event, subscription: str, matches: bool
) -> None:
    assert parse(subscription).matches(notification) == matches


FLIGHTS = {
    "from Denver": "orig = 'DEN'",
    "cheap": "price < 500",
    "cheaper": "price < 200",
    "United from Denver": "orig = 'DEN' and airline = 'UA'",
    "cheap United from Denver": "orig = 'DEN' and airline = 'UA' and price < 500",
    "cheaper United to Milan": ("orig = 'DEN' and airline = 'UA' and price < 200 and dest = 'MXP'"),
}


def test_siena_figure_of_the_flights_poset() -> None:
    flights = {name: parse(text) for name, text in FLIGHTS.items()}
    covered = {
        name: {other for other, f in flights.items() if other != name and wide.covers(f)}
        for name, wide in flights.items()
    }
    lowest = "cheaper United to Milan"
    assert covered == {
        "from Denver": {"United from Denver", "cheap United from Denver", lowest},
        "cheap": {"cheaper", "cheap United from Denver", lowest},
        "cheaper": {lowest},
        "United from Denver": {"cheap United from Denver", lowest},
        "cheap United from Denver": {lowest},
        lowest: set(),
    }
    roots = {name for name in flights if not any(name in others for others in covered.values())}
    assert roots == {"from Denver", "cheap"}


def test_siena_figures_of_subscriptions_to_airlines() -> None:
    united, to_denver = parse("airline = 'UA'"), parse("airline = 'UA' and dest = 'DEN'")
    any_airline = parse("airline is not null")
    assert united.covers(to_denver)
    assert any_airline.covers(united)
    assert any_airline.covers(to_denver)
    assert not to_denver.covers(united)
    assert not united.covers(any_airline)
    assert not united.overlaps(parse("airline = 'AZ' and price < 300"))


def test_siena_unsubscription_covers_or_does_nothing() -> None:
    # A subscription is cancelled only if the unsubscription covers it: [price > 300] does not
    # make [price > 200] a subscription for 200 to 300.
    subscription = parse("price > 200")
    assert not parse("price > 300").covers(subscription)
    assert parse("price > 100").covers(subscription)
    assert parse("price > 200").covers(subscription)
    assert parse("price > 200").equals(subscription)


def test_parametric_figure_4_thresholds() -> None:
    threshold = parse("price < :x")
    ten, five, thirty = (threshold.bind(x=value) for value in (10, 5, 30))
    assert ten.covers(five)
    assert not five.covers(ten)
    assert thirty.covers(ten)
    assert thirty.covers(five)
    assert str(ten.merge(five)) == "price < 10 (exact)"  # what is sent on for both
    assert ten.equals(threshold.at({"x": 10}))


GAME = "x >= -3 + t and x <= 3 + t and y >= -2 + t and y <= 2 + t"
PICKUP = {"x": 4, "y": 3, "action": "pickup", "object": "apple"}


@pytest.mark.parametrize(("t", "matches"), [(0, False), (1, True), (2, True), (7, False)])
def test_evolving_figure_1_pickup(t: float, matches: bool) -> None:
    assert parse(GAME).matches(PICKUP, t=t) == matches
    assert parse(GAME).at(t=t).matches(PICKUP) == matches


# -- properties ---------------------------------------------------------------------------------


@given(filters, filters, st.data())
def test_no_answer_is_refuted(a: Filter, b: Filter, data: st.DataObject) -> None:
    check_answers(a, b, data.draw(st.lists(events_aimed_at(a.node, b.node), max_size=6)))


@given(typed_filters, typed_filters, st.data())
def test_no_answer_is_refuted_where_kinds_agree(a: Filter, b: Filter, data: st.DataObject) -> None:
    check_answers(a, b, data.draw(st.lists(typed_events_aimed_at(a.node, b.node), max_size=6)))


def check_answers(a: Filter, b: Filter, events: list[Event]) -> None:
    covers, overlaps = a.covers(b), a.overlaps(b)
    both, merged = a.intersect(b), a.merge(b)
    assert merged.filter.covers(a)
    assert merged.filter.covers(b)
    for event in events:
        in_a, in_b = a.matches(event), b.matches(event)
        assert not covers or in_a or not in_b
        assert overlaps or not (in_a and in_b)
        assert both.matches(event) == (in_a and in_b)
        assert merged.filter.matches(event) or not (in_a or in_b)
        assert not merged.exact or merged.filter.matches(event) == (in_a or in_b)


@given(filters, filters)
def test_laws(a: Filter, b: Filter) -> None:
    assert a.covers(a)
    assert a.equals(a)
    assert Filter(all_of([])).covers(a)
    assert a.overlaps(a) != a.never_matches
    assert a.overlaps(b) == b.overlaps(a)
    assert a.overlaps(b) or a.intersect(b).never_matches


@given(conjunctions() | conjunctions(typed_predicates()), conjunctions(typed_predicates()))
def test_a_conjunction_covers_what_it_shares_with_another(a: Filter, b: Filter) -> None:
    assert a.covers(a.intersect(b))
    assert b.covers(a.intersect(b))


@given(exact, exact, exact)
def test_covering_is_transitive_where_it_is_complete(a: Filter, b: Filter, c: Filter) -> None:
    narrower, narrowest = a.intersect(b), a.intersect(b).intersect(c)
    assert a.covers(narrowest)
    assert narrower.covers(narrowest)
    for x, y, z in product((a, b, c, narrower), repeat=3):
        assert x.covers(z) or not (x.covers(y) and y.covers(z))


@given(exact, exact)
@example(parse("a in ('a', 'a\0')"), parse("a ends with 'b'"))
def test_covers_and_overlaps_are_complete_for_conjunctions(a: Filter, b: Filter) -> None:
    regions = Regions(a, b)
    assert a.never_matches == (not regions.some_event(in_a=True))
    assert a.covers(b) == (not regions.some_event(in_a=False, in_b=True))
    assert a.overlaps(b) == regions.some_event(in_a=True, in_b=True)


@given(nodes(typed_predicates(patterns=False)), nodes(typed_predicates(patterns=False)))
def test_overlaps_is_complete_for_disjunctions_too(a: Node, b: Node) -> None:
    def filters(node: Node) -> list[Filter]:
        return [Filter(all_of(each)) for each in disjuncts(node)]

    assert Filter(a).overlaps(Filter(b)) == any(
        Regions(x, y).some_event(in_a=True, in_b=True) for x, y in product(filters(a), filters(b))
    )


@given(satisfiable, satisfiable)
def test_merge_is_the_smallest_conjunction_and_knows_if_it_is_exact(a: Filter, b: Filter) -> None:
    merged = a.merge(b)
    regions = Regions(a, b)
    wider = any(
        merged.filter.matches(event) and not (a.matches(event) or b.matches(event))
        for event in regions.events()
    )
    assert merged.exact == (not wider)
    if not merged.exact:
        for event in regions.events():
            needed = all(
                event.get(name) is not None and regions.in_either(name, event[name])
                for name in a.attributes
                if name in b.attributes
            )
            assert merged.filter.matches(event) == needed


class Regions:
    """For each attribute, a value from every region into which two conjunctions cut its values."""

    def __init__(self, a: Filter, b: Filter) -> None:
        self._a, self._b = a, b
        self._values = {
            name: self._representatives(name)
            for name in dict.fromkeys([*a.attributes, *b.attributes])
        }

    def _representatives(self, name: str) -> list[Value | None]:
        found: dict[tuple[bool, bool], Value] = {}
        for value in telling_values(self._a.node, self._b.node):
            found.setdefault((_allows(self._a, name, value), _allows(self._b, name, value)), value)
        return [None, *found.values()]

    def events(self) -> Iterator[Event]:
        for values in product(*self._values.values()):
            pairs = zip(self._values, values, strict=True)
            yield {name: value for name, value in pairs if value is not None}

    def some_event(self, in_a: bool | None = None, in_b: bool | None = None) -> bool:
        return any(
            in_a in (None, self._a.matches(event)) and in_b in (None, self._b.matches(event))
            for event in self.events()
        )

    def in_either(self, name: str, value: Value) -> bool:
        return _allows(self._a, name, value) or _allows(self._b, name, value)


def _allows(filter: Filter, name: str, value: Value) -> bool:
    """Whether a conjunction's constraints on one attribute let a value pass."""
    alone = all_of(each for each in predicates_of(filter.node) if each.attribute == name)
    return Filter(alone).matches({name: value})


def _parse(text: str) -> Filter:
    """As parse, without the warning for a filter that never matches."""
    return Filter(parse_filter(text))
