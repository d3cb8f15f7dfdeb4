from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support import strategies
from tidegate.language.expressions import Constant, Environment
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import compares, holds, satisfies
from tidegate.language.syntax import COMPLEMENT, STRING_OPERATORS, Node, Operator, Predicate
from tidegate.language.values import Kind, Value, kind_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NOTHING = Environment()

COMPARISONS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.LESS_EQUAL: operator.le,
    Operator.GREATER: operator.gt,
    Operator.GREATER_EQUAL: operator.ge,
}
ONE_OF_EACH: dict[Kind, list[Value]] = {
    Kind.BOOLEAN: [True, False],
    Kind.NUMBER: [0, 1, 1.0],
    Kind.STRING: ["", "1", "true", "2026-01-02T12:00:00Z"],
    Kind.TIME: [NOON],
}
BY_KIND: dict[Kind, st.SearchStrategy[Value]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.NUMBER: strategies.numbers,
    Kind.STRING: strategies.strings,
    Kind.TIME: strategies.times,
}


def matches(text: str, event: Mapping[str, Value], **parameters: Value) -> bool:
    return holds(parse_filter(text), event, Environment(parameters))


# -- numbers --------------------------------------------------------------------------------------


@given(strategies.numbers, strategies.numbers, st.sampled_from(list(COMPARISONS)))
@example(2**53 + 1, 2.0**53, Operator.EQUAL)
@example(2**63 - 1, 2.0**63, Operator.LESS)
@example(0, -0.0, Operator.EQUAL)
def test_numbers_compare_exactly(a: float, b: float, comparison: Operator) -> None:
    exact = [
        Fraction(x) if math.isfinite(x) else Fraction(10**400 if x > 0 else -(10**400))
        for x in (a, b)
    ]
    assert compares(a, comparison, b) == COMPARISONS[comparison](*exact)


def test_integers_beyond_2_to_the_53_are_exact() -> None:
    event: dict[str, Value] = {"x": 2**53 + 1}
    assert matches("x = 9007199254740993", event)
    assert not matches("x = 9007199254740992", event)
    assert not matches("x = 9007199254740992.0", event)
    assert matches("x > 9007199254740992.0", event)
    assert matches("x = :p", event, p=2**53 + 1)
    assert not matches("x = :p", event, p=2.0**53)
    assert not matches("x = 9007199254740993 + 0", event)
    assert matches("x < 9223372036854775807", {"x": 2**63 - 2})
    assert matches("x = 1.0", {"x": 1})
    assert matches("x in (1)", {"x": 1.0})


def test_infinity_is_a_number() -> None:
    assert matches("x = infinity", {"x": math.inf})
    assert matches("x > 9223372036854775807", {"x": math.inf})
    assert not matches("x > -infinity", {"x": -math.inf})
    assert matches("x between -infinity and infinity", {"x": 0})


# -- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_values_of_different_kinds_are_never_equal_nor_ordered(comparison: Operator) -> None:
    for kind, values in ONE_OF_EACH.items():
        for other, operands in ONE_OF_EACH.items():
            if kind is not other:
                assert not any(compares(a, comparison, b) for a in values for b in operands)


def test_bool_is_not_a_number() -> None:
    for text in ("x = 1", "x != 1", "x >= 0", "x < 5", "x between 0 and 1", "x in (0, 1)"):
        assert not matches(text, {"x": True})
    assert not matches("x = true", {"x": 1})
    assert not matches("x != true", {"x": 1})
    assert matches("x = true", {"x": True})
    assert matches("x != true", {"x": False})
    assert matches("x < true", {"x": False})


def test_a_string_is_not_a_timestamp() -> None:
    text = "x >= timestamp '2026-01-01'"
    assert matches(text, {"x": NOON})
    assert not matches(text, {"x": "2026-01-02T12:00:00Z"})
    assert not matches("x != 'a'", {"x": NOON})


def test_lists_of_mixed_kinds() -> None:
    event: dict[str, Value] = {"x": "a"}
    assert matches("x in (1, 'a', true)", event)
    assert not matches("x in (1, true)", event)
    # each part of `not in` is a `!=`, which a value of another kind does not satisfy
    assert not matches("x not in (1, 'b')", event)
    assert matches("x not in ('b', 'c')", event)
    assert not matches("x between 'a' and 5", event)
    assert matches("x not between 'b' and 5", event)
    assert not matches("x not between 1 and 5", event)


