"""What finds the filters that an event matches, in a broker.

Which filters cover which is always told by the poset. To match events there is a choice: the poset
itself, as in Siena, which asks filters that move by their estimates; or any matcher, in which the
values of a filter are parameters, so that an update writes them in place ("Parametric
Subscriptions", 5.1: the poset of Siena, the Rete network of EventJava).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.expressions import Call, Constant, Elapsed, Expression, ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.syntax import map_leaves
from tidegate.language.values import Value
from tidegate.matching.engine import MATCHERS
from tidegate.matching.matcher import Matcher
from tidegate.matching.poset.evolving_index import EvolvingIndex
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, event_us, filter_of
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing.cell_updates import differing_cells, structure

StandingNode = PosetNode[WantedFilter]


class Substrate(Protocol):
    """Finds the nodes that an event matches; is told which there are."""

    def add(self, node: StandingNode) -> None:
        """Take a node in."""
        ...

    def remove(self, node: StandingNode) -> None:
        """Forget a node."""
        ...

    def change(self, node: StandingNode) -> None:
        """Take note that a node has another item."""
        ...

    def matching(self, event: Event) -> list[StandingNode]:
        """All nodes that an event matches; those that move may be given when it does not."""
        ...


class PosetSubstrate:
    """The poset itself, and filters that move beside it."""

    def __init__(self, poset: Poset[WantedFilter]) -> None:
        self._poset = poset
        self._moving: EvolvingIndex[StandingNode] = EvolvingIndex()

    def add(self, node: StandingNode) -> None:
        if isinstance(node.item, EvolvingFilter):
            self._moving.add(node, node.item)

    def remove(self, node: StandingNode) -> None:
        if node in self._moving:
            self._moving.remove(node)

    def change(self, node: StandingNode) -> None:
        self.remove(node)
        self.add(node)

    def matching(self, event: Event) -> list[StandingNode]:
        found = self._poset.matching(event, moving=False)
        return found + self._moving.matching(event) if len(self._moving) else found


class MatcherSubstrate:
    """A matcher, in which every value of a filter is a parameter."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._nodes: dict[str, tuple[StandingNode, WantedFilter]] = {}
        """The nodes by id, and what the matcher has of each."""

    def add(self, node: StandingNode) -> None:
        id = str(node.number)
        filter, values = _lifted(node.item)
        origin_us = node.item.origin_us if isinstance(node.item, EvolvingFilter) else None
        self._matcher.add([Subscription(id, filter, values, origin=origin_us)])
        self._nodes[id] = node, node.item

    def remove(self, node: StandingNode) -> None:
        id = str(node.number)
        self._matcher.remove(id)
        del self._nodes[id]

    def change(self, node: StandingNode) -> None:
        id = str(node.number)
        old = self._nodes[id][1]
        if structure(node.item) == structure(old):
            cells = differing_cells(old, node.item)
            self._matcher.update(id, {f"c{index}": value for index, value in cells})
            self._nodes[id] = node, node.item
        else:
            self.remove(node)
            self.add(node)

    def matching(self, event: Event) -> list[StandingNode]:
        ids = self._matcher.match(event, Moment(event_us(event)))
        return sorted((self._nodes[id][0] for id in ids), key=lambda node: node.number)


def _lifted(item: WantedFilter) -> tuple[Filter, dict[str, Value]]:
    """A filter with parameters for all its values, and these."""
    shape, row = filter_of(item).shape_and_row
    values = {f"c{i}": each for i, each in enumerate(row) if not isinstance(each, ParameterRef)}
    filter = Filter.of_shape(shape, tuple(ParameterRef(name) for name in values))
    if isinstance(item, EvolvingFilter):
        filter = Filter(map_leaves(filter.node, _since_it_began))
    return filter, values


def _since_it_began(leaf: Expression) -> Expression:
    """`t`, but not before 0: for events on their way when it began, a filter is as it began."""
    return Call("max", (leaf, Constant(0))) if isinstance(leaf, Elapsed) else leaf


SUBSTRATES = ("poset", *(name for name in MATCHERS if name != "poset"))


def substrate(name: str) -> Callable[[Poset[WantedFilter]], Substrate]:
    """What makes a substrate of a name, for a poset."""
    if name == "poset":
        return PosetSubstrate
    if name not in MATCHERS:
        raise RoutingError(f"there is no substrate {name!r}; there are {', '.join(SUBSTRATES)}")
    return lambda _poset: MatcherSubstrate(MATCHERS[name]())
