from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.strategies import (
    PARAMETERS,
    VARIABLES,
    constants,
    events_aimed_at,
    expressions,
    functions_of_time,
    neighbours,
    nodes,
    numbers,
    predicates,
)
from tidegate import BadValueError, Filter, UnresolvedError, parse
from tidegate.language.expressions import (
    Arithmetic,
    Constant,
    Elapsed,
    Environment,
    Expression,
    evaluate,
)
from tidegate.language.syntax import Node, map_leaves
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value

Event = dict[str, Value]

steady = st.integers(-3, 3).map(Constant)
lines = st.builds(
    Arithmetic,
    st.just("+"),
    steady,
    st.builds(Arithmetic, st.just("*"), steady, st.just(Elapsed())),
)
evolving_values = lines | functions_of_time() | constants(numbers)
evolving = nodes(predicates(evolving_values)).map(Filter)
evolving_lines = nodes(predicates(lines | steady, patterns=False)).map(Filter)

elapsed_ranges = st.tuples(
    st.integers(-3, 3).map(float), st.sampled_from([0.0, 0.5, 1.0, 4.0, 100.0])
).map(lambda pair: (pair[0], pair[0] + pair[1]))
leads = st.sampled_from([0.0, 1.0, -1.5, 0.1, 1e16])


def moments(start: float, end: float) -> list[float]:
    return [start + (end - start) * step / 4 for step in range(5)]


def events_at(t: float, *nodes: Node) -> Iterator[Event]:
    """Events at and beside the bounds as they are at a moment."""
    operands = {
        operand
        for node in nodes
        for predicate in predicates_of(node)
        for operand in predicate.operands
    }
    bounds = [evaluate(operand, Environment(t=t)) for operand in operands]
    values = {near for bound in bounds if bound is not None for near in neighbours(bound)}
    for value in values:
        yield dict.fromkeys(("a", "b", "c.d"), value)


# -- estimates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "over", "under"),
    [
        ("x < t", "x < 10.0", "x < 0.0"),
        ("x <= 3 - t", "x <= 3.0", "x <= -7.0"),
        ("x > 2 * t", "x > 0.0", "x > 20.0"),
        ("x >= t", "x >= 0.0", "x >= 10.0"),
        ("x = t", "x between 0.0 and 10.0", "false"),
        ("x = 0 * t", "x between 0.0 and 0.0", "x = 0.0"),
        ("x != t", "x >= -infinity", "x not between 0.0 and 10.0"),
        ("x != 0 * t", "x != 0.0", "x not between 0.0 and 0.0"),
        ("x between -3 + t and 3 + t", "x >= -3.0 and x <= 13.0", "x >= 7.0 and x <= 3.0"),
        ("x not between t and 3 + t", "x < 10.0 or x > 3.0", "x < 0.0 or x > 13.0"),
        ("x in (t, 20)", "x between 0.0 and 10.0 or x = 20", "x = 20"),
        (
            "x not in (t, 20)",
            "x >= -infinity and x != 20",
            "x not between 0.0 and 10.0 and x != 20",
        ),
        ("x < 5 and s like 'a%'", "x < 5 and s like 'a%'", "x < 5 and s like 'a%'"),
        ("x < t and y = 1", "x < 10.0 and y = 1", "x < 0.0 and y = 1"),
        # not defined everywhere
        ("x < sqrt(t - 6)", "x < 2.0", "false"),
        ("x < 1 / t", "x is not null", "false"),
        # what the broker will only know then
        ("x < @load", "x is not null", "false"),
        ("x < min(@load, 5)", "x < 5.0", "false"),
        ("at > now()", "at is not null", "false"),
        ("at > timestamp '2026-01-02T03:04:05Z' + t", "at is not null", "false"),
        ("s = :p", "s is not null", "false"),
        ("s like @pattern", "s is not null", "false"),
    ],
)
def test_estimates_over_ten_seconds(text: str, over: str, under: str) -> None:
    assert str(parse(text).over_estimate(0, 10)) == over
    assert str(parse(text).under_estimate(0, 10)) == under


def test_an_estimate_of_a_moment_is_the_filter_at_that_moment() -> None:
    evolving = parse("x between -3 + t and 3 + t and y < 2 * t")
    for estimate in (evolving.over_estimate(1.5, 1.5), evolving.under_estimate(1.5, 1.5)):
        assert estimate.equals(evolving.at(t=1.5))


@given(evolving, elapsed_ranges)
def test_estimates_are_never_refuted(filter: Filter, elapsed: tuple[float, float]) -> None:
    over, under = filter.over_estimate(*elapsed), filter.under_estimate(*elapsed)
    assert not over.evolves
    assert not under.evolves
    for t in moments(*elapsed):
        for event in events_at(t, filter.node, over.node, under.node):
            matches = filter.matches(event, t=t)
            assert over.matches(event) or not matches
            assert matches or not under.matches(event)


