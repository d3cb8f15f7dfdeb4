from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import expressions, numbers, times
from tidegate.language.expressions import (
    CHOICES,
    FUNCTIONS,
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Environment,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Slot,
    Variable,
    children,
    evaluate,
    format_expression,
    leaves,
    rebuild,
)
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import Predicate
from tidegate.language.values import Value

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ENVIRONMENT = Environment(
    parameters={"p": 2, "big": 2**53 + 1, "s": "text", "yes": True, "at": NOON},
    variables={"load": 0.5},
    t=1.5,
    now=NOON,
)


def read(text: str) -> Expression:
    node = parse_filter(f"x < {text}")
    assert isinstance(node, Predicate)
    return node.operands[0]


def value_of(text: str, environment: Environment = ENVIRONMENT) -> Value | None:
    return evaluate(read(text), environment)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("3.5", 3.5),
        ("'a'", "a"),
        ("true", True),
        (":p", 2),
        (":yes", True),
        ("@load", 0.5),
        ("t", 1.5),
        ("now()", NOON),
        ("-:p", -2.0),
        ("-(3)", -3.0),
        ("- -3", 3.0),
        ("1 + 2", 3.0),
        ("1 - 2 - 3", -4.0),
        ("1 - (2 - 3)", 2.0),
        ("2 + 3 * 4", 14.0),
        ("(2 + 3) * 4", 20.0),
        ("2 * 3 % 4", 2.0),
        ("8 / 2 / 2", 2.0),
        ("-2 * -3", 6.0),
        ("2 - -3", 5.0),
        ("-t + 1", -0.5),
        ("1 / 4", 0.25),
        ("7 % 3", 1.0),
        ("-7 % 3", -1.0),
        ("7 % -3", 1.0),
        ("-7.5 % 2", -1.5),
        ("5 % infinity", 5.0),
        ("abs(-2)", 2.0),
        ("floor(-1.5)", -2.0),
        ("ceil(-1.5)", -1.0),
        ("floor(infinity)", math.inf),
        ("sqrt(9)", 3.0),
        ("exp(0)", 1.0),
        ("ln(1)", 0.0),
        ("sin(0)", 0.0),
        ("cos(0)", 1.0),
        ("min(3, 1, 2)", 1.0),
        ("max(3, :p)", 3.0),
    ],
)
def test_values(text: str, value: Value) -> None:
    found = value_of(text)
    assert found == value
    assert type(found) is type(value)


def test_a_bare_number_or_parameter_is_exact_and_arithmetic_is_not() -> None:
    assert value_of("9007199254740993") == 2**53 + 1
    assert value_of(":big") == 2**53 + 1
    assert value_of("9007199254740993 + 0") == 2.0**53
    assert value_of("-:big") == -(2.0**53)
    assert value_of("9223372036854775807") == 2**63 - 1
    assert value_of("-9223372036854775808") == -(2**63)


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "0 / 0",
        "1 / 0.0",
        "1 / -0.0",
        "1 % 0",
        "infinity % 2",
        "infinity - infinity",
        "infinity / infinity",
        "0 * infinity",
        ":missing",
        "@missing",
        ":missing + 1",
        "-:missing",
        "0 * :missing",
        "abs(@missing)",
        "min(1, :missing)",
        "max(:missing, 1)",
        "sqrt(-1)",
        "sqrt(-5e-324)",
        "ln(0)",
        "ln(-1)",
        "sin(infinity)",
        "cos(-infinity)",
        "-:s",
        ":s + 1",
        ":yes + 1",
        "abs(:yes)",
        "min(:s, 1)",
        "1 + 1 / 0",
        "-(1 / 0)",
        "abs(1 / 0)",
        "max(1, sqrt(-1))",
        ":at * 2",
        "2 - :at",
        ":at + :at",
        ":at + :s",
        ":at + :yes",
        ":at - :missing",
        "-:at",
        "floor(:at)",
        ":at + infinity",
        ":at + 1e300",
        ":at + 1e12",
        ":at - 1e12",
    ],
)
def test_undefined(text: str) -> None:
    assert value_of(text) is None


def test_now_is_undefined_where_the_time_is_not_known() -> None:
    assert value_of("now()", Environment()) is None
    assert value_of("now() - 5", Environment()) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e308 * 10", math.inf),
        ("-1e308 * 10", -math.inf),
        ("1e308 + 1e308", math.inf),
        ("1e308 / 1e-308", math.inf),
        ("exp(1000)", math.inf),
        ("exp(-1000)", 0.0),
        ("1 / (1e308 * 10)", 0.0),
        ("sqrt(infinity)", math.inf),
    ],
)
def test_overflow_is_infinity(text: str, value: float) -> None:
    assert value_of(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (":at + 1.5", NOON + timedelta(seconds=1.5)),
        ("1.5 + :at", NOON + timedelta(seconds=1.5)),
        (":at - 60", NOON - timedelta(minutes=1)),
        ("now() - t", NOON - timedelta(seconds=1.5)),
        ("timestamp '2026-01-02T12:00:00Z' + 0.000001", NOON + timedelta(microseconds=1)),
        ("timestamp '2026-01-02T12:00:01Z' - now()", 1.0),
        (":at - 5 - now()", -5.0),
        ("(now() - :at) * 2 + 1", 1.0),
    ],
)
def test_timestamps_and_seconds(text: str, value: Value) -> None:
    assert value_of(text) == value


