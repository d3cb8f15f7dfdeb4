from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import functions_of_time
from tidegate.errors import BadValueError
from tidegate.language.algebra.ranges import (
    ANY_NUMBER,
    ElapsedRange,
    Range,
    range_of,
    stays_at_most,
)
from tidegate.language.expressions import Environment, Expression, evaluate
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import Predicate

fractions = st.lists(st.floats(0, 1), max_size=8).map(lambda drawn: [0.0, 1.0, 0.5, *drawn])
small = st.integers(-5, 5) | st.floats(-100, 100)


@st.composite
def elapsed_ranges(draw: st.DrawFn) -> ElapsedRange:
    start, length = draw(st.integers(-5, 5) | st.floats(-1e6, 1e6)), draw(st.floats(0, 1e4))
    return ElapsedRange(
        float(start), float(start) + draw(st.sampled_from([0.0, 1.0, 10.0, length]))
    )


def function(text: str) -> Expression:
    node = parse_filter(f"x < {text}")
    assert isinstance(node, Predicate)
    return node.operands[0]


def moments(elapsed: ElapsedRange, fractions: list[float]) -> list[float]:
    found = [elapsed.start + (elapsed.end - elapsed.start) * each for each in fractions]
    return [min(each, elapsed.end) for each in found]


def value_at(expression: Expression, t: float) -> float | None:
    value = evaluate(expression, Environment(t=t))
    assert value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
    return value


# -- ranges -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", Range(5, 5)),
        ("9007199254740993", Range(2**53 + 1, 2**53 + 1)),
        ("9007199254740993 + 0", Range(2.0**53, 2.0**53)),
        ("t", Range(0, 10)),
        ("-t", Range(-10, 0)),
        ("-3 + t", Range(-3, 7)),
        ("3 - 2 * t", Range(-17, 3)),
        ("t / 4", Range(0, 2.5)),
        ("1 / (t + 1)", Range(1 / 11, 1)),
        ("t * t", Range(0, 100)),
        ("(t - 5) * (t - 5)", Range(-25, 25)),  # each factor on its own
        ("abs(t - 5)", Range(0, 5)),
        ("abs(t + 5)", Range(5, 15)),
        ("min(t, 4)", Range(0, 4)),
        ("max(t, 4)", Range(4, 10)),
        ("floor(t / 4)", Range(0, 2)),
        ("ceil(t / 4)", Range(0, 3)),
        ("sqrt(t)", Range(0, math.sqrt(10))),
        ("t % 3", Range(0, 3)),
        ("t % 30", Range(0, 10)),
        ("-t % 3", Range(-3, 0)),
        ("sin(1000 * t)", Range(-1, 1)),
        # not defined everywhere
        ("sqrt(t - 5)", Range(0, math.sqrt(5), partial=True)),
        ("ln(t - 20)", ANY_NUMBER),
        ("sqrt(t - 20)", ANY_NUMBER),
        ("1 / t", ANY_NUMBER),
        ("5 % (t - 5)", ANY_NUMBER),
        ("(t - 5) * infinity", Range(-math.inf, math.inf, partial=True)),
        ("t * infinity", ANY_NUMBER),
        ("sin(infinity + t)", Range(-1, 1, partial=True)),
        # not known, and of any kind
        (":p", ANY_NUMBER),
        ("@load + t", ANY_NUMBER),
        ("now() + t", ANY_NUMBER),
        ("now() - timestamp '2026-01-02T03:04:05Z'", ANY_NUMBER),
        ("min(@load, 3)", Range(-math.inf, 3, partial=True)),
    ],
)
def test_range_over_ten_seconds(text: str, expected: Range) -> None:
    assert range_of(function(text), ElapsedRange(0, 10)) == expected


@pytest.mark.parametrize("text", ["'a'", "true", "timestamp '2026-01-02T03:04:05Z' + t"])
def test_what_is_no_number_has_no_range(text: str) -> None:
    assert range_of(function(text), ElapsedRange(0, 10)) is None


