"""Filters that move, as they stand in the tables of brokers: with the moment their `t` counts from.

A filter that moves crosses a link once; each broker evaluates it by itself, at the time of the
event. So nothing is sent because time passes, and what covers something must cover it for all time
to come. Events that were published shortly before one began may still be on their way: for them it
is as it began, and what covered something then must have done so too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.expressions import Environment, ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import STRING_OPERATORS
from tidegate.language.values import Value, to_us
from tidegate.matching.subscription import Subscription

LATENESS_US = 60_000_000
"""No event is longer on its way than this."""


@dataclass(frozen=True)
class EvolvingFilter:
    """A filter that moves, without parameters and variables; its `t` counts from ``origin_us``."""

    filter: Filter
    origin_us: int
    evolve: Evolve | None = None

    def __str__(self) -> str:
        return f"{self.filter} since {self.origin_us} us"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it constrains."""
        return self.filter.attributes

    @cached_property
    def widest(self) -> Filter:
        """A filter that stands still and matches whatever this one ever matches."""
        return self.filter.over_estimate(0.0, math.inf)

    def during(self, begin_us: int, end_us: int) -> Filter:
        """A filter that stands still and matches whatever this one matches in a stretch of time."""
        return self.filter.over_estimate(self._t(begin_us), self._t(end_us))

    def matches(self, event: Event) -> bool:
        """Whether an event matches, at the time of its publication."""
        environment = Environment(t=self._t(event_us(event)), now=event.time)
        return holds(self.filter.node, event.attributes, environment)

    def _t(self, time_us: int) -> float:
        return max(0, time_us - self.origin_us) / 1e6


WantedFilter = Filter | EvolvingFilter
"""What is asked for: a filter of constants, or one that moves."""


def filter_of(standing: WantedFilter) -> Filter:
    """The filter itself."""
    return standing if isinstance(standing, Filter) else standing.filter


def widest(standing: WantedFilter) -> Filter:
    """A filter that stands still and matches whatever is asked for at any time."""
    return standing if isinstance(standing, Filter) else standing.widest


def covers(wide: WantedFilter, narrow: WantedFilter) -> bool:
    """Whether one surely covers the other, for all events that can still come.

    >>> from tidegate.language.filters import parse
    >>> early, late = (Moving(parse("x < t"), origin_us) for origin_us in (0, 10_000_000))
    >>> covers(early, late), covers(late, early), covers(parse("x is not null"), early)
    (True, False, True)
    """
    if isinstance(wide, Filter) and isinstance(narrow, Filter):
        return wide.covers(narrow)
    if not widest(wide).covers(widest(narrow)):
        return False  # seen sooner, and as the index of the poset sees it
    if not (isinstance(wide, EvolvingFilter) and isinstance(narrow, EvolvingFilter)):
        return filter_of(wide).covers_during(filter_of(narrow), 0.0, math.inf)
    lead_us = wide.origin_us - narrow.origin_us
    start, lead = max(0, -lead_us) / 1e6, lead_us / 1e6
    if not wide.filter.covers_during(narrow.filter, start, math.inf, lead=lead):
        return False
    if lead_us <= 0:
        return True
    begun = max(0, lead_us - LATENESS_US) / 1e6
    return wide.filter.at(t=0.0).covers_during(narrow.filter, begun, lead)


def wanted_form(subscription: Subscription, before: WantedFilter | None = None) -> WantedFilter:
    """What brokers away from the subscriber go by: its values, and whatever variables may be.

    If it is told what that was ``before`` a change, it only works out what is different.

    >>> from tidegate.language.filters import parse
    >>> near = parse("distance < :near * @scale and kind = :kind")
    >>> print(standing_form(Subscription("s", near, {"near": 3, "kind": "car"})))
    distance is not null and kind = 'car'
    """
    filter = subscription.filter
    if not filter.evolves:
        still = _with_values(filter, subscription.parameters, before)
        return filter.at(subscription.parameters) if still is None else still
    bound = filter.bind(**subscription.parameters).relaxed()
    if not bound.evolves:
        return bound.at()
    origin_us = subscription.since if subscription.origin is None else subscription.origin
    return EvolvingFilter(bound, origin_us or 0, subscription.evolve)


def _with_values(
    filter: Filter, parameters: Mapping[str, Value], before: WantedFilter | None
) -> Filter | None:
    """A filter that only compares, with values for all its parameters; None for any other."""
    shape, row = filter.shape_and_row
    if shape.comparisons is None or any(
        operator in STRING_OPERATORS for _, asked in shape.comparisons for operator, _ in asked
    ):
        return None
    try:
        values = [parameters[each.name] if isinstance(each, ParameterRef) else each for each in row]
    except KeyError:
        return None
    if isinstance(before, Filter):
        known_shape, known_row = before.shape_and_row
        if known_shape is shape:
            pairs = enumerate(zip(values, known_row, strict=True))
            return before.with_cells({i: new for i, (new, old) in pairs if new is not old})
    return Filter.of_shape(shape, tuple(values))


def event_us(event: Event) -> int:
    """When an event was published; brokers see to it that every event says so."""
    assert event.time is not None
    return to_us(event.time)
