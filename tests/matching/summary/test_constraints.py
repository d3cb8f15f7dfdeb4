from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strategies import aimed_values, predicates
from tidegate.language.algebra.normal_form import ground_values
from tidegate.language.filters import parse
from tidegate.language.syntax import Predicate
from tidegate.language.values import Value
from tidegate.matching.summary.channels import KIND_OF_TYPE, as_float, is_exact
from tidegate.matching.summary.constraints import Constraint, PatternTerm, constraint_of
from tidegate.matching.summary.tables import ChannelKind


def of_x(text: str) -> Constraint:
    (conjunction,) = parse(text).normal_form.conjunctions
    return constraint_of(conjunction.sets["x"])


def bounds(text: str) -> list[tuple[float, float, bool]]:
    return [(p.low, p.high, p.exact) for p in of_x(text) if not isinstance(p, PatternTerm)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = 5", [(5.0, 5.0, True)]),
        ("x between 1 and 5 and x < 3", [(1.0, math.nextafter(3, 0), True)]),
        ("x in (1, 2)", [(1.0, 1.0, True), (2.0, 2.0, True)]),
        ("x <= 5", [(-math.inf, 5.0, True)]),
        ("x = 9007199254740993", [(2.0**53, 2.0**53 + 2, False)]),
        ("x > 9007199254740992", [(2.0**53, math.inf, False)]),
        ("x < 9007199254740993", [(-math.inf, 2.0**53, False)]),
        ("x != 9007199254740993",
         [(-math.inf, 2.0**53, False), (2.0**53 + 2, math.inf, False)]),
        ("x != 9007199254740994", [(-math.inf, math.inf, False)]),
        ("x = true", [(1.0, 1.0, True)]),
        ("x in (true, false)", [(0.0, 1.0, True)]),
        ("x > timestamp '1970-01-01T00:00:01Z' and x <= timestamp '1970-01-01T00:00:02Z'",
         [(1_000_001.0, 2_000_000.0, True)]),
    ],
)  # fmt: skip
def test_bounds(text: str, expected: list[tuple[float, float, bool]]) -> None:
    assert bounds(text) == expected


def test_presence_is_every_value_of_every_kind() -> None:
    terms = of_x("x is not null")
    assert [each.exact for each in terms] == [True] * 4
    assert [each.kind for each in terms if not isinstance(each, PatternTerm)] == list(ChannelKind)[
        :3
    ]


@given(predicates(), st.data())
def test_terms_hold_what_the_constraint_holds(predicate: Predicate, data: st.DataObject) -> None:
    values = ground_values(predicate)
    value: Value = data.draw(st.sampled_from(aimed_values(predicate)))
    kind = KIND_OF_TYPE[type(value)]
    fitting: list[bool] = []
    for term in constraint_of(values):
        if isinstance(term, PatternTerm):
            fits = isinstance(value, str) and term.pattern.fits(value)
        else:
            fits = term.kind is kind and term.low <= as_float(value) <= term.high
        fitting += [term.exact] * fits
    assert fitting or not values.contains(value)
    rounded = kind is not ChannelKind.STRING and not is_exact(as_float(value))
    assert values.contains(value) or rounded or not any(fitting)