@given(functions_of_time(), elapsed_ranges(), fractions)
@example(function("(t - 5) * infinity"), ElapsedRange(0, 10), [0.0, 0.5, 1.0])
@example(function("sin(t * 1.7976931348623157e308)"), ElapsedRange(-1, 1), [0.0, 1.0])
@example(function("cos(-1.7976931348623157e308 + t)"), ElapsedRange(0, 1), [0.0, 1.0])
def test_a_range_holds_every_value(
    expression: Expression, elapsed: ElapsedRange, fractions: list[float]
) -> None:
    found = range_of(expression, elapsed)
    assert found is not None
    for t in moments(elapsed, fractions):
        value = value_at(expression, t)
        if value is None:
            assert found.partial
        else:
            assert found.low <= value <= found.high


@given(small, small, elapsed_ranges())
def test_the_range_of_a_line_is_exact(a: float, b: float, elapsed: ElapsedRange) -> None:
    line = function(f"{a!r} + {b!r} * t")
    start, end = value_at(line, elapsed.start), value_at(line, elapsed.end)
    assert start is not None
    assert end is not None
    assert range_of(line, elapsed) == Range(min(start, end), max(start, end))


@given(
    st.sampled_from(["exp(t / 10)", "ln(t + 1)", "sqrt(t + 1) * 2", "floor(t) + t"]),
    st.floats(0, 1000),
    st.floats(0, 1000),
)
def test_the_range_of_a_rising_function_is_tight(text: str, start: float, length: float) -> None:
    rising, elapsed = function(text), ElapsedRange(start, start + length)
    found = range_of(rising, elapsed)
    assert found is not None
    assert not found.partial
    assert found.low == pytest.approx(value_at(rising, elapsed.start), rel=1e-12, abs=1e-12)
    assert found.high == pytest.approx(value_at(rising, elapsed.end), rel=1e-12, abs=1e-12)


@given(st.sampled_from(["sin", "cos"]), st.floats(-50, 50), st.floats(0, 7))
def test_the_range_of_a_wave_is_tight(wave: str, start: float, length: float) -> None:
    expression, elapsed = function(f"{wave}(t)"), ElapsedRange(start, start + length)
    found = range_of(expression, elapsed)
    assert found is not None
    values = [value_at(expression, start + length * step / 100) for step in range(101)]
    known = [value for value in values if value is not None]
    assert found.low == pytest.approx(min(known), abs=1e-2)
    assert found.high == pytest.approx(max(known), abs=1e-2)


# -- which of two stays smaller -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("smaller", "greater"),
    [
        ("2 + t", "3 + t"),
        ("t", "t + 1"),
        ("t - 1", "t"),
        ("t - 3", "-2 + t"),
        ("5 + t", "5 + t + 1"),
        ("5 + t - 1", "5 + t"),
        ("t", "2 * t"),
        ("3 + 2 * t", "3 + 2.5 * t"),
        ("-3 * t", "-2 * t"),
        ("t / 10", "t / 10 + 1"),
        ("(t + 1) / -2", "t / -2"),
        ("-(t + 1)", "-t"),
        ("4 * sin(t / 10)", "5 + 4 * sin(t / 10)"),
        ("sin(t)", "2"),
        ("3 * sin(t) - 1", "3 * sin(t)"),
        ("sqrt(t)", "sqrt(t + 1)"),
        ("floor(t)", "floor(t + 1)"),
        ("min(t, 10)", "t"),
        ("min(t, 10)", "min(t, 11)"),
        ("t", "max(t, 10)"),
        ("max(t, 3)", "max(t, 4)"),
        ("min(t, 3 + sin(t))", "5"),
        ("5", "5 + t"),
        ("t * t", "t * (t + 1)"),
        ("sin(t) * t", "(2 + sin(t)) * t"),
    ],
)
def test_one_stays_smaller_for_good(smaller: str, greater: str) -> None:
    a, b = function(smaller), function(greater)
    assert stays_at_most(a, b, ElapsedRange(0, 1e6))
    assert not stays_at_most(b, a, ElapsedRange(0, 1e6))
    assert stays_at_most(a, a, ElapsedRange(0, 1e6))


def test_an_elapsed_range_may_have_no_end() -> None:
    assert stays_at_most(function("2 + t"), function("3 + t"), ElapsedRange(0, math.inf))
    assert stays_at_most(function("5"), function("5 + t"), ElapsedRange(0, math.inf))
    assert not stays_at_most(function("t"), function("1000"), ElapsedRange(0, math.inf))
    assert stays_at_most(function("100 - t"), function("50 + t"), ElapsedRange(26, math.inf))


