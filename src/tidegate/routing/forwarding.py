"""What a broker holds for others and sends on: filters, or advertisements (Siena, 4.2).

Rules. (1) Something is sent to a neighbour down the spanning trees of those who asked for it, less
those neighbours to which something that covers it is sent: with `wanted` for the first part,

    forwards(f) = wanted(f) - union of forwards(g) over all g that cover f.

(2) What a neighbour holds from this broker is exactly what was sent and not taken back. (3) All
that changes for a neighbour because of one message goes to it in one message.

Theory of operation. A node of the poset has in `subscribers` who asked for it and in `forwards`
where it was sent. A change marks nodes; `settle` computes rule (1) for them and, where that changes
what reaches the nodes below, for those too, and gives what to send. Adding, removing, a new
neighbour, one that left and another shape of the trees all come down to marking nodes. So what was
hidden by something that goes is sent in the same message in which that is taken back.

Somebody who asks for something else in its place keeps the node, if it shares it with nobody
("Parametric Subscriptions", figure 6: UPDATE). What takes the place of something at a neighbour
keeps its name there if both have the same structure, and is sent as an update (PROPAGATE).

A label is a neighbour and a tree. Where every source has a tree of its own, what covers something
hides it only on the same tree: on another one it may not get to all the same brokers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from tidegate.matching.poset.coverage import Coverage
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.messages import Client, Key, Peer
from tidegate.routing.outbox import (
    Destination,
    DestinationChange,
    NeighbourDelta,
    OneFilterEach,
    Outbox,
    WireForm,
)

T = TypeVar("T")


class NeighbourAsker(NamedTuple):
    """A neighbour as the one who asked, and by which name."""

    peer: Peer
    key: Key


class MonitorAsker(NamedTuple):
    """A monitor of this broker that asks for events like a client."""

    number: int


class NamedAsker(NamedTuple):
    """A subscription that a client has given a name, to change it later."""

    client: Client
    name: str


Local = Client | MonitorAsker | NamedAsker
Asker = Local | NeighbourAsker


Wanted = Callable[[PosetNode[T]], Iterable[Destination]]
"""Where something should be sent, were nothing covering it."""

_NOWHERE: frozenset[Destination] = frozenset()


class NodeListener(Protocol[T]):
    """Is told which nodes there are."""

    def add(self, node: PosetNode[T]) -> None:
        """Take a node in."""
        ...

    def remove(self, node: PosetNode[T]) -> None:
        """Forget a node."""
        ...

    def change(self, node: PosetNode[T]) -> None:
        """Take note that a node has another item."""
        ...


class Forwarding(Generic[T]):
    """Filters or advertisements, who asked for them, and where they were sent."""

    def __init__(
        self,
        order: Coverage[T],
        wanted: Wanted[T],
        packing: Callable[[], WireForm[T]] = OneFilterEach,
        *,
        structure: Callable[[T], Hashable] = id,
        by_item: bool = True,
    ) -> None:
        self.poset: Poset[T] = Poset(order)
        self.listener: NodeListener[T] | None = None
        self._covers = order.covers
        self.wanted = wanted
        self._by_item = by_item
        """Whether it depends on what something is where it is wanted, not only on who asks."""
        self._of_client: dict[Local, dict[PosetNode[T], T]] = {}
        """The nodes of what a client asks for, and how it has said it."""
        self._of_peer: dict[Peer, dict[Key, tuple[PosetNode[T], T]]] = {}
        """The node of what a neighbour asks for, and how it has said it."""
        self._reach: dict[PosetNode[T], frozenset[Destination]] = {}
        """Where a node or one that covers it was sent."""
        self._marked: dict[PosetNode[T], None] = {}
        self._gone: list[PosetNode[T]] = []
        self._altered: dict[PosetNode[T], None] = {}
        """The nodes that have another item since things were settled."""
        self._outbox = Outbox(packing, structure)

    # -- clients ------------------------------------------------------------------------------

    def held(self, client: Local) -> list[PosetNode[T]]:
        """What a client has asked for."""
        return list(self._of_client.get(client, ()))

    def asked(self, client: Local) -> list[T]:
        """What a client has asked for, as it has said it."""
        return list(self._of_client.get(client, {}).values())

    def ask(self, client: Local, item: T) -> bool:
        """Enter what a client asks for, in place of all it covers; False if it has it already."""
        covers = self._covers
        if any(covers(each, item) for each in self.asked(client)):
            return False
        self.cancel(client, item)
        self._hold(client, self._enter(client, item), item)
        return True

    def claim(self, claim: NamedAsker, item: T) -> None:
        """Enter what a client asks for by a name, in place of what that was before.

        It is nobody else's business: nothing of the client replaces it, and it replaces nothing.
        """
        held = self._of_client.pop(claim, None)
        if held is None:
            self._hold(claim, self._enter(claim, item), item)
        else:
            self._hold(claim, self._shift(claim, next(iter(held)), item), item)

    def release(self, claim: NamedAsker) -> None:
        """Cancel what a client has asked for by a name."""
        for node in self.held(claim):
            self._release(claim, node)

    def _hold(self, client: Local, node: PosetNode[T], item: T) -> None:
        self._of_client.setdefault(client, {})[node] = item

    def cancel(self, client: Local, item: T) -> int:
        """Cancel all that a client has asked for and an item covers; gives how many those are."""
        held = self._of_client.get(client, {})
        covered = [node for node, said in held.items() if self._covers(item, said)]
        for node in covered:
            self._release(client, node)
        return len(covered)

    def _release(self, client: Local, node: PosetNode[T]) -> None:
        held = self._of_client[client]
        del held[node]
        if not held:
            del self._of_client[client]
        self._let_go(client, node)

    # -- neighbours ---------------------------------------------------------------------------

    def put(self, peer: Peer, key: Key, item: T) -> None:
        """Enter what a neighbour asks for, in place of what it asked for by the same name."""
        held = self._of_peer.setdefault(peer, {})
        if key in held:
            node = self._shift(NeighbourAsker(peer, key), held[key][0], item)
        else:
            node = self._enter(NeighbourAsker(peer, key), item)
        held[key] = node, item

    def take_back(self, peer: Peer, keys: Iterable[Key]) -> None:
        """Remove what a neighbour no longer asks for; what it did not ask for is not there."""
        held = self._of_peer.get(peer, {})
        for key in keys:
            found = held.pop(key, None)
            if found is not None:
                self._let_go(NeighbourAsker(peer, key), found[0])

    def holds(self, peer: Peer, key: Key) -> bool:
        """Whether a neighbour has asked for something by this name."""
        return key in self._of_peer.get(peer, ())

    def held_by(self, peer: Peer) -> list[PosetNode[T]]:
        """What a neighbour has asked for."""
        return [node for node, _ in self._of_peer.get(peer, {}).values()]

    def item(self, peer: Peer, key: Key) -> T:
        """What a neighbour has asked for by this name."""
        return self._of_peer[peer][key][1]

    def forget(self, peer: Peer) -> None:
        """Remove all that a neighbour has asked for, and that it was sent anything."""
        self.take_back(peer, list(self._of_peer.get(peer, ())))
        self._of_peer.pop(peer, None)
        for node in [*self.poset, *self._gone]:
            for label in [each for each in node.forwards if _label(each).peer == peer]:
                node.forwards.discard(label)
        self._outbox.forget(peer)
        self.mark_all()

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: PosetNode[T]) -> None:
        """See where a node is to be sent when things settle."""
        self._marked[node] = None

    def mark_all(self) -> None:
        """See where everything is to be sent when things settle."""
        self._marked.update(dict.fromkeys(self.poset))

    def settle(self) -> dict[Peer, NeighbourDelta[T]]:
        """Bring what was sent up to date; gives what to send to each neighbour."""
        if not self._marked and not self._gone and not self._altered:
            return {}
        changes: dict[Destination, DestinationChange[T]] = {}
        looked_at = self._settle_nodes()
        for node, before in looked_at.items():
            here = node in self.poset
            now = [_label(each) for each in node.forwards] if here else []
            for label in before:
                if label not in now:
                    changes.setdefault(label, DestinationChange()).gone.append(node)
            for label in now:
                if label not in before:
                    changes.setdefault(label, DestinationChange()).new.append(node)
                elif node in self._altered:
                    changes.setdefault(label, DestinationChange()).altered.append(node)
        for node in self._altered:
            if node not in looked_at:
                for each in node.forwards:
                    changes.setdefault(_label(each), DestinationChange()).altered.append(node)
        self._altered.clear()
        return self._outbox.change(changes)

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """What a neighbour was sent and has, by name."""
        return self._outbox.sent(peer)

    def _settle_nodes(self) -> dict[PosetNode[T], list[Destination]]:
        """Compute where the marked nodes, and those below that it matters for, are to be sent.

        Gives where each that was looked at had been sent before.
        """
        before: dict[PosetNode[T], list[Destination]] = {
            node: [_label(each) for each in node.forwards] for node in self._gone
        }
        self._gone.clear()
        waiting, self._marked = deque(self._marked), {}
        queued = set(waiting)
        while waiting:
            node = waiting.popleft()
            if node not in self.poset:
                continue
            parents = node.parents
            if any(each in queued for each in parents):
                waiting.append(node)  # after its parents
                continue
            queued.discard(node)
            hidden = _NOWHERE.union(*(self._reach.get(each, _NOWHERE) for each in parents))
            forwards = [each for each in self.wanted(node) if each not in hidden]
            before.setdefault(node, [_label(each) for each in node.forwards])
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

    def _enter(self, asker: Asker, item: T) -> PosetNode[T]:
        """Have somebody ask for something."""
        node = self.poset.insert(item)
        if self.listener is not None and not node.subscribers:
            self.listener.add(node)
        node.subscribers.add(asker)
        self.mark(node)
        return node

    def _shift(self, asker: Asker, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Have somebody ask for something else than before; gives the node of that."""
        if len(node.subscribers) > 1:
            self._let_go(asker, node)
            return self._enter(asker, item)
        shifts, children = node.shifts, node.children
        placed = self.poset.rebind(node, item)
        if placed is not node:
            self._drop(node, children)
            placed.subscribers.add(asker)
            self.mark(placed)
            return placed
        self._altered[node] = None
        if node.shifts != shifts:
            self._marked.update(dict.fromkeys([node, *children, *node.children]))
        elif self._by_item:
            self.mark(node)
        if self.listener is not None:
            self.listener.change(node)
        return node

    def _let_go(self, asker: Asker, node: PosetNode[T]) -> None:
        """Have somebody no longer ask for something."""
        node.subscribers.discard(asker)
        if node.subscribers:
            self.mark(node)
            return
        children = node.children
        self.poset.remove(node)
        self._drop(node, children)

    def _drop(self, node: PosetNode[T], children: list[PosetNode[T]]) -> None:
        """Forget a node that is no longer in the poset, and see to what was below it."""
        if self.listener is not None:
            self.listener.remove(node)
        self._marked.update(dict.fromkeys(children))
        self._marked.pop(node, None)
        self._reach.pop(node, None)
        self._gone.append(node)


def _label(each: Hashable) -> Destination:
    assert isinstance(each, Destination)
    return each
