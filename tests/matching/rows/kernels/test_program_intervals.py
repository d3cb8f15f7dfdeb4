"""Intervals of functions may be too wide, never too narrow; and what is sure must be so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import VARIABLES, numbers
from support.time_functions import (
    Interval,
    Ranges,
    between,
    block_of,
    function,
    functions,
    inside,
    range_rows,
    ranges,
)
from tidegate.language.expressions import Elapsed, Expression
from tidegate.language.syntax import Operator, Predicate, all_of
from tidegate.language.values import Value
from tidegate.matching.rows.encoding import encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.kernels.motion import LINEAR, SHIFTED
from tidegate.matching.rows.kernels.program_intervals import (
    INTERVAL_STACK,
    NOTHING,
    line_over,
    run_program_over,
    shifted_by,
)
from tidegate.matching.rows.kernels.programs import STACK_MAX, run_program

TURN = 2 * math.pi

ends = st.sampled_from([0.0, 1.0, -1.0, 60.0, 1e9, TURN / 4]) | st.floats(-1e9, 1e9)
times = st.tuples(ends, ends).map(between) | ends.map(lambda t: (t, t))
points = st.lists(st.tuples(ends, numbers, numbers), max_size=6)


class Machine:
    """The program of a function."""

    def __init__(self, expression: Expression) -> None:
        moves = Predicate("x", Operator.GREATER, (Elapsed(),))
        self.channels = Channels()
        node = all_of([Predicate("x", Operator.LESS, (expression,)), moves])
        moving = block_of(node, self.channels).moving[0]
        self.is_linear = moving.program == LINEAR
        self.at, self.first, self.shift = moving.program, 0, 0.0
        self.constants = np.array([column[0] for column in moving.constants])
        if not self.is_linear and moving.program & SHIFTED:
            self.at, self.first = moving.program ^ SHIFTED, 1
            self.shift = float(self.constants[0])
        self.code = np.array(self.channels.program, np.int32)

    def at_point(self, t: float, known: dict[str, Value]) -> float:
        if self.is_linear:
            return float(self.constants[0] + self.constants[1] * t)
        values = encode_variables(known, self.channels)
        stack = np.empty(STACK_MAX)
        constants = self.constants, self.first
        return self.shift + run_program(self.code, self.at, *constants, t, values, 0, stack)

    def over(self, t: Interval, known: Ranges | None = None) -> tuple[float, float, bool]:
        rows = range_rows(known or {}, self.channels)
        stack = np.empty(INTERVAL_STACK)
        low, high = float(t[0]), float(t[1])
        if self.is_linear:
            return line_over(float(self.constants[0]), float(self.constants[1]), low, high)
        found = run_program_over(
            self.code, self.at, self.constants, self.first, low, high, rows, stack
        )
        return shifted_by(self.shift, *found) if self.first else found


@given(functions(), times, ranges, points)
@example(function("1 / (t - 5)"), (0.0, 10.0), {}, [(5.0, 0, 0)])
@example(function("1 % (t - 5)"), (0.0, 10.0), {}, [(5.0, 0, 0), (4.5, 0, 0)])
@example(function("sqrt(t - 5)"), (5.0, 10.0), {}, [])
@example(function("ln(t)"), (0.0, 5e-324), {}, [])
@example(function("exp(t) - exp(t)"), (0.0, 1000.0), {}, [])
@example(function("(t - 5) * infinity"), (0.0, 10.0), {}, [(5.0, 0, 0), (6.0, 0, 0)])
@example(function("@load - @mode"), (0.0, 0.0), {"load": (1, math.inf), "mode": (1, math.inf)}, [])
@example(function("sin(t * 1e300)"), (0.0, 1e9), {}, [(1.0, 0, 0)])
@example(function("cos(sin(t) * 1e6)"), (0.0, 1.0), {}, [(0.5, 0, 0)])
@example(function("-t % 3"), (0.0, 10.0), {}, [(2.9, 0, 0), (3.1, 0, 0)])
def test_an_interval_holds_every_value(
    expression: Expression, t: Interval, known: Ranges, points: list[tuple[float, float, float]]
) -> None:
    machine = Machine(expression)
    low, high, surely = machine.over(t, known)
    assert not math.isnan(low)
    assert not math.isnan(high)
    for moment, *values in [(t[0], 0, 0), (t[1], 0, 0), *points]:
        variables: dict[str, Value] = {
            name: inside(known[name], value)
            for name, value in zip(VARIABLES, values, strict=True)
            if name in known
        }
        found = machine.at_point(inside(t, moment), variables)
        assert low <= found <= high or (math.isnan(found) and not surely)


@pytest.mark.parametrize(
    ("text", "t", "expected"),
    [
        ("3 - 2 * t", (0, 10), (-17, 3)),
        ("t", (2, 5), (2, 5)),
        ("-t", (2, 5), (-5, -2)),
        ("t / 4", (0, 10), (0, 2.5)),
        ("1 / (t + 1)", (0, 9), (0.1, 1)),
        ("(t - 5) * (5 - t)", (0, 10), (-25, 25)),  # each factor on its own
        ("abs(t - 5)", (0, 7), (0, 5)),
        ("abs(t)", (-7, -5), (5, 7)),
        ("min(t, 4, 5)", (0, 10), (0, 4)),
        ("max(t, 4, 5)", (0, 10), (5, 10)),
        ("floor(t / 4)", (0, 10), (0, 2)),
        ("ceil(t / 4)", (0, 10), (0, 3)),
        ("sqrt(t)", (4, 9), (2, 3)),
        # without a wrap, and with one
        ("t % 60", (10, 50), (10, 50)),
        ("t % 60", (70, 110), (10, 50)),
        ("t % 60", (50, 59), (50, 59)),
        ("t % 60", (50, 60), (0, 60)),
        ("t % 60", (50, 70), (0, 60)),
        ("t % 60", (0, 1000), (0, 60)),
        ("t % 60", (-10, 10), (-10, 10)),
        ("t % 60", (-70, -50), (-60, 0)),
        ("t % -60", (70, 110), (10, 50)),
        ("t % infinity", (-10, 10), (-10, 10)),
        ("5 % t", (10, 20), (0, 5)),
        # a wave with its top or bottom inside
        ("sin(t)", (0, 100), (-1, 1)),
        ("sin(infinity + t)", (0, 1), (-1, 1)),
        # a moment is exact
        ("2 * t + 1", (3, 3), (7, 7)),
        ("t % 60", (61, 61), (1, 1)),
    ],
)
def test_intervals_are_tight(text: str, t: Interval, expected: Interval) -> None:
    low, high, _ = Machine(function(text)).over(t)
    assert (low, high) == expected


@pytest.mark.parametrize(
    ("text", "t", "expected"),
    [
        ("sin(t)", (0.1, 0.2), (math.sin(0.1), math.sin(0.2))),
        ("cos(t)", (0.1, 0.2), (math.cos(0.2), math.cos(0.1))),
        ("sin(t)", (0.1, 2), (math.sin(0.1), 1)),
        ("sin(t)", (3, 5), (-1, math.sin(3))),
        ("cos(t)", (-1, 0.5), (math.cos(-1), 1)),
        ("cos(t)", (2, 4), (-1, math.cos(2))),
        ("sin(t)", (1000.1, 1000.2), (math.sin(1000.1), math.sin(1000.2))),
        ("exp(t)", (-1, 1), (math.exp(-1), math.e)),
        ("ln(t)", (1, 10), (0, math.log(10))),
        ("5 * sin(t / 10) + 2", (0, 5), (2, 5 * math.sin(0.5) + 2)),
    ],
)
def test_intervals_of_inexact_functions_are_nearly_tight(
    text: str, t: Interval, expected: Interval
) -> None:
    low, high, surely = Machine(function(text)).over(t)
    assert (low, high) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert surely


@pytest.mark.parametrize(
    ("text", "surely"),
    [
        ("1 / (t + 1)", True),
        ("1 / t", False),
        ("1 % t", False),
        ("t % 60", True),
        ("sqrt(t + 1)", True),
        ("sqrt(t - 5)", False),
        ("ln(t + 1)", True),
        ("ln(t)", False),
        ("exp(t * 1000)", True),
        ("exp(t * 1000) - 1", False),
        ("sin(exp(t * 1000))", False),
        ("@load + t", False),  # it may be taken away
        ("0 * (1 / t)", False),
    ],
)
def test_what_surely_has_a_value(text: str, surely: bool) -> None:
    assert Machine(function(text)).over((0, 10), {"load": (0, 1)})[2] == surely


@pytest.mark.parametrize(
    "text",
    ["sqrt(-1 - t)", "ln(-t)", "t / 0", "t % 0", "@nobody + t", "1 + ln(-t)", "min(1, ln(-t))"],
)
def test_what_is_never_defined_is_nothing(text: str) -> None:
    assert Machine(function(text)).over((0, 10)) == (*NOTHING, False)


def test_the_logarithm_of_infinity_is_infinite() -> None:
    machine = Machine(function("ln(exp(1000 + t))"))
    assert machine.at_point(0.0, {}) == math.inf
    assert machine.over((0, 10))[:2] == (math.inf, math.inf)
