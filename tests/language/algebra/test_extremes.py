"""Ranges over an elapsed range: never too narrow, and tight where functions are simple."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import functions_of_time
from tidegate.language.algebra.extremes import tight_range_of
from tidegate.language.algebra.ranges import ElapsedRange, range_of
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Environment,
    Expression,
    evaluate,
)
from tidegate.language.filters import parse
from tidegate.language.syntax import Predicate

T = Elapsed()


def expression(text: str) -> Expression:
    node = parse(f"x < {text}").node
    assert isinstance(node, Predicate)
    return node.operands[0]


def value(of: Expression, t: float) -> float:
    found = evaluate(of, Environment(t=t))
    assert isinstance(found, (int, float))
    return float(found)


def extremes(of: Expression, elapsed: ElapsedRange, steps: int = 4000) -> tuple[float, float]:
    """The least and the greatest of many values."""
    width = elapsed.end - elapsed.start
    times = [elapsed.start + width * step / steps for step in range(steps)] + [elapsed.end]
    values = [value(of, t) for t in times]
    return min(values), max(values)


@pytest.mark.parametrize(
    "text",
    [
        # linear, however it is written
        "3 + 2 * t",
        "t - t * 0.5",
        "5 + 2 * t - t",
        "2 * (3 - t) + t",
        "(t + 1) / 2 - (3 * t - 4) / 8",
        "-(t - 2 * t)",
        "t - t",
        "0.1 * t + 0.2 * t - 0.3 * t",
        # monotone
        "t * t + t",
        "t * t * t - 2",
        "t + sin(t)",
        "exp(t / 10) + t",
        "exp(0 - t / 5) * 7 - t",
        "ln(t + 2) + t",
        "sqrt(t + 1) - sqrt(t + 4)",
        "t / (t + 1)",
        "1000 / (1 + t) - t",
        # a sine, over part of its period and over more than all of it
        "3 + 2 * sin(t / 20)",
        "10 * sin(t * 0.7)",
        "cos(t / 7 - 1) * 5 + 2",
        "5 * sin(t * 0.05) + t / 10",
        # the smaller and the greater, corners included
        "min(3 + t, 10)",
        "max(t, 10 - t)",
        "min(t, 10 - t)",
        "max(min(t, 4), 7 - t)",
        "abs(t - 3)",
        "abs(t - 3) + t / 2",
        "min(t * 2, 8) - min(t, 6)",
        # what goes up and down
        "t * (10 - t)",
        "t * t - 6 * t",
        "sin(t) + sin(2 * t)",
        # whole numbers in it
        "floor(t / 2) * 3",
        "ceil(2 * t - t + 0.5)",
    ],
)
@pytest.mark.parametrize(
    "elapsed", [ElapsedRange(0, 10), ElapsedRange(2.5, 6), ElapsedRange(3, 3.25)]
)
def test_ranges_of_simple_functions_are_tight(text: str, elapsed: ElapsedRange) -> None:
    of = expression(text)
    found = tight_range_of(of, elapsed)
    assert found is not None
    assert not found.partial
    least, most = extremes(of, elapsed)
    size = 1 + max(abs(least), abs(most))
    step = 3e-5 * (elapsed.end - elapsed.start) * size  # what may lie between two values
    assert least - 2e-9 * size - step <= found.low <= least
    assert most <= found.high <= most + 2e-9 * size + step


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("-3 + t", -3.0, 7.0),
        ("3 + 2 * t", 3.0, 23.0),
        ("min(3 + t, 10)", 3.0, 10.0),
        ("t * t + t", 0.0, 110.0),
    ],
)
def test_what_interval_arithmetic_says_exactly_stays_exact(
    text: str, low: float, high: float
) -> None:
    found = tight_range_of(expression(text), ElapsedRange(0, 10))
    assert found is not None
    assert (found.low, found.high) == (low, high)


@pytest.mark.parametrize(
    ("text", "low", "high"), [("t - t * 0.5", 0.0, 5.0), ("5 + 2 * t - t", 5.0, 15.0)]
)
def test_lines_are_tight_up_to_rounding(text: str, low: float, high: float) -> None:
    found = tight_range_of(expression(text), ElapsedRange(0, 10))
    assert found is not None
    assert found.low == pytest.approx(low, abs=1e-13)
    assert found.high == pytest.approx(high, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("sqrt(t - 5)", 0, 10),  # not always defined
        ("1 / (t - 5)", 0, 10),
        ("t % 3", 0, 10),
        ("t - t / 2", 0, math.inf),
        ("'a'", 0, 10),
        ("now()", 0, 10),
        ("@load + t", 0, 10),
        ("7", 0, 10),
        ("1e308 * t", 0, 10),
    ],
)
def test_otherwise_it_is_interval_arithmetic(text: str, start: float, end: float) -> None:
    of, elapsed = expression(text), ElapsedRange(start, end)
    assert tight_range_of(of, elapsed) == range_of(of, elapsed)


spans = st.floats(0, 100) | st.floats(0, 1e-9) | st.floats(0, 1e12) | st.just(0.0)
starts = st.sampled_from([0.0, 1.0, -1.0, 5.0]) | st.floats(-1e6, 1e6)


@given(functions_of_time(), starts, spans, st.lists(st.floats(0, 1), max_size=8))
@example(Arithmetic("-", T, Arithmetic("*", T, Constant(0.1))), 0.1, 0.3, [0.5])
@example(Call("sin", (Arithmetic("*", T, Constant(1e9)),)), 0.0, 1.0, [0.25, 0.5])
@example(Arithmetic("*", T, Arithmetic("-", Constant(1), T)), 0.0, 1.0, [0.5])
def test_no_value_is_outside(
    of: Expression, start: float, width: float, places: list[float]
) -> None:
    elapsed = ElapsedRange(start, start + width)
    found = tight_range_of(of, elapsed)
    plain = range_of(of, elapsed)
    assert (found is None) == (plain is None)
    if found is None or plain is None:
        return
    assert plain.low <= found.low <= found.high <= plain.high
    assert found.partial == plain.partial
    inner = [min(max(start, start + width * place), elapsed.end) for place in places]
    near = [math.nextafter(elapsed.start, math.inf), math.nextafter(elapsed.end, -math.inf)]
    times = [t for t in [elapsed.start, elapsed.end, *inner, *near] if start <= t <= elapsed.end]
    for t in times:
        seen = evaluate(of, Environment(t=t))
        if seen is None:
            assert found.partial
        else:
            assert isinstance(seen, (int, float))
            assert found.low <= seen <= found.high


@st.composite
def repeated(draw: st.DrawFn) -> Expression:
    """Functions with several `t`, whose parts nearly cancel."""
    small = st.sampled_from([0.1, 0.3, 1.0, 2.0, 3.0, 7.0, 1e-3, 1e6])
    parts: st.SearchStrategy[Expression] = st.one_of(
        st.just(T),
        small.map(lambda by: Arithmetic("*", Constant(by), T)),
        small.map(lambda by: Arithmetic("/", T, Constant(by))),
        small.map(lambda by: Call("sin", (Arithmetic("*", T, Constant(by)),))),
        small.map(lambda by: Call("exp", (Arithmetic("/", T, Constant(-100 * by)),))),
        small.map(lambda by: Call("sqrt", (Arithmetic("+", Constant(by), Call("abs", (T,))),))),
        small.map(lambda by: Call("min", (T, Constant(by)))),
        small.map(Constant),
    )
    found = draw(parts)
    for _ in range(draw(st.integers(1, 4))):
        found = Arithmetic(draw(st.sampled_from("+-*-")), found, draw(parts))
    return found


@given(repeated(), starts, st.floats(0, 50), st.lists(st.floats(0, 1), max_size=12))
def test_no_value_of_sums_and_products_is_outside(
    of: Expression, start: float, width: float, places: list[float]
) -> None:
    elapsed = ElapsedRange(start, start + width)
    found = tight_range_of(of, elapsed)
    assert found is not None
    for place in [0.0, 1.0, *places]:
        t = min(max(start, start + width * place), elapsed.end)
        seen = evaluate(of, Environment(t=t))  # undefined if infinities cancel each other
        assert found.partial if seen is None else found.low <= value(of, t) <= found.high
