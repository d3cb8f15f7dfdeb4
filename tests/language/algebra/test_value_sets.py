from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import predicates, telling_values
from tidegate.language.algebra.value_sets import ANYTHING, NOTHING, ValueSet, union
from tidegate.language.expressions import Constant
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import Value

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)

conjunctions = st.lists(predicates(), min_size=1, max_size=3)
exact_conjunctions = st.lists(
    predicates(patterns=False, without=frozenset([Operator.NOT_BETWEEN])),
    min_size=1,
    max_size=3,
)


def operands_of(predicate: Predicate) -> list[Value | None]:
    return [each.value for each in predicate.operands if isinstance(each, Constant)]


def set_of(predicate: Predicate) -> ValueSet:
    return ValueSet.of(predicate.operator, operands_of(predicate))


def intersection(constraints: list[Predicate]) -> ValueSet:
    first, *rest = map(set_of, constraints)
    return first.intersect(*rest)


def in_all(value: Value, constraints: list[Predicate]) -> bool:
    return all(satisfies(value, each.operator, operands_of(each)) for each in constraints)


@given(predicates())
def test_a_set_holds_what_satisfies_its_constraint(predicate: Predicate) -> None:
    values = set_of(predicate)
    for value in telling_values(predicate):
        assert values.contains(value) == in_all(value, [predicate])


@pytest.mark.parametrize("operator", [each for each in Operator if each is not Operator.PRESENT])
def test_an_undefined_operand_satisfies_nothing(operator: Operator) -> None:
    count = 2 if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN) else 1
    assert ValueSet.of(operator, [None] * count) == NOTHING


def test_what_an_undefined_operand_leaves_of_a_list() -> None:
    assert ValueSet.of(Operator.IN, [1, None]) == ValueSet.of(Operator.EQUAL, [1])
    assert ValueSet.of(Operator.NOT_IN, [1, None]) == NOTHING
    assert ValueSet.of(Operator.NOT_BETWEEN, [1, None]) == ValueSet.of(Operator.LESS, [1])


def test_kinds_do_not_mix() -> None:
    assert ValueSet.of(Operator.NOT_IN, [1, "a"]) == NOTHING
    assert ValueSet.of(Operator.BETWEEN, [1, "a"]) == NOTHING
    assert ValueSet.of(Operator.LIKE, [5]) == NOTHING
    mixed = ValueSet.of(Operator.IN, [1, "a", True, NOON])
    assert [mixed.contains(value) for value in (1.0, "a", True, NOON)] == [True] * 4
    assert not any(mixed.contains(value) for value in (0, False, "", "1"))


def test_a_bad_pattern_is_satisfied_by_nothing() -> None:
    assert ValueSet.of(Operator.LIKE, ["a\\b"]) == NOTHING
    assert ValueSet.of(Operator.NOT_LIKE, ["a\\b"]) == NOTHING


def test_booleans_are_a_finite_set() -> None:
    assert ValueSet.of(Operator.NOT_IN, [True, False]) == NOTHING
    assert ValueSet.of(Operator.NOT_EQUAL, [True]) == ValueSet.of(Operator.EQUAL, [False])
    assert ValueSet.of(Operator.GREATER, [False]) == ValueSet.of(Operator.IN, [True])


@given(conjunctions, conjunctions)
def test_intersect_and_union_are_exact(a: list[Predicate], b: list[Predicate]) -> None:
    both, either = intersection(a + b), intersection(a).union(intersection(b))
    assert intersection(a).intersect(ANYTHING).equals(intersection(a))
    for value in telling_values(*a, *b):
        assert both.contains(value) == (in_all(value, a) and in_all(value, b))
        assert either.contains(value) == (in_all(value, a) or in_all(value, b))


@given(conjunctions, conjunctions)
def test_within_and_meets_are_never_refuted(a: list[Predicate], b: list[Predicate]) -> None:
    left, right = intersection(a), intersection(b)
    within, meets = left.within(right), left.meets(right)
    assert left.equals(left)
    for value in telling_values(*a, *b):
        if in_all(value, a):
            assert not left.is_empty
            assert not within or in_all(value, b)
            assert meets or not in_all(value, b)


@given(exact_conjunctions, exact_conjunctions)
@example(
    [Predicate("a", Operator.IN, (Constant("a"), Constant("a\0")))],
    [Predicate("a", Operator.ENDS_WITH, (Constant("b"),))],
)
def test_within_and_meets_are_exact_without_patterns(
    a: list[Predicate], b: list[Predicate]
) -> None:
    left, right = intersection(a), intersection(b)
    in_a = [value for value in telling_values(*a, *b) if in_all(value, a)]
    assert left.is_empty == (not in_a)
    assert left.within(right) == all(in_all(value, b) for value in in_a)
    assert left.meets(right) == any(in_all(value, b) for value in in_a)


def test_a_union_of_patterns_absorbs_those_it_covers() -> None:
    widest, *others = [
        ValueSet.of(Operator.LIKE, [text]) for text in ("%b%", "ab%", "%ab", "%bb%", "a_b")
    ]
    assert union([*others, widest]) == widest


def test_a_great_many_patterns_stay_side_by_side() -> None:
    sets = [ValueSet.of(Operator.LIKE, [f"%{a}{b}%"]) for a, b in product("abcdef", repeat=2)]
    values = union([*sets, *sets, ValueSet.of(Operator.STARTS_WITH, ["x"])])
    assert len(values.strings) == 37
    assert values.contains("xyz")
    assert values.contains("yfay")
    assert not values.contains("yz")
    assert all(each.within(values) for each in sets)


def test_where_the_careful_answer_is_given() -> None:
    # together the two hold every string, but neither does alone
    ends = ValueSet.of(Operator.ENDS_WITH, ["b"])
    either = ends.union(ValueSet.of(Operator.NOT_ENDS_WITH, ["b"]))
    assert either.contains("a")
    assert either.contains("b")
    assert not ValueSet.of(Operator.GREATER_EQUAL, [""]).within(either)
