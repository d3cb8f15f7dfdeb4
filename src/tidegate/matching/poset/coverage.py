"""Coverage: what the poset needs to know of its items, which are wanted filters or advertisements.

Siena has two covering relations with opposite roles of the attributes (Siena, 3.4): a filter that
constrains more attributes is narrower, an advertisement that names more attributes is wider.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.algebra.work import Budget
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.matching.poset.boxes import Box, box_of, box_of_row
from tidegate.matching.poset.wanted_filter import (
    EvolvingFilter,
    WantedFilter,
    covers,
    over_estimate_ever,
)

T_contra = TypeVar("T_contra", contravariant=True)

# Static wanted filters have constants only; one environment serves for all of them.
_EMPTY_ENVIRONMENT = Environment()


class Coverage(Protocol[T_contra]):
    """The covering relation among items of one type.

    ``covers`` must be sound: it returns True only if it is sure. It may return False for a pair
    that it does not see through; then the poset has fewer edges, and its answers are still right.
    """

    more_is_narrower: bool
    """Whether an item that constrains more attributes is narrower (filters) or wider."""

    def evolves(self, item: T_contra) -> bool:
        """Whether the events that the item matches change with time."""
        ...

    def boxes(self, item: T_contra) -> list[Box]:
        """The boxes of the item's conjunctions; none is empty, and none is found within another.

        For an evolving item these are the boxes of its over-estimate for all times.
        """
        ...

    def covers(self, wide: T_contra, narrow: T_contra) -> bool:
        """Whether ``wide`` surely matches every event that ``narrow`` matches."""
        ...

    def matches(self, item: T_contra, event: Event) -> bool:
        """Whether an event matches the item, at its publication time if the item evolves."""
        ...


class _FilterCoverage:
    """Covering among wanted filters."""

    more_is_narrower = True

    def evolves(self, item: WantedFilter) -> bool:
        return isinstance(item, EvolvingFilter)

    def boxes(self, item: WantedFilter) -> list[Box]:
        # Most filters are conjunctions of comparisons: their row is enough, and no normal form
        # has to be built.
        with Budget():
            box = box_of_row(*item.shape_and_row) if isinstance(item, Filter) else None
        if box is not None:
            return [box]
        conjunctions = over_estimate_ever(item).resolved_form().conjunctions
        return [box_of(conjunction.sets) for conjunction in conjunctions]

    def covers(self, wide: WantedFilter, narrow: WantedFilter) -> bool:
        return covers(wide, narrow)

    def matches(self, item: WantedFilter, event: Event) -> bool:
        if isinstance(item, EvolvingFilter):
            return item.matches(event)
        return holds(item.node, event.attributes, _EMPTY_ENVIRONMENT)


class _AdvertisementCoverage:
    """Covering among advertisements."""

    more_is_narrower = False

    def evolves(self, item: Advertisement) -> bool:  # noqa: ARG002 - advertisements are static
        return False

    def boxes(self, item: Advertisement) -> list[Box]:
        # An attribute without any allowed value is as good as one that is not named: no event of
        # the advertisement has it.
        kept: list[Advertisement] = []
        with Budget():
            for allowed in item.alternatives:
                possible = {name: values for name, values in allowed.items() if not values.is_empty}
                new = Advertisement(item.node, (possible,))
                if not any(each.covers(new) for each in kept):
                    kept = [*(each for each in kept if not new.covers(each)), new]
        return [box_of(allowed) for each in kept for allowed in each.alternatives]

    def covers(self, wide: Advertisement, narrow: Advertisement) -> bool:
        return wide.covers(narrow)

    def matches(self, item: Advertisement, event: Event) -> bool:
        return item.allows(event)


FILTERS: Coverage[WantedFilter] = _FilterCoverage()
ADVERTISEMENTS: Coverage[Advertisement] = _AdvertisementCoverage()
