from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import nodes
from tidegate.language.expressions import Constant, Expression, ParameterRef, Slot
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import (
    COMPLEMENT,
    RESERVED,
    And,
    Node,
    Operator,
    Or,
    Predicate,
    Truth,
    all_of,
    any_of,
    expression_leaves,
    format_attribute,
    map_leaves,
    map_predicates,
    predicates,
)

A, B, C = (Predicate(name, Operator.PRESENT) for name in "abc")
YES, NO = Truth(True), Truth(False)


def test_conjunctions_are_flat_and_hold_nothing_idle() -> None:
    assert all_of([]) == YES
    assert all_of([A]) == A
    assert all_of([A, B]) == And((A, B))
    assert all_of([And((A, B)), C]) == And((A, B, C))
    assert all_of([YES, A, YES]) == A
    assert all_of([A, NO, B]) == NO
    assert all_of([Or((A, B)), C]) == And((Or((A, B)), C))


def test_disjunctions_are_flat_and_hold_nothing_idle() -> None:
    assert any_of([]) == NO
    assert any_of([A]) == A
    assert any_of([A, B]) == Or((A, B))
    assert any_of([A, Or((B, C))]) == Or((A, B, C))
    assert any_of([NO, A, NO]) == A
    assert any_of([A, YES, B]) == YES
    assert any_of([And((A, B)), C]) == Or((And((A, B)), C))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("price", "price"),
        ("quote.price", "quote.price"),
        ("_x1", "_x1"),
        ("größe", "größe"),
        ("t", "t"),
        ("timestamp", "timestamp"),
        ("content-type", "`content-type`"),
        ("1st", "`1st`"),
        ("a.1", "`a.1`"),
        ("a..b", "`a..b`"),
        (".a", "`.a`"),
        ("a ", "`a `"),
        ("", "``"),
        ("a`b", "`a``b`"),
        ("and", "`and`"),
        ("LIKE", "`LIKE`"),
        ("within", "`within`"),
        ("and.more", "and.more"),
    ],
)
def test_names_stand_in_backticks_where_they_must(name: str, text: str) -> None:
    assert format_attribute(name) == text
    if name:
        assert parse_filter(f"{text} = 1") == Predicate(name, Operator.EQUAL, (Constant(1),))


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8))
def test_any_name_reads_back_the_same(name: str) -> None:
    predicate = Predicate(name, Operator.PRESENT)
    assert parse_filter(str(predicate)) == predicate


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_read_back_the_same(word: str) -> None:
    predicate = Predicate(word.upper(), Operator.PRESENT)
    assert parse_filter(str(predicate)) == predicate


def test_complements_come_in_pairs() -> None:
    assert set(COMPLEMENT) == set(Operator) - {Operator.PRESENT}
    assert all(COMPLEMENT[COMPLEMENT[each]] is each for each in COMPLEMENT)


def test_printing() -> None:
    assert str(And((Or((A, B)), C))) == "(a is not null or b is not null) and c is not null"
    assert str(Or((And((A, B)), C))) == "a is not null and b is not null or c is not null"
    between = Predicate("a", Operator.NOT_BETWEEN, (Constant(1), ParameterRef("p")))
    assert str(between) == "a not between 1 and :p"
    assert str(Predicate("a", Operator.IN, (Constant("x"), Slot(1)))) == "a in ('x', ?)"
    assert (str(YES), str(NO)) == ("true", "false")


@given(nodes())
def test_maps_that_change_nothing(node: Node) -> None:
    assert map_predicates(node, lambda each: each) == node
    assert map_leaves(node, lambda leaf: leaf) == node
    assert len(list(predicates(node))) == str(node).count("null") + sum(
        each.operator is not Operator.PRESENT for each in predicates(node)
    )


@given(nodes())
def test_leaves_are_mapped_in_the_order_of_the_text(node: Node) -> None:
    seen: list[Expression] = []

    def note(leaf: Expression) -> Expression:
        seen.append(leaf)
        return Slot(len(seen))

    mapped = map_leaves(node, note)
    assert seen == list(expression_leaves(node))
    assert list(expression_leaves(mapped)) == [Slot(i + 1) for i in range(len(seen))]


def test_a_map_to_false_takes_the_conjunction_with_it() -> None:
    node = Or((And((A, B)), C))
    assert map_predicates(node, lambda each: NO if each == A else each) == C
    assert map_predicates(node, lambda each: YES if each == A else each) == Or((B, C))
