from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import (
    conjunctions,
    events_aimed_at,
    nodes,
    predicates,
    telling_values,
    typed_events_aimed_at,
    typed_predicates,
)
from tidegate import Advertisement, Filter, FilterError, parse, parse_advertisement
from tidegate.language.expressions import Environment
from tidegate.language.semantics import holds
from tidegate.language.syntax import And, Node, Operator, Or, Predicate, Truth
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value

Event = dict[str, Value]

SUFFIXES = frozenset([Operator.ENDS_WITH, Operator.NOT_ENDS_WITH])


def advertisement(node: Node) -> Advertisement:
    return parse_advertisement(str(node))


advertisements = nodes().map(advertisement)
typed_advertisements = nodes(typed_predicates()).map(advertisement)
# Several constraints on one attribute are alternatives, and a union of suffixes is not exact.
simple_advertisements = conjunctions(
    predicates(patterns=False, without=SUFFIXES)
    | typed_predicates(patterns=False, without=SUFFIXES)
).map(lambda filter: advertisement(filter.node))


def allows(node: Node, event: Event) -> bool:
    """The definition: some alternative has, for each attribute, a constraint that it satisfies."""
    return any(
        all(
            any(holds(each, {name: value}, Environment()) for each in alternative)
            for name, value in event.items()
        )
        for alternative in alternatives(node)
    )


def alternatives(node: Node) -> list[list[Predicate]]:
    match node:
        case Truth(value):
            return [[]] if value else []
        case Predicate():
            return [[node]]
        case Or(parts):
            return [each for part in parts for each in alternatives(part)]
        case And(parts):
            choices = product(*(alternatives(part) for part in parts))
            return [[each for some in choice for each in some] for choice in choices]


# -- the papers' examples -----------------------------------------------------------------------

LOGINS = "what = 'alarm' and what = 'login' and username is not null"


@pytest.mark.parametrize(
    ("notification", "covered"),
    [
        ({"what": "alarm"}, True),
        ({"what": "alarm", "date": datetime(2001, 8, 1, 2, 40, 3, tzinfo=UTC)}, False),
        ({"what": "login", "username": "carzanig"}, True),
        ({"what": "logout", "username": "carzanig"}, False),
    ],
)
def test_siena_table_of_notifications_and_advertisements(
    notification: Event, covered: bool
) -> None:
    assert parse_advertisement(LOGINS).allows(notification) == covered


@pytest.mark.parametrize(
    ("subscription", "relevant"),
    [
        ("what = 'alarm'", True),
        ("what = 'login' and username = 'rosenblu'", True),
        ("username starts with 'c'", True),
        ("what = 'logout'", False),
        ("what = 'alarm' and date is not null", False),  # no date is ever published
        ("what = 'alarm' and what = 'login'", False),  # as a filter, a conjunction
        ("what = 'logout' or what = 'alarm'", True),
        ("true", True),
        ("false", False),
    ],
)
def test_siena_advertisement_and_relevant_subscriptions(subscription: str, relevant: bool) -> None:
    filter = Filter(parse_advertisement(subscription).node)
    assert parse_advertisement(LOGINS).overlaps(filter) == relevant


# -- how one is read ----------------------------------------------------------------------------


def test_several_constraints_on_an_attribute_are_alternatives() -> None:
    ends = parse_advertisement("price < 10 and price > 90")
    assert ends.allows({"price": 5})
    assert ends.allows({"price": 95})
    assert not ends.allows({"price": 50})


@pytest.mark.parametrize("text", ["price between 10 and 90", "price in (10, 50, 90)"])
def test_between_and_in_are_one_constraint(text: str) -> None:
    assert parse_advertisement(text).allows({"price": 50})
    assert not parse_advertisement(text).allows({"price": 5})
    assert not parse_advertisement(text).allows({"price": 95})
    assert parse_advertisement(f"{text} and price = 5").allows({"price": 5})


def test_no_attribute_has_to_be_there() -> None:
    quotes = parse_advertisement("symbol = 'IBM' and price > 0")
    assert quotes.allows({"symbol": "IBM"})
    assert quotes.allows({"price": 1})
    assert quotes.allows({})
    assert quotes.allows({"symbol": "IBM", "price": None})


def test_or_separates_whole_advertisements() -> None:
    either = parse_advertisement("what = 'alarm' and level > 3 or what = 'login'")
    assert either.allows({"what": "alarm", "level": 5})
    assert either.allows({"what": "login"})
    assert not either.allows({"what": "login", "level": 5})


def test_nothing_and_the_empty_event() -> None:
    assert not parse_advertisement("false").allows({})
    assert parse_advertisement("true").allows({})
    assert not parse_advertisement("true").allows({"price": 1})


