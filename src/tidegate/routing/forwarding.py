"""Forwarding: the filters or advertisements a broker holds, and to which neighbours it sends them.

Rules (Siena, 4.2).

(1) A filter is sent down the spanning trees of those who asked for it, except to neighbours to
    which a filter that covers it is sent. With `destinations` for the first part,

        forwards(f) = destinations(f) - union of forwards(g) over all g that cover f.

(2) What a neighbour holds from this broker is exactly what was sent to it and not removed since.
(3) All that changes for a neighbour because of one message goes to it in one message.

Theory of operation. A node of the poset has its askers in `subscribers` and its destinations after
rule (1) in `forwards`. A change marks nodes; `settle` then computes rule (1) for the marked nodes
and, where that changes what reaches the nodes below, for those too, and returns what to send. New
and removed filters, new and lost neighbours and other spanning trees all come down to marking
nodes. So a filter that was hidden by a wider one is sent in the very message that removes the
wider one, and no event falls between the two.

An asker that replaces its filter keeps the node, if no one else asks for it ("Parametric
Subscriptions", figure 6: UPDATE). At a neighbour, a filter that takes the place of one with the
same structure keeps its key and is sent as an update of cells (PROPAGATE; see `outbox`).

A destination is a neighbour and a spanning tree. Where every broker has a tree of its own, a filter
hides a narrower one only on the same tree: on another tree it may not reach the same brokers. With
link matching, which needs all filters everywhere, no filter hides another.

Nothing here depends on hashes: nodes and destinations are kept in dictionaries as ordered sets, so
the same requests lead to the same messages, in the same order, in every run.

What was tried and dropped: to let the neighbour remove whatever an unsubscription covers, as a
broker does for its clients. The narrow filters that come to light had to be sent after it, and
events in between were lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.coverage import Coverage
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import Asker, LocalAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Key, Peer
from tidegate.routing.outbox import (
    Destination,
    DestinationChange,
    NeighbourDelta,
    OneFilterEach,
    Outbox,
    WireForm,
)

T = TypeVar("T")

DestinationsOf = Callable[[PosetNode[T]], Iterable[Destination]]
"""The destinations of a node if nothing covered it: the first part of rule (1)."""

_NOWHERE: frozenset[Destination] = frozenset()


class NodeListener(Protocol[T]):
    """Is called for every change of the nodes of a table; a matcher of events is one."""

    def add(self, node: PosetNode[T]) -> None:
        """Called after a node was added."""
        ...

    def remove(self, node: PosetNode[T]) -> None:
        """Called after a node was removed."""
        ...

    def change(self, node: PosetNode[T]) -> None:
        """Called after the item of a node was replaced."""
        ...

    def askers_changed(self, node: PosetNode[T]) -> None:
        """Called after a node got or lost an asker, and still has one."""
        ...


class Forwarding(Generic[T]):
    """A table of filters or advertisements: who asked for each, and where it is sent.

    Filters and advertisements are called items here. Methods about clients take any local asker.
    """

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
        self.hides = antichain is None
        self.poset: Poset[T] | Antichain[T] = Poset(coverage) if antichain is None else antichain
        self.listener: NodeListener[T] | None = None
        self._covers = coverage.covers
        self.destinations = destinations
        self._by_item = by_item
        # Equal items share a node, whose item is that of the first asker. What each asker wrote is
        # kept beside it, because the cells of a neighbour's update count in the neighbour's row.
        self._by_client: dict[LocalAsker, dict[PosetNode[T], T]] = {}
        """The nodes of each client, with the item as the client wrote it."""
        self._by_peer: dict[Peer, dict[Key, tuple[PosetNode[T], T]]] = {}
        """The node of each key of a neighbour, with the item as the neighbour sent it."""
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

    # -- clients ------------------------------------------------------------------------------

    def nodes_of(self, client: LocalAsker) -> list[PosetNode[T]]:
        """The nodes of the items that a client has asked for."""
        return list(self._by_client.get(client, ()))

    def items_of(self, client: LocalAsker) -> list[T]:
        """The items that a client has asked for, as it wrote them."""
        return list(self._by_client.get(client, {}).values())

    def ask(self, client: LocalAsker, item: T) -> bool:
        """Add an item of a client, in place of all its items that this one covers.

        Returns False, and changes nothing, if an item of the client covers this one.
        """
        covers = self._covers
        if any(covers(each, item) for each in self.items_of(client)):
            return False
        self.cancel(client, item)
        self._remember(client, self._add_asker(client, item), item)
        return True

    def set_named(self, asker: NamedAsker, item: T) -> None:
        """Add the item of a named subscription, or replace the one it had.

        Unlike with `ask`, other items of the client are not touched, whatever covers what: each
        name is updated and cancelled by itself.
        """
        held = self._by_client.pop(asker, None)
        if held is None:
            self._remember(asker, self._add_asker(asker, item), item)
        else:
            self._remember(asker, self._replace(asker, next(iter(held)), item), item)

    def cancel_named(self, asker: NamedAsker) -> None:
        """Remove the item of a named subscription, if it has one."""
        for node in self.nodes_of(asker):
            self._cancel(asker, node)

    def _remember(self, client: LocalAsker, node: PosetNode[T], item: T) -> None:
        self._by_client.setdefault(client, {})[node] = item

    def cancel(self, client: LocalAsker, item: T) -> int:
        """Remove all items of a client that ``item`` covers; returns their number."""
        held = self._by_client.get(client, {})
        covered = [node for node, written in held.items() if self._covers(item, written)]
        for node in covered:
            self._cancel(client, node)
        return len(covered)

    def _cancel(self, client: LocalAsker, node: PosetNode[T]) -> None:
        held = self._by_client[client]
        del held[node]
        if not held:
            del self._by_client[client]
        self._remove_asker(client, node)

    # -- neighbours ---------------------------------------------------------------------------

    def put(self, peer: Peer, key: Key, item: T) -> None:
        """Add an item that a neighbour has sent, or replace the one it sent under the same key."""
        held = self._by_peer.setdefault(peer, {})
        if key in held:
            node = self._replace(NeighbourAsker(peer, key), held[key][0], item)
        else:
            node = self._add_asker(NeighbourAsker(peer, key), item)
        held[key] = node, item

    def remove(self, peer: Peer, keys: Iterable[Key]) -> None:
        """Remove items that a neighbour has sent, by their keys; unknown keys are ignored."""
        held = self._by_peer.get(peer, {})
        for key in keys:
            entry = held.pop(key, None)
            if entry is not None:
                self._remove_asker(NeighbourAsker(peer, key), entry[0])

    def has_key(self, peer: Peer, key: Key) -> bool:
        """Whether a neighbour has sent an item under this key."""
        return key in self._by_peer.get(peer, ())

    def nodes_of_peer(self, peer: Peer) -> list[PosetNode[T]]:
        """The nodes of the items that a neighbour has sent."""
        return [node for node, _ in self._by_peer.get(peer, {}).values()]

    def item_of_peer(self, peer: Peer, key: Key) -> T:
        """The item that a neighbour has sent under this key, as it sent it."""
        return self._by_peer[peer][key][1]

    def forget(self, peer: Peer) -> None:
        """Remove all items of a neighbour, and the record of what was sent to it.

        If it becomes a neighbour again, both ends begin with nothing (rule 2).
        """
        self.remove(peer, list(self._by_peer.get(peer, ())))
        self._by_peer.pop(peer, None)
        for node in [*self.poset, *self._removed]:
            for destination in [each for each in node.forwards if _destination(each).peer == peer]:
                node.forwards.discard(destination)
        self._outbox.forget(peer)
        self.mark_all()

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: PosetNode[T]) -> None:
        """Compute the destinations of a node again, at the next `settle`."""
        self._marked[node] = None

    def mark_all(self) -> None:
        """Compute the destinations of all nodes again, at the next `settle`."""
        self._marked.update(dict.fromkeys(self.poset))

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

    def _add_asker(self, asker: Asker, item: T) -> PosetNode[T]:
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

    def _replace(self, asker: Asker, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Replace the item of an asker; returns the node of the new item."""
        if len(node.subscribers) > 1:  # the others still want the old item
            self._remove_asker(asker, node)
            return self._add_asker(asker, item)
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

    def _remove_asker(self, asker: Asker, node: PosetNode[T]) -> None:
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
