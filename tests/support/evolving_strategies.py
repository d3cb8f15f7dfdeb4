"""Generated filters that move, and events aimed at where their bounds are at a moment."""

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
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, filter_of

steady = st.integers(-3, 3).map(Constant)
lines: st.SearchStrategy[Expression] = st.builds(
    Arithmetic,
    st.just("+"),
    steady,
    st.builds(Arithmetic, st.just("*"), steady, st.just(Elapsed())),
)

moving_lines = nodes(predicates(lines | steady, patterns=False)).map(Filter)
"""Filters whose bounds are constants and lines."""
moving_filters = moving_lines | nodes(
    predicates(lines | functions_of_time() | constants(numbers))
).map(Filter)

_bounds_by_lines = (
    lines | steady | st.builds(Call, st.sampled_from(["min", "max"]), st.tuples(steady, lines))
)


@st.composite
def related_standings(draw: st.DrawFn) -> tuple[WantedFilter, WantedFilter]:
    """Two that constrain the same in the same way, by other bounds, so that one may cover."""
    comparisons = [Operator.LESS, Operator.LESS_EQUAL, Operator.GREATER, Operator.EQUAL]
    asked = draw(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.sampled_from(comparisons)), min_size=1, max_size=2
        )
    )

    def one() -> WantedFilter:
        parts = [Predicate(name, each, (draw(_bounds_by_lines),)) for name, each in asked]
        return standing(Filter(all_of(parts)), draw(origins))

    return one(), one()


def standing(filter: Filter, origin_us: int) -> WantedFilter:
    """A filter as it stands in a table of brokers."""
    return EvolvingFilter(filter, origin_us) if filter.evolves else filter


origins = st.sampled_from(
    [0, 1, 500_000, 10_000_000, 59_999_999, 60_000_001, 300_000_000, -7_000_003]
)
policies: st.SearchStrategy[Evolve | None] = st.sampled_from(
    [None, Lazy(), Periodic(1.0), Periodic(0.3), Cached(1.0), Cached(7.0)]
)


def movings(
    filters: st.SearchStrategy[Filter] = moving_filters,
    evolve: st.SearchStrategy[Evolve | None] = policies,
) -> st.SearchStrategy[EvolvingFilter]:
    """Filters, each from its own moment on."""
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
    """What `t` is, for events that are judged at a time; before it begins it is 0."""
    return max(0, time_us - origin_us) / 1e6


def events_at(time_us: int, *standings: WantedFilter) -> st.SearchStrategy[Event]:
    """Events of a time, with values at and beside the bounds as they are then."""
    near = values_near(time_us, *standings)
    some = {name: st.sampled_from([7, "x", *values]) for name, values in near.items()}
    everywhere = st.fixed_dictionaries(some)
    return (everywhere | st.fixed_dictionaries({}, optional=some)).map(
        lambda attributes: Event(attributes, from_us(time_us))
    )


def values_near(time_us: int, *standings: WantedFilter) -> dict[str, list[Value]]:
    """For each attribute the bounds as they are at a time, and the values beside them."""
    near: dict[str, list[Value]] = {name: [] for name in NAMES}
    for standing in standings:
        origin_us = standing.origin_us if isinstance(standing, EvolvingFilter) else time_us
        environment = Environment(t=seconds_since(origin_us, time_us), now=from_us(time_us))
        for predicate in predicates_of(filter_of(standing).node):
            near[predicate.attribute] += _bounds(predicate.operands, environment)
    return near


def _bounds(operands: Iterable[Expression], environment: Environment) -> list[Value]:
    found = [evaluate(operand, environment) for operand in operands]
    return [near for value in found if value is not None for near in neighbours(value)]
