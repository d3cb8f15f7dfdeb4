from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import strategies
from tidegate.language.expression_kinds import kinds_of
from tidegate.language.expressions import Environment, evaluate
from tidegate.language.filters import parse
from tidegate.language.syntax import predicates
from tidegate.language.values import Kind, Value, kind_of

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("operand", "parameters", "kinds"),
    [
        ("3", {}, {"number"}),
        ("'a'", {}, {"string"}),
        ("true", {}, {"boolean"}),
        ("now()", {}, {"timestamp"}),
        ("3 + t", {}, {"number"}),
        (":p", {}, {"boolean", "number", "string", "timestamp"}),
        ("@load", {}, {"boolean", "number", "string", "timestamp"}),
        (":p", {"p": "a"}, {"string"}),
        (":p + 1", {"p": "a"}, set()),
        (":p + 1", {}, {"number", "timestamp"}),
        ("now() - :p", {}, {"number", "timestamp"}),
        ("now() - :p", {"p": NOON}, {"number"}),
        ("now() + :p", {"p": NOON}, set()),
        ("1 + now()", {}, {"timestamp"}),
        ("1 - now()", {}, set()),
        ("2 * now()", {}, set()),
        ("-:p", {"p": NOON}, set()),
        ("min(:p, 3)", {}, {"number"}),
        ("min(:p, 3)", {"p": True}, set()),
    ],
)
def test_the_kinds_of_expressions(
    operand: str, parameters: dict[str, Value], kinds: set[str]
) -> None:
    filter = parse(f"x = {operand}")
    (predicate,) = predicates(filter.node)
    shape, row = filter.shape_and_row
    for expression, filled in (
        (predicate.operands[0], ()),
        (shape.disjuncts[0][0].operands[0], row),
    ):
        assert {each.value for each in kinds_of(expression, filled, parameters)} == kinds


@given(st.data(), strategies.nodes(strategies.predicates(strategies.expressions())))
def test_the_kinds_include_that_of_each_value(data: Any, node: Any) -> None:
    names = st.sampled_from(strategies.PARAMETERS)
    parameters = data.draw(st.dictionaries(names, strategies.values))
    variables = data.draw(st.dictionaries(st.sampled_from(strategies.VARIABLES), strategies.values))
    environment = Environment(parameters, variables, 1.5, NOON)
    for predicate in predicates(node):
        for operand in predicate.operands:
            value = evaluate(operand, environment)
            kinds = kinds_of(operand, (), parameters)
            assert value is None or kind_of(value) in kinds <= set(Kind)
