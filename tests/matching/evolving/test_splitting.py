"""The static part of a filter and the rest, and the attributes that trigger evaluation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import (
    PARAMETERS,
    VARIABLES,
    events_aimed_at,
    expressions,
    nodes,
    predicates,
    values,
)
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter, parse
from tidegate.language.semantics import holds
from tidegate.matching.evolving.splitting import split_static, triggers_of


@pytest.mark.parametrize(
    ("text", "static", "rest"),
    [
        ("a = 1 and x < t", "a = 1 and x is not null", "x < t"),
        ("x < t", "x is not null", "x < t"),
        ("a = :p and x < :q + t and x > 0", "a = :p and x is not null and x > 0", "x < :q + t"),
        ("a = 1 and m = @mode", "a = 1 and m is not null", "m = @mode"),
        ("w > now() and a = 1", "w is not null and a = 1", "w > now()"),
        # below an `or` only the whole can decide
        ("a = 1 or x < t", "a = 1 or x is not null", "a = 1 or x < t"),
        (
            "b = 2 and (a = 1 or x < t)",
            "b = 2 and (a = 1 or x is not null)",
            "a = 1 or x < t",
        ),
    ],
)
def test_static_part_and_rest(text: str, static: str, rest: str) -> None:
    found, evolving = split_static(parse(text))
    assert (str(found), str(evolving)) == (static, rest)
    assert not found.evolves


open_nodes = nodes(st.one_of(predicates(), predicates(expressions())))
some = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variables = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))


@given(st.data())
def test_an_event_matches_a_filter_if_it_matches_both_parts(data: st.DataObject) -> None:
    filter = Filter(data.draw(open_nodes))
    static, rest = split_static(filter)
    event = data.draw(events_aimed_at(filter.node))
    environment = Environment(
        data.draw(some), data.draw(variables), data.draw(st.floats(-5, 5, allow_nan=False))
    )
    both = holds(static.node, event, environment) and holds(rest, event, environment)
    assert both == holds(filter.node, event, environment)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", set()),
        ("m = @mode", set()),  # variables are live whatever the mode
        ("x < t and y > 3 and z between t and 2 * t", {frozenset("xz")}),
        ("x < t or (y < now() and a = 1) or b = 2", {frozenset("x"), frozenset("y")}),
        ("a = 1 and (x < t or y < t)", {frozenset("x"), frozenset("y")}),
        ("not x between t and 9", {frozenset("x")}),
    ],
)
def test_the_attributes_that_trigger_evaluation(text: str, expected: set[object]) -> None:
    assert triggers_of(parse(text).shape_and_row[0]) == expected
