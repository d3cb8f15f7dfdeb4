"""Substrates: the index in which a broker finds the filters that an event matches.

Covering is always computed by the poset. Events are matched by one of two substrates, the choice
that "Parametric Subscriptions", 5.1, has between Siena's poset and EventJava's Rete network:

- `PosetSubstrate`: the poset itself, as in Siena, with an index of estimates for evolving filters.
- `MatcherSubstrate`: any matcher. All values of a filter are parameters there, so an update writes
  cells in place and does not remove and add a subscription.

Both are listeners of the table of subscriptions (see `forwarding.NodeListener`), and hold exactly
the nodes of its poset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Protocol

import numpy as np

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.expressions import Call, Constant, Elapsed, Expression, ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.shapes import Shape
from tidegate.language.syntax import map_leaves
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch
from tidegate.matching.matcher import (
    BulkUpdatingMatcher,
    LinkMatcher,
    Matcher,
    NumberingMatcher,
    StepCountingMatcher,
    update_each,
)
from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.evolving_index import EvolvingIndex
from tidegate.matching.poset.nodes import PosetNode, by_number
from tidegate.matching.poset.poset import Poset
from tidegate.matching.poset.wanted_filter import (
    EvolvingFilter,
    WantedFilter,
    event_us,
    underlying_filter,
)
from tidegate.matching.registry import MATCHERS
from tidegate.matching.subscription import Moment, Subscription
from tidegate.routing.batching.asker_codes import AskerCodes, AskerPairs
from tidegate.routing.batching.asker_index import AskerIndex
from tidegate.routing.cell_updates import differing_cells, structure

FilterNode = PosetNode[WantedFilter]


class Substrate(Protocol):
    """Finds the nodes of a table whose filters an event matches."""

    def add(self, node: FilterNode) -> None:
        """Add a node that was added to the table."""
        ...

    def remove(self, node: FilterNode) -> None:
        """Remove a node that was removed from the table."""
        ...

    def change(self, node: FilterNode) -> None:
        """Replace the filter of a node by its present item."""
        ...

    def askers_changed(self, node: FilterNode) -> None:
        """Take note that a node got or lost an asker; of no account where filters are matched."""
        ...

    @property
    def steps(self) -> int:
        """Matching steps of all events so far; 0 if they are not counted."""
        ...

    def matching(self, event: Event) -> list[FilterNode]:
        """All nodes that an event matches, in an order that does not depend on hashes.

        Nodes with an evolving filter may be returned although the event does not match them, if the
        subscriber's evolve mode allows estimates; the subscriber's own broker evaluates exactly.
        """
        ...

    def asker_pairs(self, batch: EventBatch, codes: AskerCodes) -> AskerPairs:
        """The pairs of an event of a batch and an asker of a node that it matches, by event.

        A pair is there once for each such node of the asker.
        """
        ...


class PosetSubstrate:
    """The poset for static filters, and an index of estimates for evolving ones."""

    def __init__(self, poset: Poset[WantedFilter]) -> None:
        self.steps = 0
        self._poset = poset
        self._evolving: EvolvingIndex[FilterNode] = EvolvingIndex()

    def add(self, node: FilterNode) -> None:
        if isinstance(node.item, EvolvingFilter):
            self._evolving.add(node, node.item)

    def remove(self, node: FilterNode) -> None:
        if node in self._evolving:
            self._evolving.remove(node)

    def change(self, node: FilterNode) -> None:
        self.remove(node)
        self.add(node)

    def askers_changed(self, node: FilterNode) -> None:
        pass

    def matching(self, event: Event) -> list[FilterNode]:
        static = self._poset.matching(event, include_evolving=False)
        return static + self._evolving.matching(event) if len(self._evolving) else static

    def asker_pairs(self, batch: EventBatch, codes: AskerCodes) -> AskerPairs:
        return _asker_pairs_of_each(self.matching, batch, codes)


class MatcherSubstrate:
    """A matcher with a subscription for each node, in which every value is a parameter.

    The id of the subscription is the number of the node; cell 0 is the parameter `c0`, and so on.
    New and changed nodes are written when the matcher is next used, all of them in one step.
    """

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._counting = matcher if isinstance(matcher, StepCountingMatcher) else None
        self._numbering = matcher if isinstance(matcher, NumberingMatcher) else None
        self._nodes: dict[str, tuple[FilterNode, WantedFilter]] = {}
        """Nodes by id, with the filter that the matcher has: the item may have been replaced."""
        self._added: dict[FilterNode, None] = {}
        """Nodes that the matcher does not have yet."""
        self._changed: dict[FilterNode, None] = {}
        """Nodes whose filter was replaced since the matcher got it."""
        self._askers = AskerIndex()
        self._other_askers: dict[FilterNode, None] = {}
        """Nodes whose askers, or whose number in the matcher, have changed."""

    def add(self, node: FilterNode) -> None:
        self._added[node] = None

    def remove(self, node: FilterNode) -> None:
        self._other_askers.pop(node, None)
        self._changed.pop(node, None)
        if node in self._added:
            del self._added[node]
        else:
            self._remove(node)

    def _remove(self, node: FilterNode) -> None:
        id = id_of(node)
        self._matcher.remove(id)
        del self._nodes[id]

    def change(self, node: FilterNode) -> None:
        if node not in self._added:
            self._changed[node] = None

    def askers_changed(self, node: FilterNode) -> None:
        if self._numbering is not None:
            self._other_askers[node] = None

    def write(self) -> None:
        """Write the new and changed nodes into the matcher."""
        updates: dict[str, dict[str, Value | None]] = {}
        for node in self._changed:
            id = id_of(node)
            old = self._nodes[id][1]
            if structure(node.item) == structure(old):
                cells = differing_cells(old, node.item)
                if cells:
                    updates[id] = {f"c{index}": value for index, value in cells}
                self._nodes[id] = node, node.item
            else:
                self._remove(node)
                self._added[node] = None
        self._changed.clear()
        if updates:
            self._update(updates)
        if self._added:
            self._matcher.add([_subscription_of(node) for node in self._added])
            for node in self._added:
                self._nodes[id_of(node)] = node, node.item
                self.askers_changed(node)  # it has another number now
            self._added.clear()

    def _update(self, updates: dict[str, dict[str, Value | None]]) -> None:
        if len(updates) == 1:
            ((id, values),) = updates.items()
            self._matcher.update(id, values)
        elif isinstance(self._matcher, BulkUpdatingMatcher):
            self._matcher.update_many(updates)
        else:
            update_each(self._matcher, updates)

    @property
    def steps(self) -> int:
        return 0 if self._counting is None else self._counting.steps

    def matching(self, event: Event) -> list[FilterNode]:
        self.write()
        return self.nodes(self._matcher.match(event, Moment(event_us(event))))

    def asker_pairs(self, batch: EventBatch, codes: AskerCodes) -> AskerPairs:
        if self._numbering is None:
            return _asker_pairs_of_each(self.matching, batch, codes)
        self.write()
        changed = list(self._other_askers)
        numbers = self._numbering.numbers([id_of(node) for node in changed])
        for number, node in zip(numbers.tolist(), changed, strict=True):
            self._askers.put(number, codes.of(node.subscribers))
        self._other_askers.clear()
        return self._askers.pairs(*self._numbering.match_numbers(batch))

    def nodes(self, ids: Iterable[str]) -> list[FilterNode]:
        """The nodes of subscriptions, in the order of their numbers."""
        return by_number(self._nodes[id][0] for id in ids)


def _subscription_of(node: FilterNode) -> Subscription:
    filter, values = _lifted(node.item)
    origin_us = node.item.origin_us if isinstance(node.item, EvolvingFilter) else None
    return Subscription(id_of(node), filter, values, origin=origin_us)


def _asker_pairs_of_each(
    matching: Callable[[Event], list[FilterNode]], batch: EventBatch, codes: AskerCodes
) -> AskerPairs:
    """The pairs of an event and an asker, by a search for each event."""
    events: list[int] = []
    found: list[int] = []
    for index in range(batch.length):
        nodes = matching(batch.timed_event(index))
        askers = [codes.code(asker) for node in nodes for asker in node.subscribers]
        events += [index] * len(askers)
        found += askers
    return np.array(events, np.int32), np.array(found, np.int64)


def id_of(node: FilterNode) -> str:
    """The id of the subscription that a node has in a matcher."""
    return str(node.number)


def _lifted(item: WantedFilter) -> tuple[Filter, dict[str, Value]]:
    """A filter with a parameter in each cell, and the values of these parameters."""
    shape, row = underlying_filter(item).shape_and_row
    values = {f"c{i}": each for i, each in enumerate(row) if not isinstance(each, ParameterRef)}
    return _parametric_filter(shape, isinstance(item, EvolvingFilter)), values


@lru_cache(maxsize=4096)
def _parametric_filter(shape: Shape, evolves: bool) -> Filter:
    """A filter with a parameter in each cell; the subscriptions of a shape share it."""
    filter = Filter.of_shape(shape, tuple(ParameterRef(f"c{i}") for i in range(shape.width)))
    if evolves:
        filter = Filter(map_leaves(filter.node, _not_before_origin))
    return filter


def _not_before_origin(leaf: Expression) -> Expression:
    """`max(t, 0)` for `t`: for events from before its origin a filter is as at its origin.

    Such events may have been on their way when it began; `EvolvingFilter.matches` does the same.
    """
    return Call("max", (leaf, Constant(0))) if isinstance(leaf, Elapsed) else leaf


DEFAULT_SUBSTRATE = "poset"
DEFAULT_LINK_MATCHER = "tree"
"""The matcher of link matching, where the substrate must be one that finds links."""
SUBSTRATES = ("poset", *(name for name in MATCHERS if name != "poset"))


SubstrateChoice = str | Callable[[], Matcher]
"""The name of a substrate, or what makes a matcher with settings of its own."""


def matches_by_poset(choice: SubstrateChoice | None) -> bool:
    """Whether the chosen substrate matches events with the poset of the table itself."""
    return (choice or DEFAULT_SUBSTRATE) == "poset"


def substrate(
    choice: SubstrateChoice | None, poset: Poset[WantedFilter] | Antichain[WantedFilter]
) -> Substrate:
    """The chosen substrate, for a table with this poset."""
    if matches_by_poset(choice):
        assert isinstance(poset, Poset)
        return PosetSubstrate(poset)
    assert choice is not None
    return MatcherSubstrate(choice() if not isinstance(choice, str) else _matcher(choice))


def antichain_substrate(choice: SubstrateChoice | None) -> Substrate:
    """The substrate of a table that is no poset; raises RoutingError for one that needs it."""
    name = choice or DEFAULT_LINK_MATCHER
    if name == "poset":
        raise RoutingError(
            "the substrate 'poset' hides filters that others cover; without subsumption take "
            f"another one, for example {DEFAULT_LINK_MATCHER!r}"
        )
    return MatcherSubstrate(name() if not isinstance(name, str) else _matcher(name))


def _matcher(name: str) -> Matcher:
    if name not in MATCHERS:
        raise RoutingError(f"there is no substrate {name!r}; there are {', '.join(SUBSTRATES)}")
    return MATCHERS[name].make()


def link_matcher(choice: SubstrateChoice | None) -> Callable[[], LinkMatcher]:
    """What makes matchers that find the links of events; raises RoutingError if others do."""
    name = choice or DEFAULT_LINK_MATCHER
    make: Callable[[], Matcher] | None = None
    if not isinstance(name, str):
        make = name
    elif name in MATCHERS:
        make = MATCHERS[name].make

    def made() -> LinkMatcher:
        matcher = make() if make is not None else None
        if isinstance(matcher, LinkMatcher):
            return matcher
        able = [each for each in MATCHERS if isinstance(MATCHERS[each].make(), LinkMatcher)]
        raise RoutingError(
            f"link matching needs a substrate that finds the links of events, not {name!r}; "
            f"there are {', '.join(able)}"
        )

    return made