@pytest.mark.parametrize("value", [":limit", "t", "now()", "@load", "1 + t"])
def test_it_is_made_of_constants(value: str) -> None:
    with pytest.raises(FilterError, match="an advertisement is made of constants"):
        parse_advertisement(f"price < {value}")


def test_it_prints_as_it_was_written() -> None:
    assert str(parse_advertisement(LOGINS)) == LOGINS


# -- how it relates -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (LOGINS, "what = 'alarm'"),
        (LOGINS, "what in ('alarm', 'login') and username = 'carzanig'"),
        ("price > 0", "price between 1 and 2 and price > 5"),
        ("price < 10 and price >= 10", "price > 5"),
        ("x = 1 and y = 1 or z = 1", "x = 1 or z = 1"),
        ("s contains 'b' and s starts with 'a'", "s ends with 'b' and s = 'a'"),
        ("x = 1", "x = 1 and y between 2 and 1"),  # which no y is
        ("x = 1", "false"),
        ("x = 1", "true"),
        ("x is not null", "x = 1 and x = 'a' and x = true"),
    ],
)
def test_one_covers_the_other(wide: str, narrow: str) -> None:
    a, b = parse_advertisement(wide), parse_advertisement(narrow)
    assert a.covers(b)
    assert a.equals(b) == b.covers(a)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("x = 1", "y = 1"),
        ("x = 1", "x = 1 and y = 1"),  # more attributes allow more events
        ("x = 1 and y = 1", "x = 1 and y = 2"),
        ("x = 1 and y = 1", "x = 1 or y = 1"),
        ("x = 1", "x = 1 and x = 2"),
    ],
)
def test_one_does_not_cover_the_other(a: str, b: str) -> None:
    first, second = parse_advertisement(a), parse_advertisement(b)
    assert not (first.covers(second) and second.covers(first))
    assert not first.equals(second)


def test_where_the_careful_answer_is_given() -> None:
    # together the two constraints allow every string, but neither does alone
    either = parse_advertisement("s ends with 'b' and s not ends with 'b'")
    assert not either.covers(parse_advertisement("s >= ''"))
    # an alternative that only several others together cover
    halves = parse_advertisement("x < 5 and y = 1 or x >= 5 and y = 1")
    assert not halves.covers(parse_advertisement("x = 4 and x = 6 and y = 1"))


# -- properties ---------------------------------------------------------------------------------


@given(advertisements, st.data())
def test_an_event_is_within_as_the_definition_says(
    advertisement: Advertisement, data: st.DataObject
) -> None:
    for event in data.draw(st.lists(events_aimed_at(advertisement.node), max_size=6)):
        assert advertisement.allows(event) == allows(advertisement.node, event)


@given(typed_advertisements, typed_advertisements, st.data())
def test_covers_is_never_refuted(a: Advertisement, b: Advertisement, data: st.DataObject) -> None:
    assert a.covers(a)
    covers = a.covers(b)
    for event in data.draw(st.lists(typed_events_aimed_at(a.node, b.node), max_size=6)):
        assert not covers or a.allows(event) or not b.allows(event)


@given(typed_advertisements, nodes(typed_predicates()).map(Filter), st.data())
def test_overlaps_is_never_refuted(a: Advertisement, f: Filter, data: st.DataObject) -> None:
    if not a.overlaps(f):
        for event in data.draw(st.lists(typed_events_aimed_at(a.node, f.node), max_size=6)):
            assert not (a.allows(event) and f.matches(event))


@given(simple_advertisements, simple_advertisements)
def test_covers_is_complete_for_one_alternative(a: Advertisement, b: Advertisement) -> None:
    # An event of one attribute is enough: where b allows a value that a does not.
    refuted = any(
        b.allows({name: value}) and not a.allows({name: value})
        for name in {each.attribute for each in predicates_of(b.node)}
        for value in telling_values(a.node, b.node)
    )
    assert a.covers(b) == (not refuted)


@given(
    conjunctions(predicates(patterns=False)).map(lambda filter: advertisement(filter.node)),
    conjunctions(predicates(patterns=False)),
)
@example(parse_advertisement("a starts with 'a' and a ends with 'b'"), parse("a = 'cb'"))
def test_overlaps_is_complete_for_conjunctions(a: Advertisement, f: Filter) -> None:
    names = {each.attribute for each in predicates_of(f.node)}

    def shared(name: str, value: Value) -> bool:
        alone = [each for each in predicates_of(f.node) if each.attribute == name]
        return a.allows({name: value}) and all(
            holds(each, {name: value}, Environment()) for each in alone
        )

    values = telling_values(a.node, f.node)
    assert a.overlaps(f) == all(any(shared(name, value) for value in values) for name in names)