def test_strings_are_ordered_by_code_point() -> None:
    assert matches("x > 'Z'", {"x": "a"})
    assert matches("x > 'z'", {"x": "é"})
    assert matches("x < '\U0001f30a'", {"x": "\uffff"})


# -- absent, undefined ----------------------------------------------------------------------------


@given(strategies.predicates(strategies.expressions() | strategies.constants()))
def test_an_absent_attribute_satisfies_nothing(predicate: Predicate) -> None:
    environment = Environment({"p": 1, "q": 2}, {"load": 0.5}, 1.0, NOON)
    assert not holds(predicate, {"other": 1}, environment)


@pytest.mark.parametrize("value", ["1 / 0", ":missing", "@missing", "sqrt(-1)", "now()"])
@pytest.mark.parametrize(
    "constraint",
    ["= {}", "!= {}", "< {}", ">= {}", "between {} and 5", "between 0 and {}", "in ({})"],
)
def test_an_undefined_value_satisfies_nothing(constraint: str, value: str) -> None:
    text = f"x {constraint.format(value)}"
    assert not matches(text, {"x": 1})
    assert not matches("not " + text.replace("5", "1").replace("0 and", "1 and"), {"x": 1})


def test_undefined_among_others() -> None:
    event: dict[str, Value] = {"x": 1}
    assert matches("x in (:missing, 1)", event)
    assert not matches("x not in (:missing, 2)", event)
    assert matches("x not between 2 and :missing", event)
    assert not matches("x not between :missing and 2", event)
    assert not matches("x like :missing", {"x": "a"})
    assert not matches("x not like :missing", {"x": "a"})


def test_a_parameter_of_the_wrong_kind_satisfies_nothing() -> None:
    for text in ("x like :p", "x not like :p", "x starts with :p", "x not contains :p"):
        assert not matches(text, {"x": "5"}, p=5)
        assert not matches(text, {"x": 5}, p=5)
        assert not matches(text, {"x": 5}, p="5")


def test_a_pattern_that_is_none_satisfies_nothing() -> None:
    assert not matches("x like :p", {"x": "a\\"}, p="a\\")
    assert not matches("x not like :p", {"x": "a\\"}, p="a\\")


# -- not ------------------------------------------------------------------------------------------


@st.composite
def same_kind(draw: st.DrawFn) -> tuple[Predicate, Value]:
    """A predicate of defined operands, and a value of their kind."""
    kind = draw(st.sampled_from(list(Kind)))
    value = BY_KIND[kind]
    operators = [each for each in COMPLEMENT if kind is Kind.STRING or each not in STRING_OPERATORS]
    chosen = draw(st.sampled_from(operators))
    count = 1
    if "between" in chosen.value:
        count = 2
    elif chosen in (Operator.IN, Operator.NOT_IN):
        count = draw(st.integers(1, 4))
    operand = strategies.globs if "like" in chosen.value else value
    operands: list[Value] = [draw(operand) for _ in range(count)]
    near = st.sampled_from([n for o in operands for n in strategies.neighbours(o)])
    return Predicate("x", chosen, tuple(map(Constant, operands))), draw(value | near)


@given(same_kind())
def test_exactly_one_of_a_constraint_and_its_complement_holds(
    case: tuple[Predicate, Value],
) -> None:
    predicate, value = case
    negated = parse_filter(f"not {predicate}")
    assert holds(predicate, {"x": value}, NOTHING) != holds(negated, {"x": value}, NOTHING)
    assert not holds(predicate, {}, NOTHING)
    assert not holds(negated, {}, NOTHING)


@given(st.data(), strategies.nodes())
def test_at_most_one_of_a_filter_and_its_complement_holds(data: st.DataObject, node: Node) -> None:
    event = data.draw(strategies.events_aimed_at(node))
    negated = parse_filter(f"not ({node})")
    assert not (holds(node, event, NOTHING) and holds(negated, event, NOTHING))


@given(strategies.nodes())
def test_not_twice_changes_nothing(node: Node) -> None:
    assert parse_filter(f"not (not ({node}))") == node


def test_presence() -> None:
    assert matches("x is not null", {"x": False})
    assert not matches("x is not null", {"y": 1})
    assert not matches("not x is not null", {"y": 1})
    assert not matches("not x is not null", {"x": 1})


