from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import EDGE_STRINGS, globs, strings, strings_around
from tidegate.language.algebra.like import Glob
from tidegate.language.algebra.string_sets import StringSet
from tidegate.language.semantics import satisfies
from tidegate.language.syntax import STRING_OPERATORS, Operator

Constraint = tuple[Operator, str]

ORDERED = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]
AFFIXES = [
    Operator.STARTS_WITH,
    Operator.NOT_STARTS_WITH,
    Operator.ENDS_WITH,
    Operator.NOT_ENDS_WITH,
]
LIKES = [Operator.LIKE, Operator.NOT_LIKE]

SHORT_STRINGS = ["".join(chars) for length in range(6) for chars in product("ab", repeat=length)]
SAMPLE = [*SHORT_STRINGS, *EDGE_STRINGS, "a\0", "ab\0", "\0a", "aé", "abc", "cab", "c"]

exact_constraints = st.tuples(st.sampled_from(ORDERED + AFFIXES), strings)
constraints = (
    exact_constraints
    | st.tuples(st.sampled_from(sorted(STRING_OPERATORS - set(LIKES), key=str)), strings)
    | st.tuples(st.sampled_from(LIKES), globs)
)
conjunctions = st.lists(constraints, min_size=1, max_size=4)
exact_conjunctions = st.lists(exact_constraints, min_size=1, max_size=4)


def in_all(text: str, conjunction: list[Constraint]) -> bool:
    return all(satisfies(text, operator, [operand]) for operator, operand in conjunction)


def set_of(conjunction: list[Constraint]) -> StringSet:
    first, *rest = [StringSet.of(operator, text) for operator, text in conjunction]
    return first.intersect(*rest)


def around(*conjunctions: list[Constraint]) -> list[str]:
    return strings_around(text for each in conjunctions for _, text in each)


# -- patterns -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("%", "a_b%"),
        ("N%SE", "NY%SE"),
        ("N%SE", "N%YSE"),
        ("N%", "N%SE"),
        ("%SE", "N%SE"),
        ("%Y%", "N%Y%SE"),
        ("_%", "a%"),
        ("_%_", "__a%"),
        ("a_c", "abc"),
        ("%a%b%", "xaxbx"),
        ("%a%", "%a%a%"),
    ],
)
def test_a_pattern_covers_another(wide: str, narrow: str) -> None:
    assert Glob.parse(wide).covers(Glob.parse(narrow))
    assert not Glob.parse(narrow).covers(Glob.parse(wide))


@given(globs, globs)
@example("%_", "_%")
@example("a%a", "a")
def test_covers_and_disjoint_of_patterns_are_never_refuted(a: str, b: str) -> None:
    wide, narrow = Glob.parse(a), Glob.parse(b)
    assert wide.covers(wide)
    covers, disjoint = wide.covers(narrow), wide.disjoint(narrow)
    assert disjoint == narrow.disjoint(wide)
    for text in SAMPLE:
        if narrow.matches(text):
            assert not covers or wide.matches(text)
            assert not disjoint or not wide.matches(text)


# -- sets ---------------------------------------------------------------------------------------


@given(constraints)
def test_a_set_holds_what_satisfies_its_constraint(constraint: Constraint) -> None:
    values = set_of([constraint])
    for text in SAMPLE:
        assert values.contains(text) == in_all(text, [constraint])


@given(conjunctions)
@example([(Operator.GREATER_EQUAL, "a"), (Operator.LESS, "a\0\0"), (Operator.ENDS_WITH, "\0")])
def test_intersect_is_exact(conjunction: list[Constraint]) -> None:
    values = set_of(conjunction)
    for text in [*SAMPLE, *around(conjunction)]:
        assert values.contains(text) == in_all(text, conjunction)
        assert not values.is_empty or not in_all(text, conjunction)


@given(conjunctions, conjunctions)
def test_union_is_exact(a: list[Constraint], b: list[Constraint]) -> None:
    both = set_of(a).union(set_of(b))
    if both is not None:
        for text in [*SAMPLE, *around(a, b)]:
            assert both.contains(text) == (in_all(text, a) or in_all(text, b))


@given(conjunctions, conjunctions)
@example([(Operator.STARTS_WITH, "ab"), (Operator.ENDS_WITH, "b")], [(Operator.LIKE, "ab%b")])
def test_within_and_meets_are_never_refuted(a: list[Constraint], b: list[Constraint]) -> None:
    within, meets = set_of(a).within(set_of(b)), set_of(a).meets(set_of(b))
    assert set_of(a).within(set_of(a))
    for text in [*SAMPLE, *around(a, b)]:
        if in_all(text, a):
            assert not within or in_all(text, b)
            assert meets or not in_all(text, b)


