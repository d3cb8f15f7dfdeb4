"""Wanted filters: what a client or neighbour asks a broker for, static or evolving.

Rules. (1) An evolving filter crosses a link once, with the time from which its `t` counts
(``origin_us``); every broker evaluates it at the publication time of the event, so all brokers
agree and no message is sent because time passes. (2) `covers` answers for all events that can still
arrive: an answer that changed with time would need a message when it does.

Theory of operation. A static filter that is surely wider than an evolving one at all times is its
*over-estimate*; "Self-Evolving Subscriptions", 4.1, uses such estimates at brokers that only
forward. An over-estimate over a limited time is narrower, and is what `evolving_index` matches
events with. Covering of two evolving filters is decided over elapsed ranges (`covers_during` of the
language), with the difference of their origins as the lead of one clock over the other.
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
from tidegate.language.values import Value, to_us
from tidegate.matching.subscription import Subscription

LATENESS_US = 60_000_000
"""Upper limit of the time from the publication of an event to its arrival at any broker.

An event that was published before an evolving filter began may arrive after it. For such an event
the filter is evaluated at `t` = 0, and `covers` must hold for it, too. Without a limit a filter, as
it began, would have to cover all that an older one has ever matched.
"""


@dataclass(frozen=True)
class EvolvingFilter:
    """A filter of constants, `t` and `now()`; its `t` counts from ``origin_us``.

    It has neither parameters nor variables: other brokers do not know their values.
    """

    filter: Filter
    origin_us: int
    evolve: Evolve | None = None

    def __str__(self) -> str:
        return f"{self.filter} since {self.origin_us} us"

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the filter constrains."""
        return self.filter.attributes

    @cached_property
    def over_estimate_ever(self) -> Filter:
        """A static filter that matches every event that this filter matches at any time."""
        return self.filter.over_estimate(0.0, math.inf)

    def over_estimate_during(self, begin_us: int, end_us: int) -> Filter:
        """A static filter that matches every event that this filter matches in a time window."""
        return self.filter.over_estimate(self._t(begin_us), self._t(end_us))

    def matches(self, event: Event) -> bool:
        """Whether an event matches at its publication time."""
        environment = Environment(t=self._t(event_us(event)), now=event.time)
        return holds(self.filter.node, event.attributes, environment)

    def _t(self, time_us: int) -> float:
        """`t` in seconds; events published before the filter began are evaluated as it began."""
        return max(0, time_us - self.origin_us) / 1e6


WantedFilter = Filter | EvolvingFilter
"""What a neighbour or client asks a broker for; a `Filter` among them has constants only."""


def underlying_filter(wanted: WantedFilter) -> Filter:
    """The filter of a wanted filter, without origin and evolve mode."""
    return wanted if isinstance(wanted, Filter) else wanted.filter


def over_estimate_ever(wanted: WantedFilter) -> Filter:
    """A static filter that matches every event that the wanted filter matches at any time."""
    return wanted if isinstance(wanted, Filter) else wanted.over_estimate_ever


def covers(wide: WantedFilter, narrow: WantedFilter) -> bool:
    """Whether ``wide`` surely matches every event that can still arrive and matches ``narrow``.

    >>> from tidegate.language.filters import parse
    >>> early, late = (EvolvingFilter(parse("x < t"), origin_us) for origin_us in (0, 10_000_000))
    >>> covers(early, late), covers(late, early), covers(parse("x is not null"), early)
    (True, False, True)
    """
    if isinstance(wide, Filter) and isinstance(narrow, Filter):
        return wide.covers(narrow)
    # The cheap test first. It is also what the covering index tests, so that `covers` never holds
    # for a pair that the index leaves out.
    if not over_estimate_ever(wide).covers(over_estimate_ever(narrow)):
        return False
    if not (isinstance(wide, EvolvingFilter) and isinstance(narrow, EvolvingFilter)):
        return underlying_filter(wide).covers_during(underlying_filter(narrow), 0.0, math.inf)
    # How long before ``wide`` the narrow filter began. The elapsed range is on the clock of
    # ``wide``, and starts when both have begun.
    lead_us = wide.origin_us - narrow.origin_us
    start, lead = max(0, -lead_us) / 1e6, lead_us / 1e6
    if not wide.filter.covers_during(narrow.filter, start, math.inf, lead=lead):
        return False
    if lead_us <= 0:
        return True
    # ``narrow`` began first: events published between both origins may still arrive, as far as
    # LATENESS_US allows. For them ``wide`` is as it began; the clock is that of ``narrow``.
    earliest = max(0, lead_us - LATENESS_US) / 1e6
    return wide.filter.at(t=0.0).covers_during(narrow.filter, earliest, lead)


def wanted_form(subscription: Subscription, before: WantedFilter | None = None) -> WantedFilter:
    """The wanted filter of a subscription, as it is sent to brokers away from the subscriber.

    Parameters have their values; a predicate with a variable of the broker only asks for the
    attribute, because no other broker knows the variable. Given the form ``before`` an update, only
    the cells that differ are worked out.

    >>> from tidegate.language.filters import parse
    >>> near = parse("distance < :near * @scale and kind = :kind")
    >>> print(wanted_form(Subscription("s", near, {"near": 3, "kind": "car"})))
    distance is not null and kind = 'car'
    """
    filter = subscription.filter
    if not filter.evolves:
        static = _filled_row(filter, subscription.parameters, before)
        return filter.at(subscription.parameters) if static is None else static
    bound = filter.bind(**subscription.parameters).relaxed()
    if not bound.evolves:
        return bound.at()
    origin_us = subscription.since if subscription.origin is None else subscription.origin
    return EvolvingFilter(bound, origin_us or 0, subscription.evolve)


def _filled_row(
    filter: Filter, parameters: Mapping[str, Value], before: WantedFilter | None
) -> Filter | None:
    """A conjunction of comparisons with the parameters' values in its row, without its tree.

    None for any other filter and where a parameter has no value: these need `Filter.at`, which
    makes predicates without a value false.
    """
    shape, row = filter.shape_and_row
    # A string operator may have a value that is no string or no pattern; `Filter.at` checks that.
    if shape.comparisons is None or shape.has_string_operators:
        return None
    try:
        values = [parameters[cell.name] if isinstance(cell, ParameterRef) else cell for cell in row]
    except KeyError:
        return None
    if isinstance(before, Filter):
        known_shape, known_row = before.shape_and_row
        if known_shape is shape:
            # `with_cells` keeps what is already known of ``before``. Identity and not equality: 1
            # and 1.0 are equal, and the cell must have the type that the subscriber gave.
            pairs = enumerate(zip(values, known_row, strict=True))
            return before.with_cells({i: new for i, (new, old) in pairs if new is not old})
    return Filter.of_shape(shape, tuple(values))


def event_us(event: Event) -> int:
    """The publication time of an event in microseconds; a broker gives one to every event."""
    assert event.time is not None
    return to_us(event.time)
