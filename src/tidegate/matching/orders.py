"""What the poset has to know of the things in it: which covers which, and what matches them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tidegate.language.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.matching.boxes import Sets

T_contra = TypeVar("T_contra", contravariant=True)

_NOTHING_KNOWN = Environment()


class Order(Protocol[T_contra]):
    """Covering among things of one type.

    Where ``covers`` says yes it must be right. It may say no where it does not see it; then the
    poset has fewer edges than there could be, and its answers still hold.
    """

    more_is_narrower: bool
    """Whether what constrains more attributes is the narrower, or the wider one."""

    def alternatives(self, item: T_contra) -> list[Sets] | None:
        """The conjunctions, one of which must hold; none of them within another, none empty.

        None where that cannot be said, because the item moves.
        """
        ...

    def covers(self, wide: T_contra, narrow: T_contra) -> bool:
        """Whether whatever ``narrow`` matches is surely matched by ``wide``."""
        ...

    def matches(self, item: T_contra, event: Event) -> bool:
        """Whether an event is one of those that the item stands for."""
        ...


class _FilterOrder:
    """Filters whose parameters are bound. Where they move, their `t` counts from one moment."""

    more_is_narrower = True

    def alternatives(self, item: Filter) -> list[Sets] | None:
        return _conjunctions(item)

    def covers(self, wide: Filter, narrow: Filter) -> bool:
        if wide.evolves or narrow.evolves:
            return wide.covers_during(narrow, 0.0, math.inf)
        return wide.covers(narrow)

    def matches(self, item: Filter, event: Event) -> bool:
        return holds(item.node, event.attributes, _NOTHING_KNOWN)


@dataclass(frozen=True, slots=True)
class FilterSince:
    """A filter whose parameters are bound and whose `t` counts from ``since``, in seconds."""

    filter: Filter
    since: float = 0.0


class _FilterSinceOrder:
    """Filters that move, each from a moment of its own; what counts is all time from both on."""

    more_is_narrower = True

    def alternatives(self, item: FilterSince) -> list[Sets] | None:
        return _conjunctions(item.filter)

    def covers(self, wide: FilterSince, narrow: FilterSince) -> bool:
        if not (wide.filter.evolves or narrow.filter.evolves):
            return wide.filter.covers(narrow.filter)
        lead = wide.since - narrow.since
        return wide.filter.covers_during(narrow.filter, max(0.0, -lead), math.inf, lead=lead)

    def matches(self, item: FilterSince, event: Event) -> bool:
        return holds(item.filter.node, event.attributes, _NOTHING_KNOWN)


class _AdvertisementOrder:
    more_is_narrower = False

    def alternatives(self, item: Advertisement) -> list[Sets] | None:
        kept: list[Advertisement] = []
        for allowed in item.alternatives:
            there = {name: values for name, values in allowed.items() if not values.is_empty}
            new = Advertisement(item.node, (there,))
            if not any(each.covers(new) for each in kept):
                kept = [*(each for each in kept if not new.covers(each)), new]
        return [allowed for each in kept for allowed in each.alternatives]

    def covers(self, wide: Advertisement, narrow: Advertisement) -> bool:
        return wide.covers(narrow)

    def matches(self, item: Advertisement, event: Event) -> bool:
        return item.allows(event)


def _conjunctions(filter: Filter) -> list[Sets] | None:
    if filter.evolves and not filter.parameters:
        return None
    return [conjunction.sets for conjunction in filter.resolved_form().conjunctions]


FILTERS: Order[Filter] = _FilterOrder()
FILTERS_SINCE: Order[FilterSince] = _FilterSinceOrder()
ADVERTISEMENTS: Order[Advertisement] = _AdvertisementOrder()
