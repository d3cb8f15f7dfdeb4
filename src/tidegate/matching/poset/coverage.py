"""What the poset has to know of the things in it: which covers which, and what matches them."""

from __future__ import annotations

from typing import Protocol, TypeVar

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.matching.poset.boxes import Box, box_of, box_of_row
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, covers, widest

T_contra = TypeVar("T_contra", contravariant=True)

_NOTHING_KNOWN = Environment()


class Coverage(Protocol[T_contra]):
    """Covering among things of one type.

    Where ``covers`` says yes it must be right. It may say no where it does not see it; then the
    poset has fewer edges than there could be, and its answers still hold.
    """

    more_is_narrower: bool
    """Whether what constrains more attributes is the narrower, or the wider one."""

    def moves(self, item: T_contra) -> bool:
        """Whether what the item stands for changes by itself."""
        ...

    def boxes(self, item: T_contra) -> list[Box]:
        """The boxes of conjunctions, one of which must hold; none within another, none empty.

        Of an item that moves, those of all that it ever stands for.
        """
        ...

    def covers(self, wide: T_contra, narrow: T_contra) -> bool:
        """Whether whatever ``narrow`` matches is surely matched by ``wide``."""
        ...

    def matches(self, item: T_contra, event: Event) -> bool:
        """Whether an event is one of those that the item stands for."""
        ...


class _FilterOrder:
    """Filters of constants, and filters that move."""

    more_is_narrower = True

    def moves(self, item: WantedFilter) -> bool:
        return isinstance(item, EvolvingFilter)

    def boxes(self, item: WantedFilter) -> list[Box]:
        box = box_of_row(*item.shape_and_row) if isinstance(item, Filter) else None
        if box is not None:
            return [box]
        conjunctions = widest(item).resolved_form().conjunctions
        return [box_of(conjunction.sets) for conjunction in conjunctions]

    def covers(self, wide: WantedFilter, narrow: WantedFilter) -> bool:
        return covers(wide, narrow)

    def matches(self, item: WantedFilter, event: Event) -> bool:
        if isinstance(item, EvolvingFilter):
            return item.matches(event)
        return holds(item.node, event.attributes, _NOTHING_KNOWN)


class _AdvertisementOrder:
    more_is_narrower = False

    def moves(self, item: Advertisement) -> bool:  # noqa: ARG002 - none does
        return False

    def boxes(self, item: Advertisement) -> list[Box]:
        kept: list[Advertisement] = []
        for allowed in item.alternatives:
            there = {name: values for name, values in allowed.items() if not values.is_empty}
            new = Advertisement(item.node, (there,))
            if not any(each.covers(new) for each in kept):
                kept = [*(each for each in kept if not new.covers(each)), new]
        return [box_of(allowed) for each in kept for allowed in each.alternatives]

    def covers(self, wide: Advertisement, narrow: Advertisement) -> bool:
        return wide.covers(narrow)

    def matches(self, item: Advertisement, event: Event) -> bool:
        return item.allows(event)


FILTERS: Coverage[WantedFilter] = _FilterOrder()
ADVERTISEMENTS: Coverage[Advertisement] = _AdvertisementOrder()
