"""The nodes of a table by which covers which, and rule (1) of `forwarding` for them.

A node of the poset has its askers in `subscribers` and its destinations after rule (1) in
`forwards`. A change marks nodes; `settle` then computes the rule for the marked nodes and, where
that changes what reaches the nodes below, for those too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic

from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.coverage import Coverage
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import Asker
from tidegate.routing.messages import Key, Peer
from tidegate.routing.outbox import (
    Destination,
    DestinationChange,
    NeighbourDelta,
    OneFilterEach,
    Outbox,
    WireForm,
)
from tidegate.routing.tables.node_table import NodeListener, T

DestinationsOf = Callable[[PosetNode[T]], Iterable[Destination]]
"""The destinations of a node if nothing covered it: the first part of rule (1)."""

_NOWHERE: frozenset[Destination] = frozenset()


class CoveredNodes(Generic[T]):
    """A table of nodes in a poset, where each filter is sent at once or hidden by a wider one."""

    def __init__(
        self,
        coverage: Coverage[T],
        destinations: DestinationsOf[T],
        wire_form: Callable[[], WireForm[T]] = OneFilterEach,
        *,
        structure: Callable[[T], Hashable] = id,
        by_item: bool = True,
        antichain: Antichain[T] | None = None,
    ) -> None:
        """``structure`` says which items differ in cells only; by default none do.

        ``by_item`` says whether the destinations of a node depend on its item too, and not only on
        its askers. With an ``antichain`` for the nodes no item hides another, and every item is
        sent to all its destinations.
        """
        self.poset: Poset[T] | Antichain[T] = Poset(coverage) if antichain is None else antichain
        self.listener: NodeListener[T] | None = None
        self.destinations = destinations
        self._by_item = by_item
        self._reach: dict[PosetNode[T], frozenset[Destination]] = {}
        """The destinations to which a node, or a node that covers it, is sent."""
        # What has happened since the last `settle`:
        self._marked: dict[PosetNode[T], None] = {}
        """Nodes for which rule (1) must be computed again."""
        self._removed: list[PosetNode[T]] = []
        """Nodes that are no longer in the poset; their `forwards` say who still holds them."""
        self._updated: dict[PosetNode[T], None] = {}
        """Nodes whose item was replaced."""
        self._outbox = Outbox(wire_form, structure)

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: PosetNode[T]) -> None:
        self._marked[node] = None

    def mark_all(self) -> None:
        self._marked.update(dict.fromkeys(self.poset))

    def number_anew(
        self, peer: Peer, ordered: Callable[[Mapping[Key, T]], Mapping[Key, T]]
    ) -> None:
        self._outbox.number_anew(peer, ordered)

    def rename_askers(self, renamed: Mapping[tuple[Asker, PosetNode[T]], Asker]) -> None:
        for asker, node in renamed:
            node.subscribers.discard(asker)
        for (_, node), asker in renamed.items():
            node.subscribers.add(asker)

    def forget(self, peer: Peer) -> None:
        for node in [*self.poset, *self._removed]:
            for destination in [each for each in node.forwards if _destination(each).peer == peer]:
                node.forwards.discard(destination)
        self._outbox.forget(peer)
        self.mark_all()

    def settle(self) -> dict[Peer, NeighbourDelta[T]]:
        """Apply rule (1) after some changes; returns what to send to each neighbour."""
        if not self._marked and not self._removed and not self._updated:
            return {}
        changes: dict[Destination, DestinationChange[T]] = {}
        settled = self._settle_nodes()
        for node, before in settled.items():
            now = [_destination(each) for each in node.forwards] if node in self.poset else []
            for destination in before:
                if destination not in now:
                    changes.setdefault(destination, DestinationChange()).removed.append(node)
            for destination in now:
                if destination not in before:
                    changes.setdefault(destination, DestinationChange()).added.append(node)
                elif node in self._updated:
                    changes.setdefault(destination, DestinationChange()).updated.append(node)
        for node in self._updated:
            if node not in settled:  # its destinations stay as they were
                for each in node.forwards:
                    changes.setdefault(_destination(each), DestinationChange()).updated.append(node)
        self._updated.clear()
        return self._outbox.change(changes)

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """The items that a neighbour holds from this broker (rule 2), by key."""
        return self._outbox.sent(peer)

    def _settle_nodes(self) -> dict[PosetNode[T], list[Destination]]:
        """Compute rule (1) for the marked nodes, and for nodes below them that are affected.

        Returns the destinations that each of these nodes, and each removed node, had before.
        """
        before: dict[PosetNode[T], list[Destination]] = {
            node: [_destination(each) for each in node.forwards] for node in self._removed
        }
        self._removed.clear()
        waiting, self._marked = deque(self._marked), {}
        queued = set(waiting)
        while waiting:
            node = waiting.popleft()
            if node not in self.poset:
                continue
            parents = node.parents
            if any(each in queued for each in parents):
                waiting.append(node)  # what its parents reach is not known yet
                continue
            queued.discard(node)
            # The parents' reach has that of all nodes above them: no need to go further up.
            hidden = _NOWHERE.union(*(self._reach.get(each, _NOWHERE) for each in parents))
            forwards = [each for each in self.destinations(node) if each not in hidden]
            before.setdefault(node, [_destination(each) for each in node.forwards])
            node.forwards.clear()
            node.forwards |= dict.fromkeys(forwards).keys()
            reach = hidden.union(forwards)
            if reach != self._reach.get(node, _NOWHERE):
                self._reach[node] = reach
                for child in node.children:
                    if child not in queued:
                        queued.add(child)
                        waiting.append(child)
        return before

    # -- askers -------------------------------------------------------------------------------

    def add_asker(self, asker: Asker, item: T) -> PosetNode[T]:
        """Add an asker to the node of an item, which may be new; returns the node."""
        node = self.poset.insert(item)
        if self.listener is not None and not node.subscribers:
            self.listener.add(node)
        node.subscribers.add(asker)
        self._askers_changed(node)
        return node

    def _askers_changed(self, node: PosetNode[T]) -> None:
        self.mark(node)
        if self.listener is not None:
            self.listener.askers_changed(node)

    def replace(self, asker: Asker, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Replace the item of an asker; returns the node of the new item."""
        if len(node.subscribers) > 1:  # the others still want the old item
            self.remove_asker(asker, node)
            return self.add_asker(asker, item)
        edge_changes, children = node.edge_changes, node.children
        placed = self.poset.rebind(node, item)
        if placed is not node:  # another node has an equal item
            self._node_removed(node, children)
            placed.subscribers.add(asker)
            self._askers_changed(placed)
            return placed
        self._updated[node] = None
        if node.edge_changes != edge_changes:
            # It hides other nodes than before: the former children may come to light.
            self._marked.update(dict.fromkeys([node, *children, *node.children]))
        elif self._by_item:
            self.mark(node)
        # Else it keeps askers, parents and children, hence by rule (1) its destinations: most
        # updates of parameters end here, at a cost that does not grow with the table.
        if self.listener is not None:
            self.listener.change(node)
        return node

    def remove_asker(self, asker: Asker, node: PosetNode[T]) -> None:
        """Remove an asker from a node, and the node with its last asker."""
        node.subscribers.discard(asker)
        if node.subscribers:
            self._askers_changed(node)
            return
        children = node.children
        self.poset.remove(node)
        self._node_removed(node, children)

    def _node_removed(self, node: PosetNode[T], children: list[PosetNode[T]]) -> None:
        """Note that a node is no longer in the poset, and that its children may come to light."""
        if self.listener is not None:
            self.listener.remove(node)
        self._marked.update(dict.fromkeys(children))
        self._marked.pop(node, None)
        self._reach.pop(node, None)
        self._removed.append(node)


def _destination(each: Hashable) -> Destination:
    assert isinstance(each, Destination)
    return each
