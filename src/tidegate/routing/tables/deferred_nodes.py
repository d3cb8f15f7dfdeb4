"""A table whose nodes are found at once, and placed in a poset only when it settles.

Rules.

(1) A listener, which matches events, is told of every change at once.
(2) What neighbours hold depends on which item covers which, and is computed when the table settles,
    for what has changed in all. An asker that has changed its item several times since then is
    placed once; one that has come and gone is not placed at all.
(3) While nothing is sent to anyone, nothing is placed. When there is a neighbour to tell, all items
    are.

Theory of operation. There are two sets of nodes. Those in front are in an antichain: items with the
same identity share a node, whatever covers what, which needs no search. Those that were placed are
in a table of `CoveredNodes`, with the same askers. A pair of an asker and a front node stands for
one item of the asker; `_placed` has the node where it was placed, and `_changed` the pairs that are
to be placed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, cast

from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import Asker
from tidegate.routing.messages import Key, Peer
from tidegate.routing.outbox import NeighbourDelta
from tidegate.routing.tables.covered_nodes import CoveredNodes
from tidegate.routing.tables.node_table import NodeListener, T


class DeferredNodes(Generic[T]):
    """A table of nodes that are placed when it settles, if there is someone to tell.

    ``identity`` says which items may share a node in front, ``covered`` makes the table of those
    that are placed, and ``has_destinations`` says whether anything is sent to anyone.
    """

    def __init__(
        self,
        identity: Callable[[T], Hashable],
        covered: Callable[[], CoveredNodes[T]],
        has_destinations: Callable[[], bool],
    ) -> None:
        self.listener: NodeListener[T] | None = None
        self._front: Antichain[T] = Antichain(identity)
        self._new_covered = covered
        self._has_destinations = has_destinations
        self._covered: CoveredNodes[T] | None = None
        """None while nothing is placed (rule 3)."""
        self._placed: dict[tuple[Asker, PosetNode[T]], PosetNode[T]] = {}
        self._changed: dict[tuple[Asker, PosetNode[T]], None] = {}

    @property
    def poset(self) -> Poset[T] | Antichain[T]:
        """The nodes that were placed; those in front while none is."""
        return self._front if self._covered is None else self._covered.poset

    # -- askers -------------------------------------------------------------------------------

    def add_asker(self, asker: Asker, item: T) -> PosetNode[T]:
        node = self._front.insert(item)
        if self.listener is not None and not node.subscribers:
            self.listener.add(node)
        self._join(asker, node)
        return node

    def replace(self, asker: Asker, node: PosetNode[T], item: T) -> PosetNode[T]:
        if len(node.subscribers) > 1:  # the others still want the old item
            node.subscribers.discard(asker)
            self._askers_changed(node)
            new = self._front.insert(item)
            if self.listener is not None and not new.subscribers:
                self.listener.add(new)
        else:
            new = self._front.rebind(node, item)
            if new is node:
                if self.listener is not None:
                    self.listener.change(node)
                self._note_change(asker, node)
                return node
            node.subscribers.discard(asker)
            if self.listener is not None:
                self.listener.remove(node)
        self._changed.pop((asker, node), None)
        placed = self._placed.pop((asker, node), None)
        if placed is not None:
            self._placed[asker, new] = placed
        self._join(asker, new)
        return new

    def remove_asker(self, asker: Asker, node: PosetNode[T]) -> None:
        node.subscribers.discard(asker)
        if node.subscribers:
            self._askers_changed(node)
        else:
            self._front.remove(node)
            if self.listener is not None:
                self.listener.remove(node)
        if (asker, node) in self._placed:
            self._note_change(asker, node)
        else:
            self._changed.pop((asker, node), None)

    def _join(self, asker: Asker, node: PosetNode[T]) -> None:
        node.subscribers.add(asker)
        self._askers_changed(node)
        self._note_change(asker, node)

    def _askers_changed(self, node: PosetNode[T]) -> None:
        if self.listener is not None:
            self.listener.askers_changed(node)

    def _note_change(self, asker: Asker, node: PosetNode[T]) -> None:
        if self._covered is not None:
            self._changed[asker, node] = None

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: PosetNode[T]) -> None:
        if self._covered is not None:
            self._covered.mark(node)

    def mark_all(self) -> None:
        if self._covered is not None:
            self._covered.mark_all()

    def settle(self) -> dict[Peer, NeighbourDelta[T]]:
        if not self._has_destinations():
            self._covered = None
            self._placed.clear()
            self._changed.clear()
            return {}
        if self._covered is None:
            self._covered = self._new_covered()
            for node in self._front:
                for asker in node.subscribers:
                    self._changed[cast(Asker, asker), node] = None
        for asker, node in self._changed:
            self._place(self._covered, asker, node)
        self._changed.clear()
        return self._covered.settle()

    def _place(self, covered: CoveredNodes[T], asker: Asker, node: PosetNode[T]) -> None:
        """Bring the place of an asker's item up to date."""
        placed = self._placed.pop((asker, node), None)
        if asker not in node.subscribers:
            if placed is not None:
                covered.remove_asker(asker, placed)
        elif placed is None:
            self._placed[asker, node] = covered.add_asker(asker, node.item)
        else:
            self._placed[asker, node] = covered.replace(asker, placed, node.item)

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        return {} if self._covered is None else self._covered.sent(peer)

    def number_anew(
        self, peer: Peer, ordered: Callable[[Mapping[Key, T]], Mapping[Key, T]]
    ) -> None:
        if self._covered is not None:
            self._covered.number_anew(peer, ordered)

    def rename_askers(self, renamed: Mapping[tuple[Asker, PosetNode[T]], Asker]) -> None:
        assert not self._changed
        for asker, node in renamed:
            node.subscribers.discard(asker)
        for (_, node), asker in renamed.items():
            node.subscribers.add(asker)
        if self._covered is not None:
            placed = {(old, self._placed[old, node]): new for (old, node), new in renamed.items()}
            moved = {
                (new, node): self._placed.pop((old, node)) for (old, node), new in renamed.items()
            }
            self._placed.update(moved)
            self._covered.rename_askers(placed)

    def forget(self, peer: Peer) -> None:
        if self._covered is not None:
            self._covered.forget(peer)
