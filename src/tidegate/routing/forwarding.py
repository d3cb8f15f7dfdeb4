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

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic

from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import Asker, LocalAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Key, Peer
from tidegate.routing.outbox import NeighbourDelta
from tidegate.routing.tables.node_table import NodeListener, NodeTable, T


class Forwarding(Generic[T]):
    """A table of filters or advertisements: who asked for each, and where it is sent.

    Filters and advertisements are called items here. Methods about clients take any local asker.
    """

    def __init__(self, nodes: NodeTable[T], covers: Callable[[T, T], bool]) -> None:
        self._nodes = nodes
        self._covers = covers
        # Equal items share a node, whose item is that of the first asker. What each asker wrote is
        # kept beside it, because the cells of a neighbour's update count in the neighbour's row.
        self._by_client: dict[LocalAsker, dict[PosetNode[T], T]] = {}
        """The nodes of each client, with the item as the client wrote it."""
        self._by_peer: dict[Peer, dict[Key, tuple[PosetNode[T], T]]] = {}
        """The node of each key of a neighbour, with the item as the neighbour sent it."""
        self._on_change: Callable[[Asker], None] | None = None

    @property
    def poset(self) -> Poset[T] | Antichain[T]:
        """The nodes that decide what is sent, as of the last `settle`."""
        return self._nodes.poset

    def listen(self, listener: NodeListener[T]) -> None:
        """Have a listener told of all changes of the nodes."""
        self._nodes.listener = listener

    def on_change(self, note: Callable[[Asker], None]) -> None:
        """Call a function with each asker whose items change, also when it has none any more."""
        self._on_change = note

    def _note(self, asker: Asker) -> None:
        if self._on_change is not None:
            self._on_change(asker)

    # -- clients ------------------------------------------------------------------------------

    def nodes_of(self, client: LocalAsker) -> list[PosetNode[T]]:
        """The nodes of the items that a client has asked for."""
        return list(self._by_client.get(client, ()))

    def items_of(self, client: LocalAsker) -> list[T]:
        """The items that a client has asked for, as it wrote them."""
        return list(self._by_client.get(client, {}).values())

    def asked_here(self) -> Iterator[tuple[LocalAsker, T]]:
        """Who has asked at this broker itself, and for what, item by item."""
        for asker, held in self._by_client.items():
            for item in held.values():
                yield asker, item

    def ask(self, client: LocalAsker, item: T) -> bool:
        """Add an item of a client, in place of all its items that this one covers.

        Returns False, and changes nothing, if an item of the client covers this one.
        """
        covers = self._covers
        if any(covers(each, item) for each in self.items_of(client)):
            return False
        self.cancel(client, item)
        self._remember(client, self._nodes.add_asker(client, item), item)
        return True

    def set_named(self, asker: NamedAsker, item: T) -> None:
        """Add the item of a named subscription, or replace the one it had.

        Unlike with `ask`, other items of the client are not touched, whatever covers what: each
        name is updated and cancelled by itself.
        """
        held = self._by_client.pop(asker, None)
        if held is None:
            self._remember(asker, self._nodes.add_asker(asker, item), item)
        else:
            self._remember(asker, self._nodes.replace(asker, next(iter(held)), item), item)

    def cancel_named(self, asker: NamedAsker) -> None:
        """Remove the item of a named subscription, if it has one."""
        for node in self.nodes_of(asker):
            self._cancel(asker, node)

    def _remember(self, client: LocalAsker, node: PosetNode[T], item: T) -> None:
        self._by_client.setdefault(client, {})[node] = item
        self._note(client)

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
        self._nodes.remove_asker(client, node)
        self._note(client)

    # -- neighbours ---------------------------------------------------------------------------

    def put(self, peer: Peer, key: Key, item: T) -> None:
        """Add an item that a neighbour has sent, or replace the one it sent under the same key."""
        held = self._by_peer.setdefault(peer, {})
        if key in held:
            node = self._nodes.replace(NeighbourAsker(peer, key), held[key][0], item)
        else:
            node = self._nodes.add_asker(NeighbourAsker(peer, key), item)
        held[key] = node, item
        self._note(NeighbourAsker(peer, key))

    def remove(self, peer: Peer, keys: Iterable[Key]) -> None:
        """Remove items that a neighbour has sent, by their keys; unknown keys are ignored."""
        held = self._by_peer.get(peer, {})
        for key in keys:
            entry = held.pop(key, None)
            if entry is not None:
                self._nodes.remove_asker(NeighbourAsker(peer, key), entry[0])
                self._note(NeighbourAsker(peer, key))

    def has_key(self, peer: Peer, key: Key) -> bool:
        """Whether a neighbour has sent an item under this key."""
        return key in self._by_peer.get(peer, ())

    def nodes_of_peer(self, peer: Peer) -> list[PosetNode[T]]:
        """The nodes of the items that a neighbour has sent."""
        return [node for node, _ in self._by_peer.get(peer, {}).values()]

    def item_of_peer(self, peer: Peer, key: Key) -> T:
        """The item that a neighbour has sent under this key, as it sent it."""
        return self._by_peer[peer][key][1]

    def held_from(self, peer: Peer) -> dict[Key, T]:
        """The items that a neighbour has sent, by key."""
        return {key: item for key, (_, item) in self._by_peer.get(peer, {}).items()}

    def held(self, peer: Peer, key: Key) -> T | None:
        """The item that a neighbour has sent under a key; None if there is none."""
        entry = self._by_peer.get(peer, {}).get(key)
        return None if entry is None else entry[1]

    def hold(self, peer: Peer, items: Mapping[Key, T], text_of: Callable[[T], str]) -> list[T]:
        """Hold these items of a neighbour, in place of all that it has sent before.

        An item that is held already, under whatever key, keeps its node; ``text_of`` says which
        items are equal. Returns the items that were added or removed. The table must have settled.
        """
        held = self._by_peer.get(peer, {})
        known: dict[tuple[Peer | None, str], list[Key]] = {}
        for key, (_, item) in held.items():
            known.setdefault((key.tree, text_of(item)), []).append(key)
        kept: dict[Key, Key] = {}
        new: dict[Key, T] = {}
        for key, item in items.items():
            same = known.get((key.tree, text_of(item)))
            if same:
                kept[same.pop()] = key
            else:
                new[key] = item
        # What is left makes room for the new keys, and is removed last: adding comes first.
        left = {key: Key(-place, key.tree) for place, key in enumerate(held, 1) if key not in kept}
        self._rename(peer, {**kept, **left})
        gone = [self.item_of_peer(peer, key) for key in left.values()]
        for key, item in new.items():
            self.put(peer, key, item)
        self.remove(peer, left.values())
        return [*gone, *new.values()]

    def _rename(self, peer: Peer, keys: Mapping[Key, Key]) -> None:
        """Give all items of a neighbour other keys."""
        held = self._by_peer.get(peer, {})
        changed = {old: new for old, new in keys.items() if old != new}
        self._nodes.rename_askers(
            {
                (NeighbourAsker(peer, old), held[old][0]): NeighbourAsker(peer, new)
                for old, new in changed.items()
            }
        )
        self._by_peer[peer] = {keys[key]: entry for key, entry in held.items()}
        for old in changed:
            self._note(NeighbourAsker(peer, old))
        for new_key in changed.values():
            self._note(NeighbourAsker(peer, new_key))

    def forget(self, peer: Peer) -> None:
        """Remove all items of a neighbour, and the record of what was sent to it.

        If it becomes a neighbour again, both ends begin with nothing (rule 2).
        """
        self.remove(peer, list(self._by_peer.get(peer, ())))
        self._by_peer.pop(peer, None)
        self._nodes.forget(peer)

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: PosetNode[T]) -> None:
        """Compute the destinations of a node of ``poset`` again, at the next `settle`."""
        self._nodes.mark(node)

    def mark_all(self) -> None:
        """Compute the destinations of all nodes again, at the next `settle`."""
        self._nodes.mark_all()

    def settle(self) -> dict[Peer, NeighbourDelta[T]]:
        """Apply rule (1) after some changes; returns what to send to each neighbour."""
        return self._nodes.settle()

    def number_anew(
        self, peer: Peer, ordered: Callable[[Mapping[Key, T]], Mapping[Key, T]]
    ) -> None:
        """Give what a neighbour was sent other keys (see `Outbox.number_anew`)."""
        self._nodes.number_anew(peer, ordered)

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """The items that a neighbour holds from this broker (rule 2), by key."""
        return self._nodes.sent(peer)