@given(exact_conjunctions, exact_conjunctions)
@example([(Operator.ENDS_WITH, "b")], [(Operator.NOT_EQUAL, "a")])
@example([(Operator.GREATER_EQUAL, "a"), (Operator.ENDS_WITH, "b")], [(Operator.GREATER, "a")])
@example([(Operator.GREATER_EQUAL, "a"), (Operator.LESS_EQUAL, "a\0")], [(Operator.ENDS_WITH, "b")])
@example([(Operator.NOT_ENDS_WITH, "ab"), (Operator.ENDS_WITH, "b")], [(Operator.ENDS_WITH, "b")])
def test_order_prefix_and_suffix_are_decided_exactly(
    a: list[Constraint], b: list[Constraint]
) -> None:
    in_a = [text for text in around(a, b) if in_all(text, a)]
    assert set_of(a).is_empty == (not in_a)
    assert set_of(a).within(set_of(b)) == all(in_all(text, b) for text in in_a)
    assert set_of(a).meets(set_of(b)) == any(in_all(text, b) for text in in_a)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ([(Operator.STARTS_WITH, "N"), (Operator.ENDS_WITH, "SE")], [(Operator.LIKE, "N%SE")]),
        ([(Operator.LIKE, "N%SE")], [(Operator.STARTS_WITH, "N"), (Operator.ENDS_WITH, "SE")]),
        ([(Operator.STARTS_WITH, "NYSE")], [(Operator.CONTAINS, "YS")]),
        ([(Operator.LIKE, "a%b%c")], [(Operator.CONTAINS, "b"), (Operator.ENDS_WITH, "c")]),
        ([(Operator.STARTS_WITH, "a")], [(Operator.NOT_LIKE, "b%c")]),
        ([(Operator.GREATER_EQUAL, "b"), (Operator.LESS, "d")], [(Operator.NOT_LIKE, "a%c")]),
        ([(Operator.ENDS_WITH, "ab")], [(Operator.NOT_ENDS_WITH, "bb")]),
        ([(Operator.NOT_CONTAINS, "a")], [(Operator.NOT_CONTAINS, "ba")]),
        ([(Operator.NOT_CONTAINS, "a")], [(Operator.NOT_STARTS_WITH, "a")]),
        ([(Operator.EQUAL, "NYSE")], [(Operator.LIKE, "N_SE")]),
        ([(Operator.ENDS_WITH, "a")], [(Operator.NOT_EQUAL, "")]),
    ],
)
def test_patterns_within_patterns(narrow: list[Constraint], wide: list[Constraint]) -> None:
    assert set_of(narrow).within(set_of(wide))


@pytest.mark.parametrize(
    ("said", "plainly"),
    [
        ([(Operator.LIKE, "abc")], [(Operator.EQUAL, "abc")]),
        ([(Operator.LIKE, "ab%")], [(Operator.STARTS_WITH, "ab")]),
        ([(Operator.LIKE, "%ab")], [(Operator.ENDS_WITH, "ab")]),
        ([(Operator.LIKE, "%ab%")], [(Operator.CONTAINS, "ab")]),
        ([(Operator.CONTAINS, "")], [(Operator.GREATER_EQUAL, "")]),
        ([(Operator.ENDS_WITH, "a"), (Operator.NOT_ENDS_WITH, "b")], [(Operator.ENDS_WITH, "a")]),
        ([(Operator.ENDS_WITH, "ba"), (Operator.ENDS_WITH, "a")], [(Operator.ENDS_WITH, "ba")]),
        (
            [(Operator.NOT_CONTAINS, "a"), (Operator.NOT_LIKE, "a%b")],
            [(Operator.NOT_CONTAINS, "a")],
        ),
        ([(Operator.STARTS_WITH, "ab"), (Operator.CONTAINS, "b")], [(Operator.STARTS_WITH, "ab")]),
        ([(Operator.LESS_EQUAL, ""), (Operator.NOT_LIKE, "_")], [(Operator.EQUAL, "")]),
    ],
)
def test_what_follows_from_the_rest_is_left_out(
    said: list[Constraint], plainly: list[Constraint]
) -> None:
    assert set_of(said) == set_of(plainly)


def test_a_great_many_patterns_are_not_compared_with_each_other() -> None:
    many = [(Operator.NOT_LIKE, f"%a{number}%b") for number in range(500)]
    values = set_of([*many, (Operator.ENDS_WITH, "b")])
    assert values.contains("ab")
    assert not values.contains("a499b")
    assert not values.contains("a")
    assert len(values.excluded) == 500


def test_where_the_careful_answer_is_given() -> None:
    # lengths are not compared
    assert set_of([(Operator.LIKE, "__%")]).meets(set_of([(Operator.LIKE, "_")]))
    # a union of two patterns is no single set
    assert set_of([(Operator.ENDS_WITH, "a")]).union(set_of([(Operator.ENDS_WITH, "b")])) is None
