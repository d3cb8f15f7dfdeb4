"""Spaces in a broker: what clients send is checked against a space and bound to its name.

Rules.

(1) In a network with spaces every filter and advertisement in a table has the constraint
    `tidegate.space = 'name'`, and every event has that attribute while it is matched. So an event
    meets the filters of its own space only, and a filter covers and overlaps those of its own
    space only. The algebra alone sees to that: tables, strategies, substrates and monitors know
    nothing of spaces.
(2) A request without a space belongs to the default space, which has no schema; its name is empty.
    It is bound too, because a filter without the constraint would match the events of all spaces.
(3) Therefore all brokers of a network have spaces, or none has; others refuse to connect. But only
    the broker of a client checks what the client sends, so the others need not know its space. A
    broker to which a client moves checks what the client brings along.
(4) Clients can neither set the attribute nor name it in a filter, and they never see it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from reprlib import repr as shortened
from typing import TypeVar, cast

from tidegate.errors import RoutingError, SpaceError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.expressions import Constant
from tidegate.language.filters import Filter
from tidegate.language.limits import Limits
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.spaces import Space
from tidegate.language.syntax import Node, Operator, Predicate, Truth, all_of, map_predicates
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing.messages import NamedSubscription, Publication
from tidegate.routing.validation import (
    check_pattern,
    check_wanted_filter,
    checked_advertisement,
    checked_subscription,
)

SPACE = "tidegate.space"
"""The attribute that has the name of the space."""
DEFAULT = ""
"""The name of the default space."""

Item = TypeVar("Item", bound=Filter | EvolvingFilter | Pattern | Advertisement)


class BrokerSpaces:
    """The spaces that a broker knows; false if its network has none."""

    def __init__(self, spaces: Iterable[Space], limits: Limits) -> None:
        self._by_name: dict[str, Space] = {}
        for space in spaces:
            if not isinstance(space, Space):
                raise SpaceError(f"the spaces of a broker are Spaces, not {type(space).__name__}")
            if self._by_name.setdefault(space.name, space) is not space:
                raise SpaceError(f"two spaces have the name {space.name!r}; give them two names")
        self._limits = limits

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Space]:
        return iter(self._by_name.values())

    def extend(self, spaces: Iterable[Space]) -> None:
        """Add the attributes of spaces to those of the same name, and spaces that are new.

        All, or if one does not fit, none; raises SpaceError then. Attributes that a known space has
        beyond these stay, because filters may name them.
        """
        extended = {name: Space(name, each.attributes) for name, each in self._by_name.items()}
        for space in spaces:
            if not self:
                raise SpaceError(
                    f"space {space.name!r} cannot be added to a broker that began without spaces: "
                    "either all brokers of a network have spaces, or none has"
                )
            if space.name in extended:
                extended[space.name].add(space.attributes)
            else:
                extended[space.name] = Space(space.name, space.attributes)
        for name, space in extended.items():
            self._by_name.setdefault(name, space).add(space.attributes)

    # -- checks of what clients send ------------------------------------------------------------

    def subscription(self, wanted: Filter | Pattern | str, name: str | None) -> Filter | Pattern:
        """The filter or pattern of a subscription without a name, as it was written."""
        text = wanted if isinstance(wanted, str) else None
        checked = checked_subscription(wanted, self._limits)
        self._check(checked, name, text)
        return checked

    def advertisement(self, wanted: Advertisement | str, name: str | None) -> Advertisement:
        """The advertisement of a client, as it was written."""
        text = wanted if isinstance(wanted, str) else None
        checked = checked_advertisement(wanted, self._limits)
        self._check(checked, name, text)
        return checked

    def check_named(self, named: NamedSubscription, text: str | None) -> None:
        """Raise unless a named subscription fits its space with the values of its parameters."""
        subscription = named.subscription
        space = self._find(named.space)
        self._check_names(subscription.filter.attributes)
        if space is not None:
            space.check_filter(subscription.filter, subscription.parameters, text=text)

    def check_moved(self, item: Filter | Pattern | Advertisement) -> None:
        """Raise unless what a client brings from another broker, bound there, fits here too."""
        written, name = self.unbound(item)
        self._check(written, name, None)

    def check_event(self, event: Event, name: str | None) -> None:
        """Raise unless an event fits its space."""
        space = self._find(name)
        self._check_names(event)
        if space is not None:
            space.check_event(event)

    def _check(
        self, checked: Filter | Pattern | Advertisement, name: str | None, text: str | None
    ) -> None:
        space = self._find(name)
        steps = checked.steps if isinstance(checked, Pattern) else [Filter(checked.node)]
        for step in steps:
            self._check_names(step.attributes)
        if space is not None:
            space.check_filter(checked, text=text)

    def _check_names(self, attributes: Iterable[str]) -> None:
        if self and SPACE in attributes:
            raise RoutingError(
                f"{SPACE!r} is set by brokers; the space of a request is its field `space`"
            )

    def _find(self, name: str | None) -> Space | None:
        """The space with a name; None for the default space. Raises RoutingError."""
        if name is None:
            return None
        if not isinstance(name, str) or name not in self._by_name:
            close = get_close_matches(str(name), self._by_name, n=1)
            known = ", ".join(self._by_name) or "none"
            hint = f"did you mean {close[0]!r}?" if close else f"this broker has {known}"
            raise RoutingError(f"there is no space {shortened(name)}; {hint}")
        return self._by_name[name]

    # -- what the tables hold -------------------------------------------------------------------

    def bound(self, item: Item, name: str | None) -> Item:
        """An item as the tables hold it, in its space; raises if it becomes too large by that."""
        if not self:
            return item
        constraint = Predicate(SPACE, Operator.EQUAL, (Constant(name or DEFAULT),))
        bound = mapped(item, lambda node: all_of([constraint, node]))
        match bound:
            case Pattern():
                check_pattern(bound, self._limits)
            case Advertisement():
                checked_advertisement(bound, self._limits)
            case _:
                check_wanted_filter(bound, self._limits)
        return bound

    def unbound(self, item: Item) -> tuple[Item, str | None]:
        """An item of a table as its client wrote it, and the name of its space.

        The reverse of `bound`; the name is None for the default space.
        """
        if not self:
            return item, None
        names: list[str] = []

        def dropped(predicate: Predicate) -> Node:
            match predicate:
                case Predicate(attribute, _, (Constant(str(name)),)) if attribute == SPACE:
                    names.append(name)
                    return Truth(True)
            return predicate

        written = mapped(item, lambda node: map_predicates(node, dropped))
        return written, next(iter(names), DEFAULT) or None


def mapped(item: Item, change: Callable[[Node], Node]) -> Item:
    """An item with the tree of each of its filters changed."""
    changed: Filter | EvolvingFilter | Pattern | Advertisement
    match item:
        case Filter():
            changed = Filter(change(item.node))
        case EvolvingFilter():
            changed = replace(item, filter=Filter(change(item.filter.node)))
        case Pattern():
            changed = replace(item, steps=tuple(Filter(change(each.node)) for each in item.steps))
        case Advertisement():
            changed = Advertisement.of(change(item.node))
    return cast(Item, changed)


def routed_event(publication: Publication) -> Event:
    """The event of a publication as brokers match it, with the name of its space."""
    return in_space(publication.event, publication.space)


def in_space(event: Event, name: str | None) -> Event:
    """An event as brokers match it in the space of a name; None in a network without spaces."""
    return event if name is None else Event({**event.attributes, SPACE: name}, event.time)
