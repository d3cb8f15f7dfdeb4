"""The covering poset: wanted filters, or advertisements, by which covers which (Siena, 4.2).

Rules. (1) An edge leads from a node to one that it covers, and only if no third node lies between
them: the edges are the transitive reduction of covering. (2) Items that cover each other share a
node. (3) No order depends on hashes: nodes are listed by their numbers, which are in insertion
order.

Theory of operation. A new item is placed by two sets: the nodes that cover it and the nodes that it
covers. Its parents are the nodes of the first set that cover no other of the set, its children the
nodes of the second set that no other of the set covers. Every edge from a parent to a child is
removed, because the new node lies between them. When a node is removed, each of its parents is
linked to each of its children, unless another path leads there. Siena finds both sets by a walk
from the roots; here they come from an index (`covering_index`).

`covers` is sound, but not complete: with string patterns or evolving filters it may see that a
covers b and that b covers c, and miss that a covers c. So there are two ways to place a node:

- The *quick place*, where the new node and all nodes near it are settled (see `PosetNode`).
  Covering is seen to be transitive among them, so the nearest nodes on both sides are enough:
  whatever else is above or below is so by way of one of these.
- The *careful place*, everywhere else. Both sets are found as a whole and closed along the edges.
  So no edge contradicts another, and there are no cycles; but an edge that is not needed may
  remain. A node in both sets is equal to the new item, though `covers` did not see it.

A filter that never matches (*bottom*) is covered by everything. It has no box, is in no index, and
is the child of all nodes that have no other; there is at most one such node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic

from tidegate.language.events import Event
from tidegate.matching.poset.box_groups import LOOP_MAX, SORT_MIN
from tidegate.matching.poset.boxes import Box, box_of_event
from tidegate.matching.poset.coverage import Coverage
from tidegate.matching.poset.covering_index import CoveringIndex
from tidegate.matching.poset.nodes import (
    PosetNode,
    PosetNodes,
    T,
    by_number,
    children_of,
    closure,
    first_common,
    link,
    parents_of,
    replaced,
    sources,
    unlink,
    unlink_all,
)


class Poset(Generic[T]):
    """A set of items and the covering relation among them.

    ``loop_max`` and ``sort_min`` are those of `CoveringIndex`.

    >>> from tidegate.language.filters import parse
    >>> from tidegate.matching.poset.coverage import FILTERS
    >>> poset = Poset(FILTERS)
    >>> narrow = poset.insert(parse("airline = 'UA' and price < 300"))
    >>> wide = poset.insert(parse("airline = 'UA'"))
    >>> poset.roots() == [wide], wide.children == [narrow]
    (True, True)
    """

    def __init__(
        self, coverage: Coverage[T], *, loop_max: int = LOOP_MAX, sort_min: int = SORT_MIN
    ) -> None:
        self._coverage = coverage
        self._nodes: PosetNodes[T] = {}
        self._roots: PosetNodes[T] = {}
        self._index: CoveringIndex[PosetNode[T]] = CoveringIndex(
            coverage.more_is_narrower, loop_max=loop_max, sort_min=sort_min
        )
        self._by_key: dict[Hashable, list[PosetNode[T]]] = {}
        """Static nodes with a single box, by the key of the box: equal items are found by it."""
        self._unsettled = 0
        """How many nodes are not settled; while it is 0 there is no need to look at each."""
        self._bottom: PosetNode[T] | None = None
        self._next_number = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[PosetNode[T]]:
        """The nodes, in the order in which they were last placed."""
        return iter(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def roots(self) -> list[PosetNode[T]]:
        """The nodes that no other node covers."""
        return by_number(self._roots)

    # -- changes ------------------------------------------------------------------------------

    def insert(self, item: T) -> PosetNode[T]:
        """Return the node of an item: that of an equal item, else a new one without subscribers."""
        node = self._node_of(item)
        place = self._place(node)
        if isinstance(place, PosetNode):
            return place
        self._next_number += 1
        self._register(node)
        self._link(node, place)
        return node

    def rebind(self, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Replace the item of a node, and return the node that has the new item.

        The node moves to the place of the new item; if that is where it is, its edges are not
        touched. If another node equals the item, that one is returned and this one is removed.
        """
        new = self._node_of(item)  # raises before anything has changed
        place = self._place_instead(new, node)
        if isinstance(place, _Neighbourhood) and place.is_that_of(node):
            self._replace_item(node, new)
            return node
        self.remove(node)
        if place is None:
            place = self._place(new)
        if isinstance(place, PosetNode):
            return place
        node.set_item(item, new.boxes, evolves=new.evolves)
        self._register(node)
        self._link(node, place)
        return node

    def remove(self, node: PosetNode[T]) -> None:
        """Remove a node and link its parents to its children; raises KeyError if it is not here."""
        self._unregister(node)
        self._roots.pop(node, None)
        parents, children = list(node.above), list(node.below)
        for parent in parents:
            unlink(parent, node)
        for child in children:
            unlink(node, child)
            for parent in self._without_path(parents, child):
                link(parent, child)
            if child.is_root:
                self._roots[child] = None

    def _link(self, node: PosetNode[T], place: _Neighbourhood[T]) -> None:
        """Link a node to its parents and children, in place of the edges between these."""
        for child in place.children:
            for parent in place.parents:
                unlink(parent, child)
        for parent in place.parents:
            link(parent, node)
        for child in place.children:
            link(node, child)
            self._roots.pop(child, None)
        if node.is_root:
            self._roots[node] = None

    def _register(self, node: PosetNode[T]) -> None:
        """Add a node to the indexes."""
        self._nodes[node] = None
        boxes = node.boxes
        self._unsettled += not node.settled
        if not boxes:
            self._bottom = node
        else:
            self._index.add(node, boxes, evolves=node.evolves)
            if node.box is not None:
                self._by_key.setdefault(node.box.key, []).append(node)

    def _replace_item(self, node: PosetNode[T], new: PosetNode[T]) -> None:
        """Give a node the item of a new one; both are settled and have a single box."""
        assert node.box is not None
        assert new.box is not None
        self._remove_key(node, node.box)
        self._index.change(node, new.box)
        node.set_item(new.item, new.boxes, evolves=False)
        self._by_key.setdefault(new.box.key, []).append(node)

    def _unregister(self, node: PosetNode[T]) -> None:
        """Remove a node from the indexes."""
        del self._nodes[node]
        boxes = node.boxes
        self._unsettled -= not node.settled
        if not boxes:
            self._bottom = None
        else:
            self._index.remove(node)
            if node.box is not None:
                self._remove_key(node, node.box)

    def _remove_key(self, node: PosetNode[T], box: Box) -> None:
        same_key = self._by_key[box.key]
        same_key.remove(node)
        if not same_key:
            del self._by_key[box.key]

    # -- queries ------------------------------------------------------------------------------

    def find(self, item: T) -> PosetNode[T] | None:
        """The node of an item or of an equal one; None if there is none."""
        new = self._node_of(item)
        equal = self._equal(new)
        # Where all are settled, equal items with a single box have equal keys. Elsewhere one may
        # equal the item that is written quite differently.
        if equal is not None or (new.box and new.settled and not self._unsettled):
            return equal
        return first_common(self._all_above(new), self._all_below(new))

    def matching(self, event: Event, *, include_evolving: bool = True) -> list[PosetNode[T]]:
        """The nodes that an event matches, evolving ones at its publication time.

        To match an event is to cover the narrowest filter that matches it, so the nodes come from
        the covering index; Siena (4.3) walks the poset from the roots instead.
        """
        sure, maybe = self._index.wider([box_of_event(event)], include_evolving=include_evolving)
        found = [node for node in maybe if self._coverage.matches(node.item, event)]
        return by_number(sure + found)

    # -- the place of an item -----------------------------------------------------------------

    def _node_of(self, item: T) -> PosetNode[T]:
        """A node for an item, not in the poset yet."""
        boxes, evolves = self._coverage.boxes(item), self._coverage.evolves(item)
        return PosetNode(item, self._next_number, boxes, evolves=evolves)

    def _place(self, new: PosetNode[T]) -> PosetNode[T] | _Neighbourhood[T]:
        """The node that equals a new one; else the parents and children that it will have."""
        if new.boxes == []:
            lowest = [node for node in self._nodes if not node.below]
            return self._bottom or _Neighbourhood(lowest, [])
        return self._quick_place(new, None) or self._careful_place(new)

    def _place_instead(
        self, new: PosetNode[T], old: PosetNode[T]
    ) -> PosetNode[T] | _Neighbourhood[T] | None:
        """As ``_place``, as if an old node were not in the poset.

        None where this cannot be seen before the old node is removed.
        """
        if old.box is None or new.box is None or not old.settled:
            return None
        return self._quick_place(new, old)

    def _quick_place(
        self, new: PosetNode[T], old: PosetNode[T] | None
    ) -> PosetNode[T] | _Neighbourhood[T] | None:
        """As ``_place``, without an old node if there is one; None if a node near is not settled.

        The index returns the nearest nodes, and may leave out others because of the old one. All
        of these are above or below the old node, so its own neighbours take its place.
        """
        if not new.settled:
            return None
        equal = self._equal(new, old)
        if equal is not None:
            return equal
        above, below = self._above(new, nearest=True), self._below(new, nearest=True)
        if old is not None:
            above = replaced(above, old, old.above)
            below = replaced(below, old, old.below)
            # Bottom may have come in as a child of the old node. It is below every node, and a
            # child of the new one only if there is no other.
            below = [node for node in below if node is not self._bottom]
        if self._unsettled and not all(node.settled for node in chain(above, below)):
            return None
        if new.box is None:
            # Several boxes have no key to find an equal node by.
            for node in above:
                if self._covers(new, node):
                    return node
        parents, children = self._lowest(above), self._highest(new, below, old)
        if not children and self._bottom is not None:
            children = [self._bottom]
        return _Neighbourhood(parents, children)

    def _careful_place(self, new: PosetNode[T]) -> PosetNode[T] | _Neighbourhood[T]:
        """As ``_place``, from all nodes above and below; removes the edges between both sets."""
        above, below = self._all_above(new), self._all_below(new)
        equal = first_common(above, below)
        if equal is not None:
            return equal
        # All of them and not only those from a parent to a child: with covering that is not seen
        # to be transitive, an edge from further above to further below may be there, too.
        unlink_all(above, below)
        return _Neighbourhood(sources(above, parents_of), sources(below, children_of))

    def _equal(self, new: PosetNode[T], old: PosetNode[T] | None = None) -> PosetNode[T] | None:
        """The node, other than an old one, that equals a new one, if both have a single box."""
        if new.box is not None:
            for node in self._by_key.get(new.box.key, ()):
                if node is not old and self._covers(new, node) and self._covers(node, new):
                    return node
        return None

    def _all_above(self, new: PosetNode[T]) -> PosetNodes[T]:
        """All nodes that cover a new one, seen or by way of others."""
        if new.boxes == []:
            return dict(self._nodes)
        above = self._above(new)
        return closure(above, parents_of) if self._unsettled else dict.fromkeys(above)

    def _all_below(self, new: PosetNode[T]) -> PosetNodes[T]:
        """All nodes that a new one covers, seen or by way of others."""
        below = self._below(new)
        if self._bottom is not None:
            below.append(self._bottom)
        return closure(below, children_of) if self._unsettled else dict.fromkeys(below)

    def _above(self, new: PosetNode[T], *, nearest: bool = False) -> list[PosetNode[T]]:
        """Nodes seen to cover a new one; with ``nearest``, at least those that cover no other."""
        sure, maybe = self._index.wider(new.boxes, nearest=nearest)
        return sure + [node for node in maybe if self._covers(node, new)]

    def _below(self, new: PosetNode[T], *, nearest: bool = False) -> list[PosetNode[T]]:
        """Nodes seen to be covered by a new one; with ``nearest``, at least the highest of them."""
        sure, maybe = self._index.narrower(new.boxes, nearest=nearest)
        if new.evolves:
            # The boxes are those of an over-estimate: what lies within it may not be covered.
            sure, maybe = [], sure + maybe
        return sure + [node for node in maybe if self._covers(new, node)]

    def _covers(self, wide: PosetNode[T], narrow: PosetNode[T]) -> bool:
        """Whether one node covers another: by their boxes if these are exact, which is faster."""
        if wide.box is not None and narrow.box is not None:
            known = wide.box.covers(narrow.box, self._coverage.more_is_narrower)
            if known is not None:
                return known
        return self._coverage.covers(wide.item, narrow.item)

    def _lowest(self, above: list[PosetNode[T]]) -> list[PosetNode[T]]:
        """The nodes that cover no other of them."""
        # Edges rule out most of them without a comparison.
        parents = {parent for node in above for parent in node.above}
        left = [node for node in above if node not in parents]
        if len(left) <= 1:
            return left
        return [
            node
            for node in left
            if not any(other is not node and self._covers(node, other) for other in left)
        ]

    def _highest(
        self, new: PosetNode[T], below: list[PosetNode[T]], old: PosetNode[T] | None
    ) -> list[PosetNode[T]]:
        """The nodes, of those that a new one covers, none of whose parents it covers.

        An old node counts as covered if one of its own parents is: these take its place.
        """
        covered = dict.fromkeys(below, True)
        if old is not None:
            covered[old] = any(
                covered.get(parent, self._covers(new, parent)) for parent in old.above
            )
        highest = []
        for node in below:
            for parent in node.above:
                if parent not in covered:
                    covered[parent] = self._covers(new, parent)
                if covered[parent]:
                    break
            else:
                highest.append(node)
        return highest

    def _without_path(self, parents: list[PosetNode[T]], child: PosetNode[T]) -> list[PosetNode[T]]:
        """The nodes, of some that all cover a child, from which no path leads to it."""
        if child is self._bottom:
            # It is the child of all nodes without another one; to compare with its parents, which
            # may be most of the poset, would make each removal slow.
            return [node for node in parents if not node.below]
        if not child.above:
            return parents
        if self._unsettled and not all(node.settled for node in chain(parents, child.above)):
            reached = closure(child.above, parents_of)
            return [node for node in parents if node not in reached]
        others = list(child.above)
        return [node for node in parents if not any(self._covers(node, other) for other in others)]


@dataclass(frozen=True, slots=True)
class _Neighbourhood(Generic[T]):
    """The parents and children of a new node."""

    parents: list[PosetNode[T]]
    children: list[PosetNode[T]]

    def is_that_of(self, node: PosetNode[T]) -> bool:
        """Whether a node in the poset has the same parents and children."""
        return (
            len(self.parents) == len(node.above)
            and len(self.children) == len(node.below)
            and all(parent in node.above for parent in self.parents)
            and all(child in node.below for child in self.children)
        )