@given(st.lists(predicates(lines | steady), min_size=1, max_size=2), elapsed_ranges)
def test_an_over_estimate_covers_every_moment(
    constraints: list[Node], elapsed: tuple[float, float]
) -> None:
    for constraint in constraints:
        filter = Filter(constraint)
        over, under = filter.over_estimate(*elapsed), filter.under_estimate(*elapsed)
        for t in moments(*elapsed):
            assert over.covers(filter.at(t=t))
            assert filter.at(t=t).covers(under)


# -- whatever is not known ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "relaxed", "with_parameters"),
    [
        ("x < :p", "x is not null", "x < :p"),
        ("x < @v", "x is not null", "x is not null"),
        ("x < 5 + t and y = 1", "x < 5 + t and y = 1", "x < 5 + t and y = 1"),
        ("x < now() - :p", "x is not null", "x < now() - :p"),
        ("x < t * @v + :p", "x is not null", "x is not null"),
        ("x between :p and @v", "x is not null and x is not null", "x >= :p and x is not null"),
        ("x between 1 and :p", "x >= 1 and x is not null", "x between 1 and :p"),
        ("x not between @v and t", "x is not null or x > t", "x is not null or x > t"),
        ("x in (1, :p)", "x is not null", "x in (1, :p)"),
        ("x not in (1, @v)", "x is not null", "x is not null"),
        ("x in (@v)", "x is not null", "x is not null"),
        ("s like :p or s ends with 'a'", "s is not null or s ends with 'a'",
         "s like :p or s ends with 'a'"),
        ("x = 1 and (y < @v or z < :p)", "x = 1 and (y is not null or z is not null)",
         "x = 1 and (y is not null or z < :p)"),
    ],
)  # fmt: skip
def test_relaxed(text: str, relaxed: str, with_parameters: str) -> None:
    assert str(parse(text).relaxed()) == relaxed
    assert str(parse(text).relaxed(keep_parameters=True)) == with_parameters


some_values = st.sampled_from([-1, 0, 2, 0.5, "a", True]) | numbers


@given(
    nodes(predicates(expressions() | constants())).map(Filter),
    st.dictionaries(st.sampled_from(PARAMETERS), some_values),
    st.dictionaries(st.sampled_from(VARIABLES), some_values),
    st.data(),
)
def test_what_is_relaxed_matches_no_less(
    filter: Filter, parameters: Event, variables: Event, data: st.DataObject
) -> None:
    known = {name: parameters[name] for name in filter.parameters if name in parameters}
    event = data.draw(events_aimed_at(filter.at(known, variables=variables, t=2.0).node))
    matches = filter.matches(event, known, variables=variables, t=2.0)
    assert filter.relaxed().matches(event, t=2.0) or not matches
    kept = filter.relaxed(keep_parameters=True)
    assert kept.matches(event, known, t=2.0) or not matches
    assert not kept.variables
    assert not filter.relaxed().parameters
    if not filter.variables and not filter.parameters:
        assert filter.relaxed() == filter


# -- covering -----------------------------------------------------------------------------------

GAME = "x >= -3 + t and x <= 3 + t and y >= -2 + t and y <= 2 + t"


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("x between -3 + t and 3 + t", "x between -2 + t and 2 + t"),
        ("x between -3 - 2 * t and 3 - 2 * t", "x between -2 - 2 * t and 2 - 2 * t"),
        ("x between -3 + t and 3 + t", "x between -3 + t and 3 + t and y = 1"),
        ("x between -3 + t and 3 + t", "x = t"),
        ("x < t", "x < t - 1"),
        ("x < t + 5", "x <= t and x < t"),
        ("x != t", "x < t"),
        ("x != t", "x > t + 1"),
        ("x is not null", "x < t"),
        ("x >= 0", "x > t"),
        ("x < 5 + t", "x < 5"),
        ("x < 2 * t + 1 or y > t", "x < 2 * t and z = 1"),
        ("x in (t, 5)", "x in (t, 5)"),
        ("x < @load", "x < @load and y < t"),
        ("gust > 20 + 4 * sin(t / 7)", "gust > 21 + 4 * sin(t / 7)"),
        ("gust > 10 - 4 * cos(t / 7)", "gust > 15"),
        ("price < min(t, 100)", "price < min(t, 50)"),
        (GAME, "x >= -2 + t and x <= 2 + t and y >= -1 + t and y <= 1 + t"),
        (GAME, GAME),
        ("x < t", "false"),
        ("s like 'N%' and x < t", "s like 'NY%' and x < t"),
    ],
)
def test_one_covers_the_other_for_good(wide: str, narrow: str) -> None:
    a, b = parse(wide), parse(narrow)
    assert a.covers_during(b, 0, 1e6)
    assert a.covers_during(b, 0, math.inf)
    assert a.covers_during(b, 5, 5)


