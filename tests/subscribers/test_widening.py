from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import neighbours
from tidegate.errors import UnresolvedError
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Environment,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Variable,
    evaluate,
)
from tidegate.language.filters import parse
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node, Operator, Predicate, all_of, any_of
from tidegate.language.values import Value, from_us
from tidegate.subscribers.dead_reckoning import Band
from tidegate.subscribers.widening import BandNames, widen

P, Q = BandNames("p_low", "p_high", "p_rate"), BandNames("q_low", "q_high")
BANDS = {"p": P, "q": Q}


@pytest.mark.parametrize(
    ("text", "wide"),
    [
        ("x < :q", "x < :q_high"),
        ("x <= :q - 3", "x <= :q_high - 3"),
        ("x > :q", "x > :q_low"),
        ("x >= 3 - :q", "x >= 3 - :q_high"),
        ("x = :q", "x between :q_low and :q_high"),
        ("x != :q", "x is not null"),
        ("x between :q - 3 and :q + 3", "x between :q_low - 3 and :q_high + 3"),
        ("not x between :q - 3 and :q + 3", "x not between :q_high - 3 and :q_low + 3"),
        ("x in (1, :q, 3)", "x between :q_low and :q_high or x in (1, 3)"),
        ("x not in (1, :q, 2 * :q)", "x is not null and x not in (1)"),
        ("x < :p", "x < :p_high + :p_rate * t"),
        ("x > :p + :q", "x > :p_low + :p_rate * t + :q_low"),
        ("x < 2 * :q", "x < 2 * :q_high"),
        ("x < :q * -2", "x < :q_low * -2"),
        ("x < :q / 4", "x < :q_high / 4"),
        ("x < :q * @load", "x < max(:q_low * @load, :q_high * @load)"),
        ("x > :q / @load", "x > min(:q_low / @load, :q_high / @load)"),
        ("x < -:q", "x < -:q_low"),
        ("x < min(:q, 5)", "x < min(:q_high, 5)"),
        ("x > abs(:q)", "x > max(:q_low, -:q_high, 0)"),
        ("x < abs(:q)", "x < max(abs(:q_low), abs(:q_high))"),
        ("x > sqrt(:q)", "x > sqrt(max(:q_low, 0))"),
        ("x > floor(:q) and y < ceil(:q)", "x > floor(:q_low) and y < ceil(:q_high)"),
        ("time > now() - :q", "time > now() - :q_high"),
        ("x < 5 + t and y like 'a%' or z = :r", "x < 5 + t and y like 'a%' or z = :r"),
    ],
)
def test_the_bound_that_matches_more_is_taken(text: str, wide: str) -> None:
    assert widen(parse(text).node, BANDS) == parse(wide).node


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "x < 1 / :q",
            "in `x < 1 / :q`, the range of `1 / :q` over a band of values is not known. Use",
        ),
        ("x < 5 + sin(2 * :q)", "the range of `sin(2 * :q)`"),
        ("x < exp(:q)", "the range of `exp(:q)`"),
        ("x = :q % 5", "the range of `:q % 5`"),
        ("x in (1, ln(:q))", "the range of `ln(:q)`"),
        ("x like :q", "`x like :q` needs a string, and a band is of numbers; make it a plain"),
        ("x < " + " * ".join([":q"] * 9), "have more than 256 operands"),
    ],
)
def test_expressions_without_known_bounds_are_refused(text: str, reason: str) -> None:
    with pytest.raises(UnresolvedError) as caught:
        widen(parse(text).node, BANDS)
    assert reason in str(caught.value)


def test_names_avoid_those_that_are_taken() -> None:
    taken = ["x", "x_low", "x_low_", "x_rate"]
    assert BandNames.named("x", taken, has_rate=True) == BandNames("x_low__", "x_high", "x_rate_")
    assert BandNames.named("x", taken, has_rate=True).names == ("x_low__", "x_high", "x_rate_")


# -- soundness --------------------------------------------------------------------------------

numbers = st.one_of(
    st.integers(-5, 5),
    st.floats(-100, 100),
    st.sampled_from([0.1, -0.0, 1e-9, 2**53, 2**53 + 1, -(2**53) - 1]),
)
banded = st.sampled_from([ParameterRef("p"), ParameterRef("q")])
plain: st.SearchStrategy[Expression] = st.one_of(
    numbers.map(Constant), st.sampled_from([Elapsed(), Variable("load"), ParameterRef("other")])
)
divisors = st.sampled_from([Constant(3), Constant(-0.5), Variable("load"), ParameterRef("other")])


def negated(expression: Expression) -> Expression:
    """The parser reads `-3` as a constant, so no tree negates one."""
    return expression if isinstance(expression, Constant) else Negated(expression)


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(Arithmetic, st.sampled_from("++--**"), inner, inner),
        st.builds(Arithmetic, st.just("/"), inner, divisors),
        inner.map(negated),
        st.builds(Call, st.sampled_from(["min", "max"]), st.tuples(inner, inner)),
        st.builds(Call, st.sampled_from(["abs", "floor", "ceil"]), st.tuples(inner)),
    )


