"""An antichain: the nodes of a table in which no item hides another.

It has the methods of `Poset` that such a table needs, and none of its work: items are found by an
identity, and no node has parents or children. Items that match the same events but have different
identities have a node each, which costs some entries and is right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic

from tidegate.matching.poset.nodes import PosetNode, T


class Antichain(Generic[T]):
    """A set of items, with a node for each; items with the same identity share it.

    >>> from tidegate.language.filters import parse
    >>> antichain = Antichain(identity=str)
    >>> narrow, wide = (antichain.insert(parse(each)) for each in ("price < 5", "price < 9"))
    >>> wide.children, antichain.insert(parse("price < 5")) is narrow
    ([], True)
    """

    def __init__(self, identity: Callable[[T], Hashable]) -> None:
        self._identity = identity
        self._by_identity: dict[Hashable, PosetNode[T]] = {}
        self._identities: dict[PosetNode[T], Hashable] = {}
        self._last_number = 0

    def __len__(self) -> int:
        return len(self._identities)

    def __iter__(self) -> Iterator[PosetNode[T]]:
        """The nodes, in the order in which they got their items."""
        return iter(self._identities)

    def __contains__(self, node: object) -> bool:
        return node in self._identities

    def insert(self, item: T) -> PosetNode[T]:
        """Return the node of an item: that of an equal item, else a new one without subscribers."""
        identity = self._identity(item)
        node = self._by_identity.get(identity)
        if node is None:
            self._last_number += 1
            node = PosetNode(item, self._last_number, [], evolves=False)
            self._register(node, identity)
        return node

    def rebind(self, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Replace the item of a node, and return the node that has the new item.

        If another node has the item, that one is returned and this one is removed.
        """
        self.remove(node)
        identity = self._identity(item)
        equal = self._by_identity.get(identity)
        if equal is not None:
            return equal
        node.set_item(item, [], evolves=False)
        self._register(node, identity)
        return node

    def _register(self, node: PosetNode[T], identity: Hashable) -> None:
        self._by_identity[identity] = node
        self._identities[node] = identity

    def remove(self, node: PosetNode[T]) -> None:
        """Remove a node; raises KeyError if it is not here."""
        del self._by_identity[self._identities.pop(node)]

    def find(self, item: T) -> PosetNode[T] | None:
        """The node of an item; None if there is none."""
        return self._by_identity.get(self._identity(item))
