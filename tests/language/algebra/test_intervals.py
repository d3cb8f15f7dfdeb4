from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import EDGE_NUMBERS, neighbours, numbers, strings, times
from tidegate.language.algebra.intervals import (
    END,
    Endpoint,
    Intervals,
    is_point,
    members,
    next_prefix,
    next_value,
    previous_value,
)
from tidegate.language.semantics import compares
from tidegate.language.syntax import Operator
from tidegate.language.values import INT_MAX, INT_MIN, Kind, Value

COMPARISONS = [
    Operator.EQUAL,
    Operator.NOT_EQUAL,
    Operator.LESS,
    Operator.LESS_EQUAL,
    Operator.GREATER,
    Operator.GREATER_EQUAL,
]
FIRST_TIME = datetime.min.replace(tzinfo=UTC)
LAST_TIME = datetime.max.replace(tzinfo=UTC)
FLOAT_MAX = 1.7976931348623157e308

values_of_one_kind = st.sampled_from([numbers, strings, times, st.booleans()])


@st.composite
def two_sets(draw: st.DrawFn) -> tuple[Intervals, Intervals]:
    """Two sets of one kind, each a union of a few comparisons or their complement."""
    values = draw(values_of_one_kind)

    def one() -> Intervals:
        pieces = st.builds(Intervals.of, st.sampled_from(COMPARISONS), values)
        found = draw(st.lists(pieces, min_size=1, max_size=4))
        if draw(st.booleans()):
            return found[0].union(*found[1:])
        return found[0].intersect(*found[1:])

    return one(), one()


def bounds(*sets: Intervals) -> list[Value]:
    """The values at and beside every bound: two sets that differ do so at one of them."""
    first = Intervals.full(sets[0].kind).spans[0][0]
    points = [first, *(point for each in sets for span in each.spans for point in span)]
    return [near for point in points if point is not END for near in neighbours(point)]


# -- one value and the next ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "following"),
    [
        (1, 1.0000000000000002),
        (0, 5e-324),
        (-0.0, 5e-324),
        (-5e-324, 0),
        (0.5, 0.5000000000000001),
        (2**53 - 1, 2**53),
        (2**53, 2**53 + 1),
        (float(2**53), 2**53 + 1),
        (2**53 + 1, 2**53 + 2),
        (2**53 + 3, 2**53 + 4),
        (-(2**53) - 1, -(2**53)),
        (-(2**53) - 2, -(2**53) - 1),
        (INT_MAX - 1, INT_MAX),
        (INT_MAX, 2.0**63),
        (2.0**63, 2.0**63 + 2048),
        (-(2.0**63) - 2048, INT_MIN),
        (INT_MIN, INT_MIN + 1),
        (FLOAT_MAX, math.inf),
        (-math.inf, -FLOAT_MAX),
        (False, True),
        ("", "\0"),
        ("a", "a\0"),
        (FIRST_TIME, FIRST_TIME + timedelta(microseconds=1)),
    ],
)
def test_next_and_previous_value(value: Value, following: Value) -> None:
    assert next_value(value) == following
    assert previous_value(following) == value


def test_the_last_and_the_first_value_of_a_kind() -> None:
    assert [next_value(last) for last in (True, math.inf, LAST_TIME)] == [END] * 3
    firsts: list[Value] = [False, -math.inf, FIRST_TIME, ""]
    assert [previous_value(first) for first in firsts] == [None] * 4


def test_most_strings_have_no_previous_one() -> None:
    # between any string and 'b' there is another: that string with more z behind it
    assert previous_value("b") is None
    assert previous_value("b\0") == "b"


@given(numbers, numbers | st.integers(INT_MIN, INT_MAX))
@example(2**53 + 2, 2**53 + 3)
@example(float(INT_MIN), INT_MIN)
def test_no_number_lies_between_a_number_and_its_next(
    value: int | float, other: int | float
) -> None:
    following, before = next_value(value), previous_value(value)
    for candidate in [other, *(each for each in EDGE_NUMBERS), *neighbours(other)]:
        assert not value < candidate < following  # type: ignore[operator]
        assert before is None or not before < candidate < value  # type: ignore[operator]


@given(values_of_one_kind.flatmap(lambda values: values))
def test_next_and_previous_undo_each_other(value: Value) -> None:
    following = next_value(value)
    assert value < following
    if following is not END:
        assert previous_value(following) == value
    before = previous_value(value)
    assert before is None or next_value(before) == value


