"""The nodes of a covering poset, their edges, and sets of nodes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from tidegate.matching.poset.boxes import Box
from tidegate.matching.poset.ordered_set import OrderedSet

SETTLED_BOXES_MAX, SETTLED_SIZE_MAX = 8, 350
"""The boxes of a settled node, and the intervals in them. Comparing two such nodes takes at most
boxes² + 4 boxes * intervals steps, which is less than a `Budget` has."""

T = TypeVar("T")


class PosetNode(Generic[T]):
    """An item of a poset, with its edges.

    ``subscribers`` (who asked for the item) and ``forwards`` (to whom it was sent) are the sets of
    the same names in Siena, 4.3 and 4.4; they belong to the broker, and the poset does not use
    them.

    ``box`` is the box of a static item that has just one, else None; two such boxes can mostly be
    compared without `Coverage.covers`. ``settled`` means that covering is seen to be transitive
    among this node and any other settled ones. It is not for evolving items, for boxes with string
    patterns, and for items so large that comparing two of them may take more than the budget of
    work: there `covers` is sound but misses some pairs.
    """

    __slots__ = (
        "above",
        "below",
        "box",
        "boxes",
        "edge_changes",
        "evolves",
        "forwards",
        "item",
        "number",
        "settled",
        "subscribers",
    )

    def __init__(self, item: T, number: int, boxes: list[Box], *, evolves: bool) -> None:
        self.number = number
        self.edge_changes = 0
        """How many edges of this node were added or removed; a broker sees by it what changed."""
        self.set_item(item, boxes, evolves=evolves)
        self.subscribers: OrderedSet[Hashable] = OrderedSet()
        self.forwards: OrderedSet[Hashable] = OrderedSet()
        # Dictionaries as sets: nodes hash by address, so a set's order would differ between runs.
        self.above: PosetNodes[T] = {}
        self.below: PosetNodes[T] = {}

    def set_item(self, item: T, boxes: list[Box], *, evolves: bool) -> None:
        """Replace the item; edges stay as they are."""
        self.item = item
        self.evolves = evolves
        self.boxes = boxes
        self.box = boxes[0] if len(boxes) == 1 and not evolves else None
        self.settled = (
            not evolves
            and len(boxes) <= SETTLED_BOXES_MAX
            and all(box.is_settled for box in boxes)
            and sum(box.size for box in boxes) <= SETTLED_SIZE_MAX
        )

    @property
    def parents(self) -> list[PosetNode[T]]:
        """The immediate predecessors: nodes that cover this one, none of which covers another."""
        return by_number(self.above)

    @property
    def children(self) -> list[PosetNode[T]]:
        """The immediate successors: nodes covered by this one, none of which covers another."""
        return by_number(self.below)

    @property
    def is_root(self) -> bool:
        """Whether no other node covers this one."""
        return not self.above

    def __repr__(self) -> str:
        return f"<PosetNode {self.number}: {self.item}>"


PosetNodes = dict[PosetNode[T], None]
"""A set of nodes in insertion order."""


def parents_of(node: PosetNode[T]) -> PosetNodes[T]:
    """The parents of a node, as a set."""
    return node.above


def children_of(node: PosetNode[T]) -> PosetNodes[T]:
    """The children of a node, as a set."""
    return node.below


def by_number(nodes: Iterable[PosetNode[T]]) -> list[PosetNode[T]]:
    """The nodes in the order of their numbers."""
    return sorted(nodes, key=lambda node: node.number)


def closure(
    nodes: Iterable[PosetNode[T]], neighbours: Callable[[PosetNode[T]], PosetNodes[T]]
) -> PosetNodes[T]:
    """The nodes and all that can be reached from them along the edges."""
    reached = dict.fromkeys(nodes)
    waiting = list(reached)
    while waiting:
        for node in neighbours(waiting.pop()):
            if node not in reached:
                reached[node] = None
                waiting.append(node)
    return reached


def sources(
    nodes: PosetNodes[T], neighbours: Callable[[PosetNode[T]], PosetNodes[T]]
) -> list[PosetNode[T]]:
    """The nodes of a closed set that can be reached from no other node of the set."""
    # One step is enough: the set is closed, so whatever leads to a node by several steps also has
    # the last of these steps inside of the set.
    reached = {other for node in nodes for other in neighbours(node)}
    return [node for node in nodes if node not in reached]


def replaced(nodes: list[PosetNode[T]], old: PosetNode[T], by: PosetNodes[T]) -> list[PosetNode[T]]:
    """The nodes, without repetition, with ``by`` in place of the old node if that is among them."""
    if old not in nodes:
        return nodes
    return list(dict.fromkeys([node for node in nodes if node is not old] + list(by)))


def first_common(above: PosetNodes[T], below: PosetNodes[T]) -> PosetNode[T] | None:
    """The node with the lowest number of those in both sets, or None."""
    common = [node for node in above if node in below]
    return min(common, key=lambda node: node.number) if common else None


def link(parent: PosetNode[T], child: PosetNode[T]) -> None:
    """Add an edge."""
    parent.below[child] = None
    child.above[parent] = None
    parent.edge_changes += 1
    child.edge_changes += 1


def unlink(parent: PosetNode[T], child: PosetNode[T]) -> None:
    """Remove an edge if there is one."""
    if child in parent.below:
        del parent.below[child]
        del child.above[parent]
        parent.edge_changes += 1
        child.edge_changes += 1


def unlink_all(above: PosetNodes[T], below: PosetNodes[T]) -> None:
    """Remove every edge from a node of one set to a node of the other."""
    for child in below:
        fewer, more = sorted((child.above, above), key=len)
        for parent in [node for node in fewer if node in more]:
            unlink(parent, child)