@given(times, times)
def test_the_difference_of_two_timestamps_leads_from_one_to_the_other(
    a: datetime, b: datetime
) -> None:
    environment = Environment({"a": a, "b": b})
    seconds = value_of(":b - :a", environment)
    assert seconds == pytest.approx((b - a) / timedelta(seconds=1), rel=1e-15)
    if abs(b - a) < timedelta(days=36_500):  # as long as floats hold microseconds
        assert value_of(":a + (:b - :a)", environment) == b


@given(numbers, numbers)
def test_remainder_has_the_sign_of_the_dividend_and_is_smaller_than_the_divisor(
    a: float, b: float
) -> None:
    rest = evaluate(Arithmetic("%", Constant(a), Constant(b)), Environment())
    if b == 0 or math.isinf(a):
        assert rest is None
        return
    assert isinstance(rest, float)
    assert abs(rest) < abs(b)
    assert rest == 0 or (rest < 0) == (a < 0)


@given(expressions(), st.floats(allow_nan=False))
def test_no_expression_raises_or_gives_nan(expression: Expression, t: float) -> None:
    environment = Environment({"p": 3, "q": -0.0}, {"load": math.inf}, t, None)
    value = evaluate(expression, environment)
    assert value is None or value == value


def test_constants_differ_by_type() -> None:
    one: list[Value] = [1, 1.0, True, "1"]
    assert len({Constant(value) for value in one}) == 4
    assert Constant(1) != Constant(1.0)
    assert Constant(1) != Constant(True)
    assert Constant(1) != ParameterRef("1")
    assert Constant("a") == Constant("a")


def test_a_shape_has_no_value() -> None:
    with pytest.raises(TypeError, match="fill it with a row first"):
        evaluate(Slot(0), Environment())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Negated(Constant(5)), "-(5)"),
        (Negated(Constant(-5)), "--5"),
        (Negated(Constant(math.inf)), "-(infinity)"),
        (Negated(Constant(-math.inf)), "--infinity"),
        (Negated(Constant(-0.0)), "--0.0"),
        (Negated(Negated(Elapsed())), "--t"),
        (Negated(ParameterRef("p")), "-:p"),
        (Negated(Now()), "-now()"),
        (Negated(Slot(0)), "-?"),
        (Negated(Arithmetic("*", Elapsed(), Elapsed())), "-(t * t)"),
        (Arithmetic("-", Elapsed(), Negated(Elapsed())), "t - -t"),
        (Arithmetic("-", Elapsed(), Arithmetic("-", Elapsed(), Elapsed())), "t - (t - t)"),
        (Arithmetic("-", Arithmetic("-", Elapsed(), Elapsed()), Elapsed()), "t - t - t"),
        (Arithmetic("*", Arithmetic("+", Elapsed(), Elapsed()), Elapsed()), "(t + t) * t"),
        (Arithmetic("/", Elapsed(), Arithmetic("*", Elapsed(), Elapsed())), "t / (t * t)"),
        (Arithmetic("+", Elapsed(), Arithmetic("*", Elapsed(), Elapsed())), "t + t * t"),
        (Call("min", (Elapsed(), Variable("load"))), "min(t, @load)"),
    ],
)
def test_printing_with_no_more_parentheses_than_needed(expression: Expression, text: str) -> None:
    assert format_expression(expression) == text
    if "?" not in text:
        assert read(text) == expression


@given(expressions())
def test_what_is_printed_reads_back_the_same(expression: Expression) -> None:
    assert read(format_expression(expression)) == expression


@given(expressions())
def test_rebuilding_with_the_same_leaves_changes_nothing(expression: Expression) -> None:
    assert rebuild(expression, lambda leaf: leaf) == expression
    slots = rebuild(expression, lambda _: Slot(0))
    assert len(list(leaves(slots))) == len(list(leaves(expression)))
    assert all(isinstance(leaf, Slot) for leaf in leaves(slots))
    assert not any(children(leaf) for leaf in leaves(expression))


def test_every_function_is_one_of_the_normative_list() -> None:
    wanted = "min max abs floor ceil sqrt exp ln sin cos"
    assert sorted([*FUNCTIONS, *CHOICES]) == sorted(wanted.split())
