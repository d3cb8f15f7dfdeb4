"""The covering poset: filters, or advertisements, ordered by which covers which (Siena, 4.2).

Rules. (1) An edge goes from a node to one that it covers, and only if nothing lies between them:
the edges are the transitive reduction of covering. (2) Things that cover each other share a node.
(3) Nothing depends on hashes: nodes are listed in the order in which they were put in.

Theory of operation. A new item is placed by two sets: the nodes that cover it and the nodes that it
covers. Its parents are those of the first set that have no child in it, its children those of the
second that have no parent in it, and every edge that leads from the first set to the second is cut,
because the new node now lies between. When a node is taken out, each of its parents is joined to
each of its children, unless another way leads there.

`covers` of the language never says yes wrongly, but with string patterns it may see that a covers b
and b covers c, and not that a covers c. So both sets are completed along the edges. What then turns
out to be above and below the new item at once means the same as it does, seen or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic

from tidegate.language.events import Event
from tidegate.matching.poset.boxes import Box, box_of_event
from tidegate.matching.poset.coverage import Coverage
from tidegate.matching.poset.covering_index import CoveringIndex
from tidegate.matching.poset.nodes import (
    PosetNode,
    PosetNodes,
    T,
    children_of,
    closed,
    cut,
    first_common,
    in_order,
    link,
    parents_of,
    replaced,
    unlink,
    without,
)


class Poset(Generic[T]):
    """A set of items and the covering among them.

    >>> from tidegate.language.filters import parse
    >>> from tidegate.matching.poset.coverage import FILTERS
    >>> poset = Poset(FILTERS)
    >>> narrow = poset.insert(parse("airline = 'UA' and price < 300"))
    >>> wide = poset.insert(parse("airline = 'UA'"))
    >>> poset.roots() == [wide], wide.children == [narrow]
    (True, True)
    """

    def __init__(self, order: Coverage[T]) -> None:
        self._order = order
        self._nodes: PosetNodes[T] = {}
        self._roots: PosetNodes[T] = {}
        self._index: CoveringIndex[PosetNode[T]] = CoveringIndex(order.more_is_narrower)
        self._by_key: dict[Hashable, list[PosetNode[T]]] = {}
        self._unsettled = 0
        self._bottom: PosetNode[T] | None = None
        self._made = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[PosetNode[T]]:
        """The nodes, in the order in which they came to their places."""
        return iter(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def roots(self) -> list[PosetNode[T]]:
        """The nodes that nothing covers."""
        return in_order(self._roots)

    # -- changes ------------------------------------------------------------------------------

    def insert(self, item: T) -> PosetNode[T]:
        """The node of an item; a new one, without subscribers, if nothing equals it yet."""
        node = self._node_of(item)
        place = self._place(node)
        if isinstance(place, PosetNode):
            return place
        self._made += 1
        self._register(node)
        self._join(node, place)
        return node

    def rebind(self, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Give a node another item; it moves to where that belongs, or stays if it belongs there.

        If another node equals the item, gives that one, and the node is taken out.
        """
        new = self._node_of(item)  # which fails before anything has changed
        place = self._place_instead(new, node)
        if isinstance(place, _Neighbourhood) and place.is_of(node):
            self._register_anew(node, new)
            return node
        self.remove(node)
        if place is None:
            place = self._place(new)
        if isinstance(place, PosetNode):
            return place
        node.describe(item, new.boxes, moves=new.moves)
        self._register(node)
        self._join(node, place)
        return node

    def remove(self, node: PosetNode[T]) -> None:
        """Take a node out; what it stood between is joined. KeyError if it is not there."""
        self._unregister(node)
        self._roots.pop(node, None)
        parents, children = list(node.above), list(node.below)
        for parent in parents:
            unlink(parent, node)
        for child in children:
            unlink(node, child)
            for parent in self._not_above(parents, child):
                link(parent, child)
            if child.is_root:
                self._roots[child] = None

    def _join(self, node: PosetNode[T], place: _Neighbourhood[T]) -> None:
        """Put a node between those above and those below it."""
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
        self._nodes[node] = None
        boxes = node.boxes
        self._unsettled += not node.settled
        if not boxes:
            self._bottom = node
        else:
            self._index.add(node, boxes, moves=node.moves)
            if node.box is not None:
                self._by_key.setdefault(node.box.key, []).append(node)

    def _register_anew(self, node: PosetNode[T], new: PosetNode[T]) -> None:
        """Give a node the item of a new one; both have a single box that is settled."""
        assert node.box is not None
        assert new.box is not None
        self._forget_key(node, node.box)
        self._index.change(node, new.box)
        node.describe(new.item, new.boxes, moves=False)
        self._by_key.setdefault(new.box.key, []).append(node)

    def _unregister(self, node: PosetNode[T]) -> None:
        del self._nodes[node]
        boxes = node.boxes
        self._unsettled -= not node.settled
        if not boxes:
            self._bottom = None
        else:
            self._index.remove(node)
            if node.box is not None:
                self._forget_key(node, node.box)

    def _forget_key(self, node: PosetNode[T], box: Box) -> None:
        alike = self._by_key[box.key]
        alike.remove(node)
        if not alike:
            del self._by_key[box.key]

    # -- questions ----------------------------------------------------------------------------

    def find(self, item: T) -> PosetNode[T] | None:
        """The node of an item, or of one that equals it."""
        new = self._node_of(item)
        equal = self._equal(new)
        if equal is not None or (new.box and new.settled and not self._unsettled):
            return equal
        return first_common(self._all_above(new), self._all_below(new))

    def covering(self, item: T) -> list[PosetNode[T]]:
        """All nodes that cover an item; one that equals it does."""
        return in_order(self._all_above(self._node_of(item)))

    def covered_by(self, item: T) -> list[PosetNode[T]]:
        """All nodes that an item covers; one that equals it is."""
        return in_order(self._all_below(self._node_of(item)))

    def matching(self, event: Event, *, moving: bool = True) -> list[PosetNode[T]]:
        """All nodes that an event matches; those that move, at its time, or not at all.

        To match an event is to cover the narrowest filter that it matches, so the index finds them.
        """
        sure, maybe = self._index.wider([box_of_event(event)], moving=moving)
        found = [node for node in maybe if self._order.matches(node.item, event)]
        return in_order(sure + found)

    def descend(self, holds: Callable[[T], bool]) -> list[PosetNode[T]]:
        """All nodes for which something holds that holds for whatever covers them too.

        It is asked of the roots, and then only of children of nodes for which it holds: the walk
        that a notification takes in Siena, 4.3.
        """
        found: PosetNodes[T] = {}
        asked = dict.fromkeys(self._roots)
        waiting = deque(asked)
        while waiting:
            node = waiting.popleft()
            if not holds(node.item):
                continue
            found[node] = None
            for child in node.below:
                if child not in asked:
                    asked[child] = None
                    waiting.append(child)
        return in_order(found)

    # -- where an item belongs ----------------------------------------------------------------

    def _node_of(self, item: T) -> PosetNode[T]:
        """A node that is not in the poset yet."""
        return PosetNode(item, self._made, self._order.boxes(item), moves=self._order.moves(item))

    def _place(self, new: PosetNode[T]) -> PosetNode[T] | _Neighbourhood[T]:
        """The node that equals a new one; else where it belongs."""
        if new.boxes == []:
            lowest = [node for node in self._nodes if not node.below]
            return self._bottom or _Neighbourhood(lowest, [])
        return self._quick_place(new, None) or self._careful_place(new)

    def _place_instead(
        self, new: PosetNode[T], old: PosetNode[T]
    ) -> PosetNode[T] | _Neighbourhood[T] | None:
        """As ``_place``, as if an old node were not there; None where that must be seen then."""
        if old.box is None or new.box is None or not old.settled:
            return None
        return self._quick_place(new, old)

    def _quick_place(
        self, new: PosetNode[T], old: PosetNode[T] | None
    ) -> PosetNode[T] | _Neighbourhood[T] | None:
        """As ``_place``, but for an old node, where covering is seen to be transitive; else None.

        The nearest nodes around are enough then. What was left out because of the old one is
        above or below that.
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
            below = [each for each in below if each is not self._bottom]  # which all are above
        if self._unsettled and not all(node.settled for node in chain(above, below)):
            return None
        if new.box is None:
            for node in above:
                if self._covers(new, node):
                    return node
        parents, children = self._lowest(above), self._highest(new, below, old)
        if not children and self._bottom is not None:
            children = [self._bottom]
        return _Neighbourhood(parents, children)

    def _careful_place(self, new: PosetNode[T]) -> PosetNode[T] | _Neighbourhood[T]:
        """As ``_place``, from all nodes above and below, completed along the edges; cuts these."""
        above, below = self._all_above(new), self._all_below(new)
        equal = first_common(above, below)
        if equal is not None:
            return equal
        cut(above, below)
        return _Neighbourhood(without(above, parents_of), without(below, children_of))

    def _equal(self, new: PosetNode[T], old: PosetNode[T] | None = None) -> PosetNode[T] | None:
        """The node, other than an old one, that equals a new one, if both have a single box."""
        if new.box is not None:
            for node in self._by_key.get(new.box.key, ()):
                if node is not old and self._covers(new, node) and self._covers(node, new):
                    return node
        return None

    def _all_above(self, new: PosetNode[T]) -> PosetNodes[T]:
        if new.boxes == []:
            return dict(self._nodes)
        found = self._above(new)
        return closed(found, parents_of) if self._unsettled else dict.fromkeys(found)

    def _all_below(self, new: PosetNode[T]) -> PosetNodes[T]:
        found = self._below(new)
        if self._bottom is not None:
            found.append(self._bottom)
        return closed(found, children_of) if self._unsettled else dict.fromkeys(found)

    def _above(self, new: PosetNode[T], *, nearest: bool = False) -> list[PosetNode[T]]:
        """Nodes seen to cover a new one; with ``nearest``, at least those that cover no other."""
        sure, maybe = self._index.wider(new.boxes, nearest=nearest)
        return sure + [node for node in maybe if self._covers(node, new)]

    def _below(self, new: PosetNode[T], *, nearest: bool = False) -> list[PosetNode[T]]:
        """Nodes that a new one is seen to cover; with ``nearest``, at least the highest of them."""
        sure, maybe = self._index.narrower(new.boxes, nearest=nearest)
        if new.moves:  # what lies in all that it ever is need not be covered all the time
            sure, maybe = [], sure + maybe
        return sure + [node for node in maybe if self._covers(new, node)]

    def _covers(self, wide: PosetNode[T], narrow: PosetNode[T]) -> bool:
        """As the order says; mostly two boxes know as well, and sooner."""
        if wide.box is not None and narrow.box is not None:
            known = wide.box.covers(narrow.box, self._order.more_is_narrower)
            if known is not None:
                return known
        return self._order.covers(wide.item, narrow.item)

    def _lowest(self, above: list[PosetNode[T]]) -> list[PosetNode[T]]:
        """The nodes that cover no other of them."""
        over = {parent for node in above for parent in node.above}
        left = [node for node in above if node not in over]
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
        """The nodes, of those that a new one covers, whose parents it does not cover.

        In the place of an old node as a parent are its own.
        """
        covered = dict.fromkeys(below, True)
        if old is not None:
            covered[old] = any(covered.get(each, self._covers(new, each)) for each in old.above)
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

    def _not_above(self, nodes: list[PosetNode[T]], child: PosetNode[T]) -> list[PosetNode[T]]:
        """Those of some nodes, which all cover a node, from which no way leads to it."""
        if child is self._bottom:
            return [node for node in nodes if not node.below]
        if not child.above:
            return nodes
        around = chain(nodes, child.above)
        if self._unsettled and not all(node.settled for node in around):
            reached = closed(child.above, parents_of)
            return [node for node in nodes if node not in reached]
        others = list(child.above)
        return [node for node in nodes if not any(self._covers(node, each) for each in others)]


@dataclass(frozen=True, slots=True)
class _Neighbourhood(Generic[T]):
    """Where a new node belongs."""

    parents: list[PosetNode[T]]
    children: list[PosetNode[T]]

    def is_of(self, node: PosetNode[T]) -> bool:
        """Whether a node is there."""
        return (
            len(self.parents) == len(node.above)
            and len(self.children) == len(node.below)
            and all(each in node.above for each in self.parents)
            and all(each in node.below for each in self.children)
        )