@pytest.mark.parametrize(
    ("a", "b", "start", "end", "covers"),
    [
        ("x < 10 + t", "x < 2 * t", 0, 9.5, True),  # they meet at t = 10
        ("x < 10 + t", "x < 2 * t", 0, 11, False),
        ("x < 2 * t", "x < 10 + t", 11, 60, True),
        ("x > 10 - t", "x > t", 5.5, 60, True),
        ("x > 10 - t", "x > t", 4, 60, False),
        ("x < 5", "x < t", 0, 5, True),
        ("x < 5", "x < t", 0, 5.1, False),
        ("x < 3 + sin(t)", "x < 2", 0, 60, True),
        ("x < 3 + sin(t)", "x < 2.5", 0, 3, True),
        ("x < 3 + sin(t)", "x < 2.5", 0, 6, False),
        (GAME, "x between 0 and 3 and y between 0 and 2", 0, 2, True),
        (GAME, "x between 0 and 3 and y between 0 and 2", 0, 3, False),
        ("x not in (t, 20)", "x = 3", 0, 10, False),
        ("x not in (t, 20)", "x = 30", 0, 10, True),
        ("x = 1", "x < t and x > t", 0, 10, False),
        ("x = 1", "x < -1 - t and x > t", 0, 10, True),  # which nothing ever matches
    ],
)
def test_covering_depends_on_the_elapsed_range(
    a: str, b: str, start: float, end: float, covers: bool
) -> None:
    assert parse(a).covers_during(parse(b), start, end) == covers


@pytest.mark.parametrize(
    ("wide", "narrow", "lead", "covers"),
    [
        ("x < 3 + t", "x < t", 3.0, False),  # equal, but for rounding
        ("x < 3 + t", "x < t", 2.0, False),
        ("x < t", "x < t", -1.0, True),
        ("x < t", "x < t", 1.0, False),
        ("x > t", "x > t", 1.0, True),
        ("x between -9 + t and 9 + t", "x between -3 + t and 3 + t", 0.0, True),
        ("x < @load", "x < @load", 7.0, True),
        ("x < 5", "x < 4", 7.0, True),
    ],
)
def test_the_clocks_may_differ(wide: str, narrow: str, lead: float, covers: bool) -> None:
    assert parse(wide).covers_during(parse(narrow), 0, 1000, lead=lead) == covers


def test_where_the_careful_answer_is_given() -> None:
    # bounds that touch inside of the elapsed range
    assert not parse("x < 10 + t").covers_during(parse("x < 2 * t"), 0, 10)
    # what only several disjuncts together cover
    assert not parse("x < t or x >= t").covers_during(parse("x = 5"), 0, 10)
    # two windows of equal width, one of whose clocks is ahead
    window = parse("x between -3 + t and 3 + t")
    assert not parse("x between -2 + t and 4 + t").covers_during(window, 0, 1000, lead=1.0)
    # times that move
    early, late = parse("at > now() - 60"), parse("at > now() - 30")
    assert not early.covers_during(late, 0, 10)


def test_parameters_must_have_values() -> None:
    with pytest.raises(UnresolvedError, match=r"depends on :p: bind its parameters"):
        parse("x < :p").covers_during(parse("x < :p"), 0, 1)
    with pytest.raises(UnresolvedError, match=r"depends on :p: bind its parameters"):
        parse("x < t").covers_during(parse("x < :p"), 0, 1)
    assert parse("x < :p + t").bind(p=3).covers_during(parse("x < :p + t").bind(p=2), 0, 60)


def test_an_elapsed_range_has_a_direction() -> None:
    with pytest.raises(BadValueError, match=r"an elapsed range cannot go from 2\.0 to 1\.0"):
        parse("x < t").over_estimate(2, 1)


@given(evolving, evolving, elapsed_ranges, leads)
@example(parse("a not in (t, 20)"), parse("a = 3"), (0.0, 10.0), 0.0)
def test_covering_is_never_refuted(
    a: Filter, b: Filter, elapsed: tuple[float, float], lead: float
) -> None:
    check_covering(a, b, elapsed, lead)


@given(evolving_lines, evolving_lines, elapsed_ranges, leads)
def test_covering_of_lines_is_never_refuted(
    a: Filter, b: Filter, elapsed: tuple[float, float], lead: float
) -> None:
    assert a.covers_during(a, *elapsed)
    check_covering(a, b, elapsed, lead)


@given(evolving_lines, elapsed_ranges, st.sampled_from([0.0, 1.0, -0.5]), st.data())
def test_covering_of_parallel_filters_is_never_refuted(
    a: Filter, elapsed: tuple[float, float], lead: float, data: st.DataObject
) -> None:
    def nudged(leaf: Expression) -> Expression:
        step = data.draw(st.sampled_from([0, 0, 0, 1, -1, 0.5, 1e-16]))
        if isinstance(leaf, Constant) and isinstance(leaf.value, (int, float)):
            return Constant(leaf.value + step)
        return leaf

    check_covering(a, Filter(map_leaves(a.node, nudged)), elapsed, lead)


def check_covering(a: Filter, b: Filter, elapsed: tuple[float, float], lead: float) -> None:
    if a.covers_during(b, *elapsed, lead=lead):
        for t in moments(*elapsed):
            for event in (*events_at(t, a.node), *events_at(t + lead, b.node)):
                assert a.matches(event, t=t) or not b.matches(event, t=t + lead)
