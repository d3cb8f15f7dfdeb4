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
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from tidegate.language.events import Event
from tidegate.matching.boxes import Box, box_of, box_of_event
from tidegate.matching.covering_index import CoveringIndex
from tidegate.matching.ordered_set import OrderedSet
from tidegate.matching.orders import Order

T = TypeVar("T")


class Node(Generic[T]):
    """An item of a poset, with its neighbours in it.

    ``subscribers`` (who asked for it) and ``forwards`` (to whom it was sent on) belong to the
    broker; the poset leaves them alone.
    """

    __slots__ = (
        "_box",
        "_boxes",
        "_children",
        "_parents",
        "_settled",
        "forwards",
        "item",
        "moves",
        "number",
        "subscribers",
    )

    def __init__(self, item: T, number: int, boxes: list[Box], *, moves: bool) -> None:
        self.number = number
        self._describe(item, boxes, moves=moves)
        self.subscribers: OrderedSet[Hashable] = OrderedSet()
        self.forwards: OrderedSet[Hashable] = OrderedSet()
        self._parents: dict[Node[T], None] = {}
        self._children: dict[Node[T], None] = {}

    def _describe(self, item: T, boxes: list[Box], *, moves: bool) -> None:
        self.item = item
        self.moves = moves
        self._boxes = boxes
        self._box = boxes[0] if len(boxes) == 1 and not moves else None
        self._settled = not moves and all(box.is_settled for box in boxes)

    @property
    def parents(self) -> list[Node[T]]:
        """The immediate predecessors: nodes that cover it, none of which covers another."""
        return _in_order(self._parents)

    @property
    def children(self) -> list[Node[T]]:
        """The immediate successors: nodes that it covers, none of which covers another."""
        return _in_order(self._children)

    @property
    def is_root(self) -> bool:
        """Whether nothing covers it."""
        return not self._parents

    def ancestors(self) -> list[Node[T]]:
        """All nodes that cover it."""
        return _in_order(_closed(self._parents, _parents_of))

    def descendants(self) -> list[Node[T]]:
        """All nodes that it covers."""
        return _in_order(_closed(self._children, _children_of))

    def __repr__(self) -> str:
        return f"<Node {self.number}: {self.item}>"


_Nodes = dict[Node[T], None]
"""A set of nodes, in the order in which they were found."""