@pytest.mark.parametrize(
    ("start", "end", "stays"), [(0, 9.5, True), (0, 11, False), (11, 20, False), (-50, 0, True)]
)
def test_lines_that_cross(start: float, end: float, stays: bool) -> None:
    slow, fast = function("10 + t"), function("2 * t")  # they meet at t = 10
    assert stays_at_most(fast, slow, ElapsedRange(start, end)) == stays


@pytest.mark.parametrize(("lead", "stays"), [(0.0, True), (2.0, True), (-2.0, False)])
def test_a_clock_may_be_ahead(lead: float, stays: bool) -> None:
    evolving = function("3 + t")
    assert stays_at_most(evolving, evolving, ElapsedRange(0, 1e6), b_lead=lead) == stays
    assert stays_at_most(evolving, evolving, ElapsedRange(0, 1e6), a_lead=-lead) == stays


@pytest.mark.parametrize("text", ["1 / t", ":p", "@load", "now()", "'a'", "sqrt(t - 1)"])
def test_what_may_be_undefined_stays_below_nothing(text: str) -> None:
    assert not stays_at_most(function(text), function("infinity"), ElapsedRange(0, 10))
    assert not stays_at_most(function("-infinity"), function(text), ElapsedRange(0, 10))


def test_where_the_careful_answer_is_given() -> None:
    # lines that touch inside of the elapsed range
    assert not stays_at_most(function("2 * t"), function("10 + t"), ElapsedRange(0, 10))
    # sums with their terms in another grouping, over a long elapsed range
    assert not stays_at_most(function("t + 1 + 1"), function("t + 3"), ElapsedRange(0, 1e6))
    assert stays_at_most(function("t + 1 + 1"), function("t + 3"), ElapsedRange(0, 10))


def test_an_integer_is_compared_exactly() -> None:
    # 1 * (2**53 + 1) is computed in floats and comes out as 2**53
    integer, product = function("9007199254740993"), function("1 * 9007199254740993")
    assert not stays_at_most(integer, product, ElapsedRange(0, 1))
    assert not stays_at_most(integer, function("9007199254740993 + 0"), ElapsedRange(0, 1))
    assert stays_at_most(product, integer, ElapsedRange(0, 1))


def test_a_great_many_terms_are_compared_in_reasonable_time() -> None:
    few, many = (" + ".join(["(t + t * t)"] * count) for count in (4, 30))
    assert stays_at_most(function(few), function(f"{few} + 1"), ElapsedRange(0, 1e6))
    assert not stays_at_most(function(many), function(f"{many} + 1"), ElapsedRange(0, 1e6))


@given(
    functions_of_time(),
    functions_of_time(),
    small,
    elapsed_ranges(),
    fractions,
    st.sampled_from([0.0, 1.0, -2.0, 0.1, 1e16]),
)
def test_stays_at_most_is_never_refuted(
    a: Expression,
    b: Expression,
    shift: float,
    elapsed: ElapsedRange,
    fractions: list[float],
    lead: float,
) -> None:
    shifted = function(f"t + {shift!r}")
    for x, y in ((a, b), (a, a), (shifted, a), (a, shifted), (function("t"), shifted)):
        if stays_at_most(x, y, elapsed, b_lead=lead):
            for t in moments(elapsed, fractions):
                left, right = value_at(x, t), value_at(y, t + lead)
                assert left is not None
                assert right is not None
                assert left <= right


# -- elapsed ranges -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end"), [(1, 0), (math.nan, 1), (0, math.nan), (-math.inf, 0), (math.inf, math.inf)]
)
def test_an_elapsed_range_starts_and_does_not_end_before(start: float, end: float) -> None:
    with pytest.raises(BadValueError, match="an elapsed range cannot go from"):
        ElapsedRange(start, end)


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
@example(5e-324, 5e-324)
@example(-5e-324, -5e-324)
@example(5e-324, 1e-323)
@example(1e308, math.inf)
@example(1.5e-323, 2e-323)
@example(-1e308, 1.7e308)
def test_halves_share_their_border(a: float, b: float) -> None:
    whole = ElapsedRange(min(a, b), max(a, b))
    first, second = whole.halves()
    assert (first.start, first.end, second.end) == (whole.start, second.start, whole.end)
