"""Programs compute what the language says; `evaluate` is the oracle, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import VARIABLES, numbers
from support.time_functions import block_of, function, functions
from tidegate.language.expressions import (
    Arithmetic,
    Constant,
    Elapsed,
    Environment,
    Expression,
    as_float,
    evaluate,
)
from tidegate.language.syntax import Operator, Predicate, all_of
from tidegate.language.values import Value
from tidegate.matching.rows.encoding import encode_variables
from tidegate.matching.rows.entries.channels import Channels
from tidegate.matching.rows.entries.judgements import is_common
from tidegate.matching.rows.kernels.motion import (
    LINEAR,
    SHIFTED,
    MovingConstraint,
)
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    C_NOT_EQUAL,
    STACK_MAX,
    compare,
    run_program,
)

times = st.sampled_from([0.0, -0.0, 1e-6, 59.9, -3.5, 2.0**53, 1e308]) | st.floats(-1e12, 1e12)
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, numbers))


def compiled(expression: Expression, channels: Channels) -> MovingConstraint:
    """What `x < expression` is compiled to, on an attribute that moves."""
    if is_common(expression):  # it would be judged for each event, without a program
        expression = Arithmetic("+", Constant(0.0), expression)
    moves = Predicate("x", Operator.GREATER, (Elapsed(),))
    node = all_of([Predicate("x", Operator.LESS, (expression,)), moves])
    return next(each for each in block_of(node, channels).moving if each.comparison == C_LESS)


def run(expression: Expression, t: float = 0.0, known: Mapping[str, Value] | None = None) -> float:
    """What the machine computes."""
    channels = Channels()
    found = compiled(expression, channels)
    constants = np.array([column[0] for column in found.constants])
    if found.program == LINEAR:
        return float(constants[0] + constants[1] * t)
    program = np.array(channels.program, np.int32)
    values = encode_variables(known or {}, channels)
    stack = np.empty(STACK_MAX)
    if found.program & SHIFTED:
        place = found.program ^ SHIFTED
        return float(constants[0]) + run_program(program, place, constants, 1, t, values, 0, stack)
    return run_program(program, found.program, constants, 0, t, values, 0, stack)


@given(functions(), times, variables)
@example(function("floor(-0.5)"), 0.0, {})
@example(function("ceil(-0.5)"), 0.0, {})
@example(function("min(t, -t)"), 0.0, {})
@example(function("max(-t, t)"), 0.0, {})
@example(function("sqrt(-t)"), 0.0, {})
@example(function("sin(t)"), 1e308, {})
@example(function("t % -infinity"), 2.5, {})
@example(function("exp(@load) - exp(@load)"), 0.0, {"load": 1000})
def test_a_program_computes_what_the_language_says(
    expression: Expression, t: float, known: dict[str, Value]
) -> None:
    """Bit by bit, but for the sign of zero, which nothing in the language can tell."""
    expected = as_float(evaluate(expression, Environment(variables=known, t=t)))
    found = run(expression, t, known)
    assert found == expected or (expected is None and math.isnan(found))


@pytest.mark.parametrize(
    "text",
    [
        "1 / t",
        "1 / -t",
        "t / t",
        "1 % t",
        "infinity % 3",
        "-infinity % 3",
        "infinity - infinity",
        "infinity + -infinity",
        "infinity * t",
        "infinity / infinity",
        "sqrt(-1e-300)",
        "sqrt(-infinity)",
        "ln(t)",
        "ln(-1)",
        "sin(infinity)",
        "cos(-infinity)",
        "@nobody + 1",
        "@mode * 2",
        # and all that is computed from it
        "0 * (1 / t)",
        "min(1, 1 / t)",
        "max(1 / t, 1)",
        "min(1, 2, 1 / t, 3)",
        "abs(1 / t)",
        "floor(1 / t)",
        "-(1 / t)",
        "exp(1 / t)",
        "(1 / t) % 3",
        "3 % (1 / t)",
    ],
)
def test_what_is_undefined_is_nan(text: str) -> None:
    environment = Environment(variables={"mode": "busy"})
    assert evaluate(function(text), environment) is None
    assert math.isnan(run(function(text), 0.0, environment.variables))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("exp(1000)", math.inf),
        ("exp(-1000)", 0.0),
        ("1e308 * 10", math.inf),
        ("-1e308 - 1e308", -math.inf),
        ("1 / infinity", 0.0),
        ("ln(infinity)", math.inf),
        ("sqrt(infinity)", math.inf),
        ("floor(-infinity)", -math.inf),
        ("min(infinity, -infinity)", -math.inf),
        ("5 % infinity", 5.0),
        ("-7 % 3", -1.0),
        ("7 % -3", 1.0),
        ("floor(-2.5)", -3.0),
        ("ceil(-2.5)", -2.0),
        ("max(1, 5, 3)", 5.0),
        ("9007199254740993 + 0", 2.0**53),
        ("1 - 2 - 3", -4.0),
        ("2 - 3 * 4 / (1 + 5) % 7", 0.0),
    ],
)
def test_edges_have_values(text: str, value: float) -> None:
    assert run(function(text)) == value == evaluate(function(text), Environment())


@pytest.mark.parametrize(
    ("comparison", "meaning"),
    [
        (C_EQUAL, eq),
        (C_NOT_EQUAL, ne),
        (C_LESS, lt),
        (C_LESS_EQUAL, le),
        (C_GREATER, gt),
        (C_GREATER_EQUAL, ge),
    ],
)
def test_comparisons(comparison: int, meaning: Callable[[float, float], bool]) -> None:
    edges = [-math.inf, -1.0, -0.0, 0.0, 5e-324, 1.0, math.inf]
    for value in edges:
        for bound in edges:
            assert compare(comparison, value, bound) == meaning(value, bound)