class Poset(Generic[T]):
    """A set of items and the covering among them.

    >>> from tidegate.language.filters import parse
    >>> from tidegate.matching.orders import FILTERS
    >>> poset = Poset(FILTERS)
    >>> narrow = poset.insert(parse("airline = 'UA' and price < 300"))
    >>> wide = poset.insert(parse("airline = 'UA'"))
    >>> poset.roots() == [wide], wide.children == [narrow]
    (True, True)
    """

    def __init__(self, order: Order[T]) -> None:
        self._order = order
        self._nodes: _Nodes[T] = {}
        self._roots: _Nodes[T] = {}
        self._index: CoveringIndex[Node[T]] = CoveringIndex(order.more_is_narrower)
        self._by_key: dict[Hashable, list[Node[T]]] = {}
        self._unsettled = 0
        self._bottom: Node[T] | None = None
        self._made = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[Node[T]]:
        """The nodes, in the order in which they were put in or given another item."""
        return iter(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._nodes

    def roots(self) -> list[Node[T]]:
        """The nodes that nothing covers."""
        return _in_order(self._roots)

    # -- changes ------------------------------------------------------------------------------

    def insert(self, item: T) -> Node[T]:
        """The node of an item; a new one, without subscribers, if nothing equals it yet."""
        node = self._node_of(item)
        place = self._place(node)
        if isinstance(place, Node):
            return place
        self._made += 1
        self._put(node, place)
        return node

    def rebind(self, node: Node[T], item: T) -> Node[T]:
        """Give a node another item; it moves to where that belongs.

        If another node equals the item, gives that one, and the node is taken out.
        """
        new = self._node_of(item)  # which fails before anything has changed
        self.remove(node)
        place = self._place(new)
        if isinstance(place, Node):
            return place
        node._describe(item, new._boxes, moves=new.moves)
        self._put(node, place)
        return node

    def _put(self, node: Node[T], place: _Place[T]) -> None:
        self._nodes[node] = None
        self._register(node)
        for parent in place.parents:
            _link(parent, node)
        for child in place.children:
            _link(node, child)
            self._roots.pop(child, None)
        if node.is_root:
            self._roots[node] = None

    def remove(self, node: Node[T]) -> None:
        """Take a node out; what it stood between is joined. KeyError if it is not there."""
        del self._nodes[node]
        self._unregister(node)
        self._roots.pop(node, None)
        parents, children = list(node._parents), list(node._children)
        for parent in parents:
            del parent._children[node]
        for child in children:
            del child._parents[node]
            for parent in self._not_above(parents, child):
                _link(parent, child)
            if child.is_root:
                self._roots[child] = None
        node._parents.clear()
        node._children.clear()

    def _register(self, node: Node[T]) -> None:
        boxes = node._boxes
        self._unsettled += not node._settled
        if not boxes:
            self._bottom = node
        else:
            self._index.add(node, boxes, moves=node.moves)
            if node._box is not None:
                self._by_key.setdefault(node._box.key, []).append(node)

    def _unregister(self, node: Node[T]) -> None:
        boxes = node._boxes
        self._unsettled -= not node._settled
        if not boxes:
            self._bottom = None
        else:
            self._index.remove(node)
            if node._box is not None:
                alike = self._by_key[node._box.key]
                alike.remove(node)
                if not alike:
                    del self._by_key[node._box.key]

    # -- questions ----------------------------------------------------------------------------

    def find(self, item: T) -> Node[T] | None:
        """The node of an item, or of one that equals it."""
        new = self._node_of(item)
        equal = self._equal(new)
        if equal is not None or (new._box and new._settled and not self._unsettled):
            return equal
        return _first_common(self._all_above(new), self._all_below(new))

    def covering(self, item: T) -> list[Node[T]]:
        """All nodes that cover an item; one that equals it does."""
        return _in_order(self._all_above(self._node_of(item)))

    def covered_by(self, item: T) -> list[Node[T]]:
        """All nodes that an item covers; one that equals it is."""
        return _in_order(self._all_below(self._node_of(item)))

    def matching(self, event: Event, *, moving: bool = True) -> list[Node[T]]:
        """All nodes that an event matches; those that move, at its time, or not at all.

        To match an event is to cover the narrowest filter that it matches, so the index finds them.
        """
        sure, maybe = self._index.wider([box_of_event(event)], moving=moving)
        found = [node for node in maybe if self._order.matches(node.item, event)]
        return _in_order(sure + found)

    def descend(self, holds: Callable[[T], bool]) -> list[Node[T]]:
        """All nodes for which something holds that holds for whatever covers them too.

        It is asked of the roots, and then only of children of nodes for which it holds: the walk
        that a notification takes in Siena, 4.3.
        """
        found: _Nodes[T] = {}
        asked = dict.fromkeys(self._roots)
        waiting = deque(asked)
        while waiting:
            node = waiting.popleft()
            if not holds(node.item):
                continue
            found[node] = None
            for child in node._children:
                if child not in asked:
                    asked[child] = None
                    waiting.append(child)
        return _in_order(found)

    # -- where an item belongs ----------------------------------------------------------------

    def _node_of(self, item: T) -> Node[T]:
        """A node that is not in the poset yet."""
        boxes = [box_of(each) for each in self._order.alternatives(item)]
        return Node(item, self._made, boxes, moves=self._order.moves(item))

    def _place(self, new: Node[T]) -> Node[T] | _Place[T]:
        """The node that equals a new one; else where it belongs, with the edges there cut."""
        if new._boxes == []:
            lowest = [node for node in self._nodes if not node._children]
            return self._bottom or _Place(lowest, [])
        if new._boxes and new._settled:
            equal = self._equal(new)
            if equal is not None:
                return equal
            above, below = self._above(new, nearest=True), self._below(new, nearest=True)
            if not self._unsettled or all(node._settled for node in chain(above, below)):
                return self._quick_place(new, above, below)
        return self._careful_place(new)

    def _quick_place(
        self, new: Node[T], above: list[Node[T]], below: list[Node[T]]
    ) -> Node[T] | _Place[T]:
        """As ``_place``, where covering is transitive, from the nearest nodes around."""
        if new._box is None:
            for node in above:
                if self._covers(new, node):
                    return node
        parents, children = self._lowest(above), self._highest(new, below)
        if not children and self._bottom is not None:
            children = [self._bottom]
        for child in children:
            for parent in parents:
                _unlink(parent, child)
        return _Place(parents, children)

    def _careful_place(self, new: Node[T]) -> Node[T] | _Place[T]:
        """As ``_place``, from all nodes above and below, completed along the edges."""
        above, below = self._all_above(new), self._all_below(new)
        equal = _first_common(above, below)
        if equal is not None:
            return equal
        _cut(above, below)
        return _Place(_without(above, _parents_of), _without(below, _children_of))

    def _equal(self, new: Node[T]) -> Node[T] | None:
        """The node that equals a new one, if both have a single box and that is settled."""
        if new._box is not None:
            for node in self._by_key.get(new._box.key, ()):
                if self._covers(new, node) and self._covers(node, new):
                    return node
        return None

    def _all_above(self, new: Node[T]) -> _Nodes[T]:
        if new._boxes == []:
            return dict(self._nodes)
        found = self._above(new)
        return _closed(found, _parents_of) if self._unsettled else dict.fromkeys(found)

    def _all_below(self, new: Node[T]) -> _Nodes[T]:
        found = self._below(new)
        if self._bottom is not None:
            found.append(self._bottom)
        return _closed(found, _children_of) if self._unsettled else dict.fromkeys(found)

    def _above(self, new: Node[T], *, nearest: bool = False) -> list[Node[T]]:
        """Nodes seen to cover a new one; with ``nearest``, at least those that cover no other."""
        sure, maybe = self._index.wider(new._boxes, nearest=nearest)
        return sure + [node for node in maybe if self._covers(node, new)]

    def _below(self, new: Node[T], *, nearest: bool = False) -> list[Node[T]]:
        """Nodes that a new one is seen to cover; with ``nearest``, at least the highest of them."""
        sure, maybe = self._index.narrower(new._boxes, nearest=nearest)
        if new.moves:  # what lies in all that it ever is need not be covered all the time
            sure, maybe = [], sure + maybe
        return sure + [node for node in maybe if self._covers(new, node)]

    def _covers(self, wide: Node[T], narrow: Node[T]) -> bool:
        """As the order says; mostly two boxes know as well, and sooner."""
        if wide._box is not None and narrow._box is not None:
            known = wide._box.covers(narrow._box, self._order.more_is_narrower)
            if known is not None:
                return known
        return self._order.covers(wide.item, narrow.item)

    def _lowest(self, above: list[Node[T]]) -> list[Node[T]]:
        """The nodes that cover no other of them."""
        over = {parent for node in above for parent in node._parents}
        left = [node for node in above if node not in over]
        if len(left) <= 1:
            return left
        return [
            node
            for node in left
            if not any(other is not node and self._covers(node, other) for other in left)
        ]

    def _highest(self, new: Node[T], below: list[Node[T]]) -> list[Node[T]]:
        """The nodes, of those that a new one covers, whose parents it does not cover."""
        covered = dict.fromkeys(below, True)
        highest = []
        for node in below:
            for parent in node._parents:
                if parent not in covered:
                    covered[parent] = self._covers(new, parent)
                if covered[parent]:
                    break
            else:
                highest.append(node)
        return highest

    def _not_above(self, nodes: list[Node[T]], child: Node[T]) -> list[Node[T]]:
        """Those of some nodes, which all cover a node, from which no way leads to it."""
        if child is self._bottom:
            return [node for node in nodes if not node._children]
        if not child._parents:
            return nodes
        around = chain(nodes, child._parents)
        if self._unsettled and not all(node._settled for node in around):
            reached = _closed(child._parents, _parents_of)
            return [node for node in nodes if node not in reached]
        covers, others = self._order.covers, list(child._parents)
        return [
            node for node in nodes if not any(covers(node.item, other.item) for other in others)
        ]


@dataclass(frozen=True, slots=True)
class _Place(Generic[T]):
    """Where a new node belongs."""

    parents: list[Node[T]]
    children: list[Node[T]]


def _parents_of(node: Node[T]) -> _Nodes[T]:
    return node._parents


def _children_of(node: Node[T]) -> _Nodes[T]:
    return node._children


def _in_order(nodes: Iterable[Node[T]]) -> list[Node[T]]:
    return sorted(nodes, key=lambda node: node.number)


def _closed(nodes: Iterable[Node[T]], further: Callable[[Node[T]], _Nodes[T]]) -> _Nodes[T]:
    """Nodes and all that can be reached from them."""
    reached = dict.fromkeys(nodes)
    waiting = list(reached)
    while waiting:
        for node in further(waiting.pop()):
            if node not in reached:
                reached[node] = None
                waiting.append(node)
    return reached


def _without(nodes: _Nodes[T], further: Callable[[Node[T]], _Nodes[T]]) -> list[Node[T]]:
    """The nodes of a closed set that can be reached from no other of them."""
    reached = {other for node in nodes for other in further(node)}
    return [node for node in nodes if node not in reached]


def _first_common(above: _Nodes[T], below: _Nodes[T]) -> Node[T] | None:
    common = [node for node in above if node in below]
    return min(common, key=lambda node: node.number) if common else None


def _link(parent: Node[T], child: Node[T]) -> None:
    parent._children[child] = None
    child._parents[parent] = None


def _unlink(parent: Node[T], child: Node[T]) -> None:
    if child in parent._children:
        del parent._children[child]
        del child._parents[parent]


def _cut(above: _Nodes[T], below: _Nodes[T]) -> None:
    """Take away every edge from one set to the other."""
    for child in below:
        fewer, more = sorted((child._parents, above), key=len)
        for parent in [each for each in fewer if each in more]:
            _unlink(parent, child)