@pytest.mark.parametrize(
    ("prefix", "following"),
    [
        ("ab", "ac"),
        ("", END),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", END),
        ("a\ud7ff", "a\ue000"),  # in between are the surrogates, which no string holds
        ("\0", "\x01"),
    ],
)
def test_next_prefix(prefix: str, following: Endpoint) -> None:
    assert next_prefix(prefix) == following


@given(strings, strings | st.text())
def test_a_prefix_is_an_interval(prefix: str, text: str) -> None:
    for each in (text, prefix + text, *neighbours(prefix)):
        assert Intervals.starting_with(prefix).contains(each) == str(each).startswith(prefix)


# -- sets ---------------------------------------------------------------------------------------


@given(values_of_one_kind.flatmap(lambda values: st.tuples(values, values)))
def test_an_interval_holds_what_satisfies_its_comparison(pair: tuple[Value, Value]) -> None:
    operand, value = pair
    for operator in COMPARISONS:
        values = Intervals.of(operator, operand)
        for each in [value, *neighbours(operand)]:
            assert values.contains(each) == compares(each, operator, operand)


@given(two_sets())
def test_union_intersect_and_complement(sets: tuple[Intervals, Intervals]) -> None:
    a, b = sets
    for value in bounds(a, b):
        in_a, in_b = a.contains(value), b.contains(value)
        assert a.union(b).contains(value) == (in_a or in_b)
        assert a.intersect(b).contains(value) == (in_a and in_b)
        assert a.complement().contains(value) == (not in_a)
        assert a.union(b, a.complement()).contains(value)
        assert not a.intersect(b, a.complement()).contains(value)


@given(two_sets())
def test_within_and_equality_are_exact(sets: tuple[Intervals, Intervals]) -> None:
    a, b = sets
    in_a = [value for value in bounds(a, b) if a.contains(value)]
    in_b = [value for value in bounds(a, b) if b.contains(value)]
    assert a.within(b) == all(b.contains(value) for value in in_a)
    assert (a == b) == (in_a == in_b)
    assert a.is_full == (not a.complement().spans)


@given(two_sets())
def test_sets_are_kept_in_one_form(sets: tuple[Intervals, Intervals]) -> None:
    a, b = sets
    assert a.union(b) == b.union(a)
    assert a.complement().complement() == a
    assert a.intersect(b) == a.complement().union(b.complement()).complement()
    for each in (a, b, a.union(b), a.intersect(b), a.complement()):
        points = [point for span in each.spans for point in span]
        assert all(low < high for low, high in pairwise(points))


def test_ranges_that_touch_become_one() -> None:
    below, above = Intervals.of(Operator.LESS, 5), Intervals.of(Operator.GREATER_EQUAL, 5.0)
    assert below.union(above).is_full
    assert not below.union(Intervals.of(Operator.GREATER, 5)).is_full
    both = Intervals.of(Operator.EQUAL, False).union(Intervals.of(Operator.EQUAL, True))
    assert both.is_full


def test_no_number_lies_between_two_that_are_neighbours() -> None:
    above = Intervals.of(Operator.GREATER, 2**53)
    assert not above.intersect(Intervals.of(Operator.LESS, 2**53 + 1)).spans
    assert above.intersect(Intervals.of(Operator.LESS, 2**53 + 2)).contains(2**53 + 1)


@pytest.mark.parametrize(
    ("span", "values"),
    [
        ((1, next_value(1)), [1]),
        ((2**53, 2**53 + 3), [2**53, 2**53 + 1, 2**53 + 2]),
        ((False, END), [False, True]),
        (("a", "a\0\0"), ["a", "a\0"]),
        (("", "\0\0"), ["", "\0"]),
        (("a", "b"), None),
        (("a", "a\0a"), None),
        (("\0", "\0a"), None),
        (("a", END), None),
        ((1, 2), None),
        ((LAST_TIME, END), [LAST_TIME]),
    ],
)
def test_members(span: tuple[Endpoint, Endpoint], values: list[Value] | None) -> None:
    assert members(span) == values
    assert is_point(span) == (values is not None and len(values) == 1)


@given(strings, st.integers(0, 20))
def test_members_of_strings_that_end_in_nul(text: str, count: int) -> None:
    span = (text, text + "\0" * count)
    expected = [text + "\0" * more for more in range(count)]
    assert members(span) == (expected if count <= 16 else None)


def test_the_kind_of_an_empty_set_stays() -> None:
    nothing = Intervals.full(Kind.TIME).complement()
    assert nothing == Intervals(Kind.TIME)
    assert nothing != Intervals(Kind.NUMBER)