def with_square_roots(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Also roots of what may be negative, where the exact filter is undefined."""
    return larger(inner) | st.builds(Call, st.just("sqrt"), st.tuples(inner))


leaves = banded | banded | plain
defined_operands = st.recursive(leaves, larger, max_leaves=5)
operands = st.recursive(leaves, with_square_roots, max_leaves=5)
_ONE = ["=", "!=", "<", "<=", ">", ">="]
predicates = st.one_of(
    st.builds(Predicate, st.sampled_from("xy"), st.sampled_from(list(map(Operator, _ONE))),
              st.tuples(operands)),
    st.builds(Predicate, st.sampled_from("xy"),
              st.sampled_from([Operator.BETWEEN, Operator.NOT_BETWEEN]),
              st.tuples(operands, operands)),
    st.builds(Predicate, st.sampled_from("xy"), st.sampled_from([Operator.IN, Operator.NOT_IN]),
              st.lists(operands, min_size=1, max_size=3).map(tuple)),
)  # fmt: skip
trees = st.lists(st.lists(predicates, min_size=1, max_size=2).map(all_of), min_size=1, max_size=2)
values = st.one_of(st.integers(-9, 9), st.floats(-100, 100), st.just(2**53 + 1))
centres = st.tuples(values, st.sampled_from([0.0, 0.5, 3, 1e-9]), st.sampled_from([0.0, 1.5, -2]))
"""A value, the tolerance of its band, and the rate of the band."""


def parameters_of(
    p: tuple[float, float, float], q: tuple[float, float, float], t: float
) -> tuple[dict[str, Value], dict[str, Value]]:
    """The true values, and the bounds of the bands around them that are sent."""
    moved = p[2] * t
    p_band = Band(p[0] - p[1] - moved, p[0] + p[1] - moved, p[2])
    if not p_band.contains(p[0], t):  # by rounding; `Track` falls back to a static band too
        p_band = Band.static(p[0], p[1])
    q_band = Band.static(q[0], q[1])
    sent: dict[str, Value] = {
        "p_low": p_band.low, "p_high": p_band.high, "p_rate": p_band.rate,
        "q_low": q_band.low, "q_high": q_band.high,
    }  # fmt: skip
    return {"p": p[0], "q": q[0], "other": 4.0}, {**sent, "other": 4.0}


@given(
    trees.map(any_of), centres, centres, st.floats(0, 1e4), st.data(), st.sampled_from([-2, 0.5])
)
def test_whatever_matches_exactly_matches_the_widened_filter(
    node: Node,
    p: tuple[float, float, float],
    q: tuple[float, float, float],
    t: float,
    data: st.DataObject,
    load: float,
) -> None:
    wide = widen(node, BANDS)
    assert parse_filter(str(wide)) == wide
    true, sent = parameters_of(p, q, t)
    exact = Environment(true, {"load": load}, t)
    near = [each for each in aimed(node, exact) if each is not None]
    event = data.draw(
        st.fixed_dictionaries({}, optional=dict.fromkeys("xy", st.sampled_from(near)))
    )
    if holds(node, event, exact):
        assert holds(wide, event, Environment(sent, {"load": load}, t))


def aimed(node: Node, environment: Environment) -> list[Value]:
    """Values at the bounds of a filter and right beside them."""
    values: list[Value] = [0, 7.5]
    for part in _predicates(node):
        for operand in part.operands:
            value = evaluate(operand, environment)
            values += [] if value is None else neighbours(value)
    return values


def _predicates(node: Node) -> list[Predicate]:
    if isinstance(node, Predicate):
        return [node]
    return [each for part in getattr(node, "parts", ()) for each in _predicates(part)]


@given(defined_operands, st.sampled_from(["=", "<", "<=", ">", ">="]), values, st.data())
@example(parse_filter("x > abs(:q)").operands[0], ">", -3, None)  # type: ignore[union-attr]
def test_a_band_without_width_is_exact(
    operand: Expression, operator: str, value: float, data: st.DataObject | None
) -> None:
    """Bounds are no wider than necessary, and rounding does not widen them."""
    node = Predicate("x", Operator(operator), (operand,))
    wide = widen(node, {"p": BandNames("p_low", "p_high"), "q": Q})
    parameters: dict[str, Value] = dict.fromkeys(["p", "p_low", "p_high"], value)
    parameters |= dict.fromkeys(["q", "q_low", "q_high"], float(value))
    environment = Environment({**parameters, "other": 4.0}, {"load": 0.5}, 2.0)
    assert evaluate(operand, environment) is not None
    near = aimed(node, environment)
    for x in near if data is None else [data.draw(st.sampled_from(near))]:
        assert holds(node, {"x": x}, environment) == holds(wide, {"x": x}, environment)


def test_times_are_widened_too() -> None:
    node = parse_filter("sent > now() - :q")
    noon = from_us(1_800_000_000_000_000)
    event = {"sent": from_us(1_800_000_000_000_000 - 9_500_000)}
    assert isinstance(node, Predicate)
    assert isinstance(node.operands[0], Arithmetic)
    assert node.operands[0].left == Now()
    sent = {"q_low": 9.0, "q_high": 10.0}
    assert holds(widen(node, BANDS), event, Environment(sent, now=noon))  # type: ignore[arg-type]
