"""Advertisements: which events a publisher announces that it may publish (Siena, 3.2 and 3.4).

An advertisement is written like a filter and read differently: several constraints on one attribute
are alternatives, and an event is allowed only if *every* attribute of the event satisfies one of
them. No attribute is required. `or` separates whole advertisements, one of which must allow the
event. `between` and `in` are one constraint each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from tidegate.errors import FilterError
from tidegate.language.algebra.normal_form import ground_values, is_ground
from tidegate.language.algebra.value_sets import ValueSet, union
from tidegate.language.algebra.work import Budget, OutOfWorkError, spend
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.syntax import And, Node, Or, Predicate, Truth, predicates

Allowed = Mapping[str, ValueSet]
"""The values that each attribute of an event may have; an event may have no other attributes."""


@dataclass(frozen=True, slots=True)
class Advertisement:
    """The events that a publisher may publish.

    >>> quotes = parse_advertisement("symbol is not null and price > 0 and price < 1000")
    >>> quotes.allows({"symbol": "IBM"}), quotes.allows({"symbol": "IBM", "volume": 5})
    (True, False)
    """

    node: Node
    alternatives: tuple[Allowed, ...]

    @classmethod
    def of(cls, node: Node) -> Advertisement:
        """The advertisement with this tree, whose values are constants."""
        with Budget(apart=True):
            return cls(node, tuple(_allowed(each) for each in _alternatives(node)))

    def allows(self, event: Event | Mapping[str, object]) -> bool:
        """Whether the advertisement allows an event."""
        attributes = Event.of(event).attributes
        return any(
            all(
                name in allowed and allowed[name].contains(value)
                for name, value in attributes.items()
            )
            for allowed in self.alternatives
        )

    def covers(self, other: Advertisement) -> bool:
        """Whether this advertisement surely allows every event that ``other`` allows."""
        try:
            with Budget():
                return all(
                    any(_allows_all(wide, narrow) for wide in self.alternatives)
                    for narrow in other.alternatives
                )
        except OutOfWorkError:
            return False

    def equals(self, other: Advertisement) -> bool:
        """Whether each covers the other."""
        with Budget():
            return self.covers(other) and other.covers(self)

    def overlaps(self, filter: Filter) -> bool:
        """Whether the advertisement could allow some event that matches the filter.

        Every attribute that the filter names must be allowed, with some common value: a filter
        matches no event without it (Siena, 3.4).
        """
        conjunctions = filter.resolved_form().conjunctions
        try:
            with Budget():
                return any(
                    _meets(allowed, conjunction.sets)
                    for allowed in self.alternatives
                    for conjunction in conjunctions
                )
        except OutOfWorkError:
            return True

    def __str__(self) -> str:
        return str(self.node)


def parse_advertisement(text: str, limits: Limits = DEFAULT_LIMITS) -> Advertisement:
    """Parse an advertisement; raises FilterError."""
    node = parse_filter(text, limits)
    for predicate in predicates(node):
        if not all(is_ground(operand) for operand in predicate.operands):
            raise FilterError(
                f"an advertisement is made of constants; `{predicate}` is not", text, 0, len(text)
            )
    return Advertisement.of(node)


def _alternatives(node: Node) -> list[tuple[Predicate, ...]]:
    """As ``disjuncts``, but each constraint stays as it was written.

    `between` as two comparisons would be two alternatives here, which allow every number.
    """
    match node:
        case Truth(value):
            return [()] if value else []
        case Predicate():
            return [(node,)]
        case Or(parts):
            return [each for part in parts for each in _alternatives(part)]
        case And(parts):
            return [
                tuple(predicate for conjunction in choice for predicate in conjunction)
                for choice in product(*(_alternatives(part) for part in parts))
            ]


def _allowed(constraints: tuple[Predicate, ...]) -> Allowed:
    by_name: dict[str, list[ValueSet]] = {}
    for predicate in constraints:
        by_name.setdefault(predicate.attribute, []).append(ground_values(predicate))
    return {name: union(sets) for name, sets in by_name.items()}


def _meets(allowed: Allowed, sets: Mapping[str, ValueSet]) -> bool:
    """Whether each attribute may have an allowed value."""
    spend(1 + len(sets))
    return all(name in allowed and allowed[name].meets(values) for name, values in sets.items())


def _allows_all(wide: Allowed, narrow: Allowed) -> bool:
    """Whether ``wide`` allows each value that ``narrow`` allows; no values need no permission."""
    spend(1 + len(narrow))
    return all(
        values.is_empty or (name in wide and values.within(wide[name]))
        for name, values in narrow.items()
    )
