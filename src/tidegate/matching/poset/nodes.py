"""The nodes of a covering poset, and how they are joined."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.ordered_set import OrderedSet

T = TypeVar("T")


class PosetNode(Generic[T]):
    """An item of a poset, with its neighbours in it.

    ``subscribers`` (who asked for it) and ``forwards`` (to whom it was sent on) belong to the
    broker; the poset leaves them alone.
    """

    __slots__ = (
        "above",
        "below",
        "box",
        "boxes",
        "forwards",
        "item",
        "moves",
        "number",
        "settled",
        "shifts",
        "subscribers",
    )

    def __init__(self, item: T, number: int, boxes: list[Box], *, moves: bool) -> None:
        self.number = number
        self.shifts = 0
        """How often its neighbours have become others."""
        self.describe(item, boxes, moves=moves)
        self.subscribers: OrderedSet[Hashable] = OrderedSet()
        self.forwards: OrderedSet[Hashable] = OrderedSet()
        self.above: dict[PosetNode[T], None] = {}
        self.below: dict[PosetNode[T], None] = {}

    def describe(self, item: T, boxes: list[Box], *, moves: bool) -> None:
        self.item = item
        self.moves = moves
        self.boxes = boxes
        self.box = boxes[0] if len(boxes) == 1 and not moves else None
        self.settled = not moves and all(box.is_settled for box in boxes)

    @property
    def parents(self) -> list[PosetNode[T]]:
        """The immediate predecessors: nodes that cover it, none of which covers another."""
        return in_order(self.above)

    @property
    def children(self) -> list[PosetNode[T]]:
        """The immediate successors: nodes that it covers, none of which covers another."""
        return in_order(self.below)

    @property
    def is_root(self) -> bool:
        """Whether nothing covers it."""
        return not self.above

    def ancestors(self) -> list[PosetNode[T]]:
        """All nodes that cover it."""
        return in_order(closed(self.above, parents_of))

    def descendants(self) -> list[PosetNode[T]]:
        """All nodes that it covers."""
        return in_order(closed(self.below, children_of))

    def __repr__(self) -> str:
        return f"<Node {self.number}: {self.item}>"


PosetNodes = dict[PosetNode[T], None]
"""A set of nodes, in the order in which they were found."""


def parents_of(node: PosetNode[T]) -> PosetNodes[T]:
    """The nodes just above one."""
    return node.above


def children_of(node: PosetNode[T]) -> PosetNodes[T]:
    """The nodes just below one."""
    return node.below


def in_order(nodes: Iterable[PosetNode[T]]) -> list[PosetNode[T]]:
    """Nodes in the order of their numbers."""
    return sorted(nodes, key=lambda node: node.number)


def closed(
    nodes: Iterable[PosetNode[T]], further: Callable[[PosetNode[T]], PosetNodes[T]]
) -> PosetNodes[T]:
    """Nodes and all that can be reached from them."""
    reached = dict.fromkeys(nodes)
    waiting = list(reached)
    while waiting:
        for node in further(waiting.pop()):
            if node not in reached:
                reached[node] = None
                waiting.append(node)
    return reached


def without(
    nodes: PosetNodes[T], further: Callable[[PosetNode[T]], PosetNodes[T]]
) -> list[PosetNode[T]]:
    """The nodes of a closed set that can be reached from no other of them."""
    reached = {other for node in nodes for other in further(node)}
    return [node for node in nodes if node not in reached]


def replaced(nodes: list[PosetNode[T]], old: PosetNode[T], by: PosetNodes[T]) -> list[PosetNode[T]]:
    """Nodes with others in the place of an old one, if that is among them."""
    if old not in nodes:
        return nodes
    return list(dict.fromkeys([each for each in nodes if each is not old] + list(by)))


def first_common(above: PosetNodes[T], below: PosetNodes[T]) -> PosetNode[T] | None:
    """The first node that is in both sets."""
    common = [node for node in above if node in below]
    return min(common, key=lambda node: node.number) if common else None


def link(parent: PosetNode[T], child: PosetNode[T]) -> None:
    """Put an edge from one node to another."""
    parent.below[child] = None
    child.above[parent] = None
    parent.shifts += 1
    child.shifts += 1


def unlink(parent: PosetNode[T], child: PosetNode[T]) -> None:
    """Take an edge away, if there is one."""
    if child in parent.below:
        del parent.below[child]
        del child.above[parent]
        parent.shifts += 1
        child.shifts += 1


def cut(above: PosetNodes[T], below: PosetNodes[T]) -> None:
    """Take away every edge from one set to the other."""
    for child in below:
        fewer, more = sorted((child.above, above), key=len)
        for parent in [each for each in fewer if each in more]:
            unlink(parent, child)
