"""Generated evolving filters, and events aimed at the values of their bounds at a given time."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from support.strategies import (
    NAMES,
    constants,
    functions_of_time,
    neighbours,
    nodes,
    numbers,
    predicates,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Environment,
    Expression,
    evaluate,
)
from tidegate.language.filters import Filter
from tidegate.language.syntax import Operator, Predicate, all_of, map_leaves
from tidegate.language.syntax import predicates as predicates_of
from tidegate.language.values import Value, from_us
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter

small_constants = st.integers(-3, 3).map(Constant)
lines: st.SearchStrategy[Expression] = st.builds(
    Arithmetic,
    st.just("+"),
    small_constants,
    st.builds(Arithmetic, st.just("*"), small_constants, st.just(Elapsed())),
)
"""Linear functions of `t`."""

linear_filters = nodes(predicates(lines | small_constants, patterns=False)).map(Filter)
"""Filters whose bounds are constants and linear functions of `t`; some are static."""
filters_of_time = linear_filters | nodes(
    predicates(lines | functions_of_time() | constants(numbers))
).map(Filter)
"""Filters whose bounds are any functions of `t`; some are static."""

_line_bounds = (
    lines
    | small_constants
    | st.builds(Call, st.sampled_from(["min", "max"]), st.tuples(small_constants, lines))
)


@st.composite
def related_wanted_filters(draw: st.DrawFn) -> tuple[WantedFilter, WantedFilter]:
    """Two filters with the same attributes and operators, so that one often covers the other."""
    operators = [Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER, Operator.EQUAL]
    comparisons = draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.sampled_from(operators)), min_size=1, max_size=2
        )
    )

    def one() -> WantedFilter:
        parts = [Predicate(name, operator, (draw(_line_bounds),)) for name, operator in comparisons]
        return wanted_filter(Filter(all_of(parts)), draw(origins))

    return one(), one()


def wanted_filter(filter: Filter, origin_us: int) -> WantedFilter:
    """The filter itself if it is static, else an evolving filter whose `t` starts at the origin."""
    return EvolvingFilter(filter, origin_us) if filter.evolves else filter


# Around the limit that `covers` sets to the delay of events (LATENESS_US, 60 s), too.
origins = st.sampled_from(
    [0, 1, 500_000, 10_000_000, 59_999_999, 60_000_001, 300_000_000, -7_000_003]
)
evolve_modes: st.SearchStrategy[Evolve | None] = st.sampled_from(
    [None, Lazy(), Periodic(1.0), Periodic(0.3), Cached(1.0), Cached(7.0)]
)


def evolving_filters(
    filters: st.SearchStrategy[Filter] = filters_of_time,
    evolve: st.SearchStrategy[Evolve | None] = evolve_modes,
) -> st.SearchStrategy[EvolvingFilter]:
    """Evolving filters, each with an origin and an evolve mode."""
    return st.builds(EvolvingFilter, filters, origins, evolve)


@st.composite
def nudged(draw: st.DrawFn, filter: Filter) -> Filter:
    """A filter with some of its constants a little greater or smaller."""

    def nudge(leaf: Expression) -> Expression:
        if isinstance(leaf, Constant) and isinstance(leaf.value, int | float):
            return Constant(leaf.value + draw(st.sampled_from([0, 0, 0, 1, -1, 0.5, 1e-16])))
        return leaf

    return Filter(map_leaves(filter.node, nudge))


def seconds_since(origin_us: int, time_us: int) -> float:
    """The value of `t` at a time; 0 before the origin."""
    return max(0, time_us - origin_us) / 1e6


def events_at(time_us: int, *wanted_filters: WantedFilter) -> st.SearchStrategy[Event]:
    """Events of a time, with values at and next to the bounds at that time."""
    near = values_near(time_us, *wanted_filters)
    some = {name: st.sampled_from([7, "x", *values]) for name, values in near.items()}
    with_all_attributes = st.fixed_dictionaries(some)
    return (with_all_attributes | st.fixed_dictionaries({}, optional=some)).map(
        lambda attributes: Event(attributes, from_us(time_us))
    )


def values_near(time_us: int, *wanted_filters: WantedFilter) -> dict[str, list[Value]]:
    """For each attribute the values of its bounds at a time, and the values next to them."""
    near: dict[str, list[Value]] = {name: [] for name in NAMES}
    for wanted in wanted_filters:
        origin_us = wanted.origin_us if isinstance(wanted, EvolvingFilter) else time_us
        environment = Environment(t=seconds_since(origin_us, time_us), now=from_us(time_us))
        for predicate in predicates_of(underlying_filter(wanted).node):
            near[predicate.attribute] += _bounds(predicate.operands, environment)
    return near


def _bounds(operands: Iterable[Expression], environment: Environment) -> list[Value]:
    evaluated = [evaluate(operand, environment) for operand in operands]
    return [near for value in evaluated if value is not None for near in neighbours(value)]
