from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from support.golden import messages
from tidegate.errors import FilterError
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Variable,
)
from tidegate.language.parsing.parser import Parser, parse_filter
from tidegate.language.syntax import Predicate

ONE, TWO, THREE = Constant(1), Constant(2), Constant(3)


def read(text: str) -> Expression:
    node = parse_filter(f"x = {text}")
    assert isinstance(node, Predicate)
    return node.operands[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("- 1", -1),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808.0", 2.0**63),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e5", 1e5),
        ("1E+5", 1e5),
        ("2.5e-3", 0.0025),
        ("1e-999", 0.0),
        ("-0", 0),
        ("-0.0", -0.0),
        ("5e-324", 5e-324),
        ("infinity", math.inf),
        ("Infinity", math.inf),
        ("-INFINITY", -math.inf),
        ("true", True),
        ("FALSE", False),
        ("'IBM'", "IBM"),
        ('"IBM"', "IBM"),
        ("''", ""),
        ("'it''s'", "it's"),
        ('"it\'s"', "it's"),
        ('"a""b"', 'a"b'),
        ("'a\\n'", "a\\n"),
        ("'line\nbreak'", "line\nbreak"),
        ("'\U0001f30a'", "\U0001f30a"),
        ("timestamp '2026-01-02T03:04:05Z'", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ('TimeStamp"2026-01-02"', datetime(2026, 1, 2, tzinfo=UTC)),
        ("timestamp '2026-01-02T03:04:05+03:00'", datetime(2026, 1, 2, 0, 4, 5, tzinfo=UTC)),
    ],
)
def test_constants(text: str, value: object) -> None:
    constant = read(text)
    assert isinstance(constant, Constant)
    assert (type(constant.value), repr(constant.value)) == (type(value), repr(value))


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        (":limit", ParameterRef("limit")),
        (":Limit", ParameterRef("Limit")),
        (":größe_1", ParameterRef("größe_1")),
        (":and", ParameterRef("and")),
        ("@load", Variable("load")),
        ("t", Elapsed()),
        ("T", Elapsed()),
        ("now()", Now()),
        ("NOW ( )", Now()),
        ("MIN(1, t)", Call("min", (ONE, Elapsed()))),
        ("max(1, 2, 3)", Call("max", (ONE, TWO, THREE))),
        ("-t", Negated(Elapsed())),
        ("-(1)", Negated(ONE)),
        ("- -1", Negated(Constant(-1))),
        ("(1)", ONE),
        ("((1))", ONE),
        ("1 + 2 + 3", Arithmetic("+", Arithmetic("+", ONE, TWO), THREE)),
        ("1 + (2 + 3)", Arithmetic("+", ONE, Arithmetic("+", TWO, THREE))),
        ("1 + 2 * 3", Arithmetic("+", ONE, Arithmetic("*", TWO, THREE))),
        ("1 * 2 + 3", Arithmetic("+", Arithmetic("*", ONE, TWO), THREE)),
        ("(1 + 2) * 3", Arithmetic("*", Arithmetic("+", ONE, TWO), THREE)),
        ("1 / 2 % 3", Arithmetic("%", Arithmetic("/", ONE, TWO), THREE)),
        ("1 - 2 * 3 - 1", Arithmetic("-", Arithmetic("-", ONE, Arithmetic("*", TWO, THREE)), ONE)),
        ("-t * 2", Arithmetic("*", Negated(Elapsed()), TWO)),
        ("2 * -t", Arithmetic("*", TWO, Negated(Elapsed()))),
        ("1-2", Arithmetic("-", ONE, TWO)),
        ("1--2", Arithmetic("-", ONE, Constant(-2))),
        ("-1-2", Arithmetic("-", Constant(-1), TWO)),
    ],
)
def test_expressions(text: str, expression: Expression) -> None:
    assert read(text) == expression


def test_literals_are_listed_in_the_order_of_the_text() -> None:
    parser = Parser("a in (-1, 'x', true, :p, infinity) and b > timestamp '2026-01-02' - 5")
    parser.filter()
    found = [(each.token.text, each.negated, each.timestamp) for each in parser.literals]
    assert found == [
        ("1", True, False),
        ("'x'", False, False),
        ("'2026-01-02'", False, True),
        ("5", False, False),
    ]


def test_a_parameter_may_have_any_kind_where_a_constant_may_not() -> None:
    assert str(parse_filter("x < :p * 2 and y like :q")) == "x < :p * 2 and y like :q"


@pytest.mark.parametrize(("text", "message"), messages("values"))
def test_messages(text: str, message: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert str(caught.value) == message


def test_lone_surrogates_are_refused() -> None:
    for text in ("x = '\ud800'", "x like 'a\udfff'"):
        with pytest.raises(FilterError, match="without lone surrogates"):
            parse_filter(text)