# -- each operator --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "matching", "failing"),
    [
        ("x = 'a'", ["a"], ["b", "A", ""]),
        ("x != 'a'", ["b", ""], ["a", 1]),
        ("x <> 'a'", ["b"], ["a"]),
        ("x < 5", [4, 4.9, -math.inf], [5, 5.0, math.inf, "4"]),
        ("x <= 5", [5, 5.0], [5.1, 6]),
        ("x > 5", [5.1, 6], [5]),
        ("x >= 5", [5, 6], [4]),
        ("x between 2 and 4", [2, 3, 4.0], [1.9, 4.1]),
        ("x between 4 and 2", [], [2, 3, 4]),
        ("x not between 2 and 4", [1.9, 4.1], [2, 3, 4]),
        ("x not between 4 and 2", [2, 3, 4], []),
        ("x in (1, 2)", [1, 2.0], [3, "1", True]),
        ("x not in (1, 2)", [3], [1, 2, "1"]),
        ("x like 'N%SE'", ["NSE", "NYSE"], ["NYSEX", "nyse", ""]),
        ("x like '_'", ["a", "é", "\n"], ["", "ab"]),
        (r"x like '100\%'", ["100%"], ["1000"]),
        ("x not like 'a%'", ["b", ""], ["a", "ab", 1]),
        ("x starts with 'ab'", ["ab", "abc"], ["a", "cab"]),
        ("x not starts with 'ab'", ["a", "cab"], ["ab", 5]),
        ("x ends with 'ab'", ["ab", "cab"], ["b", "abc"]),
        ("x not ends with 'ab'", ["b"], ["cab", True]),
        ("x contains 'b'", ["abc", "b"], ["ac", ""]),
        ("x not contains 'b'", ["ac", ""], ["abc", 5]),
        ("x contains ''", ["", "a"], [1]),
        ("x is not null", [0, "", False, NOON], []),
        ("x >= timestamp '2026-01-02T12:00:00Z'", [NOON], [NOON - timedelta(microseconds=1), 0]),
        ("true", [1], []),
        ("false", [], [1]),
    ],
)
def test_operators(text: str, matching: list[Value], failing: list[Value]) -> None:
    assert [value for value in matching if not matches(text, {"x": value})] == []
    assert [value for value in failing if matches(text, {"x": value})] == []


@given(st.data(), st.sampled_from([Operator.BETWEEN, Operator.NOT_BETWEEN]))
def test_between_is_two_comparisons(data: st.DataObject, between: Operator) -> None:
    value, low, high = (data.draw(strategies.values) for _ in range(3))
    inside = (
        compares(value, Operator.GREATER_EQUAL, low),
        compares(value, Operator.LESS_EQUAL, high),
    )
    outside = compares(value, Operator.LESS, low), compares(value, Operator.GREATER, high)
    wanted = all(inside) if between is Operator.BETWEEN else any(outside)
    assert satisfies(value, between, [low, high]) == wanted


def test_and_or() -> None:
    event: dict[str, Value] = {"a": 1, "b": 2}
    assert matches("a = 1 and b = 2", event)
    assert not matches("a = 1 and b = 3", event)
    assert matches("a = 2 or b = 2", event)
    assert not matches("a = 2 or b = 3", event)
    assert matches("c = 1 or a = 1", event)


# -- time -----------------------------------------------------------------------------------------


def test_t_counts_seconds() -> None:
    node = parse_filter("x between -3 + t and 3 + t")
    assert not holds(node, {"x": 4}, Environment(t=0.5))
    assert holds(node, {"x": 4}, Environment(t=1.0))
    assert holds(node, {"x": 4}, Environment(t=7.0))
    assert not holds(node, {"x": 4}, Environment(t=7.25))


def test_now_is_the_time_at_which_the_event_is_judged() -> None:
    node = parse_filter("at > now() - 60")
    assert holds(node, {"at": NOON}, Environment(now=NOON + timedelta(seconds=59)))
    assert not holds(node, {"at": NOON}, Environment(now=NOON + timedelta(seconds=60)))
    assert not holds(node, {"at": NOON}, Environment())


def test_an_attribute_may_be_called_t() -> None:
    assert matches("t = 5", {"t": 5})


def test_every_kind_was_tried() -> None:
    assert {kind_of(value) for values in ONE_OF_EACH.values() for value in values} == set(Kind)
