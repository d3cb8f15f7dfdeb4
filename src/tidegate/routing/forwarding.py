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

A label is a neighbour and a tree. Where every source has a tree of its own, what covers something
hides it only on the same tree: on another one it may not get to all the same brokers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from tidegate.matching.orders import Order
from tidegate.matching.poset import Node, Poset
from tidegate.routing.messages import Client, Key, Peer

T = TypeVar("T")


class Entry(NamedTuple):
    """A neighbour as the one who asked, and by which name."""

    peer: Peer
    key: Key


class Watcher(NamedTuple):
    """A monitor of this broker that asks for events like a client."""

    number: int


Local = Client | Watcher
Asker = Local | Entry


class Label(NamedTuple):
    """Where something is sent: to a neighbour, down a tree."""

    peer: Peer
    tree: Peer | None


class Sent(Generic[T]):
    """What is to be sent to a neighbour, and to be taken back."""

    __slots__ = ("added", "dropped")

    def __init__(self) -> None:
        self.added: list[tuple[Key, T]] = []
        self.dropped: list[Key] = []


Wanted = Callable[[Node[T]], Iterable[Label]]
"""Where something should be sent, were nothing covering it."""

_NOWHERE: frozenset[Label] = frozenset()


class Packing(Protocol[T]):
    """Decides as what the things are sent that go to one place."""

    def change(
        self, gone: Iterable[Node[T]], new: Iterable[Node[T]]
    ) -> tuple[list[int], list[tuple[int, T]]]:
        """Take things out and in; gives the numbers that are no more, and what is new."""
        ...


class OneByOne(Generic[T]):
    """Sends each thing as it is."""

    def change(
        self, gone: Iterable[Node[T]], new: Iterable[Node[T]]
    ) -> tuple[list[int], list[tuple[int, T]]]:
        """What goes and comes, by the numbers of the nodes."""
        return [node.number for node in gone], [(node.number, node.item) for node in new]


class Forwarding(Generic[T]):
    """Filters or advertisements, who asked for them, and where they were sent."""

    def __init__(
        self,
        order: Order[T],
        wanted: Wanted[T],
        packing: Callable[[], Packing[T]] = OneByOne,
    ) -> None:
        self.poset: Poset[T] = Poset(order)
        self._covers = order.covers
        self.wanted = wanted
        self._of_client: dict[Local, dict[Node[T], None]] = {}
        self._of_peer: dict[Peer, dict[Key, Node[T]]] = {}
        self._reach: dict[Node[T], frozenset[Label]] = {}
        """Where a node or one that covers it was sent."""
        self._marked: dict[Node[T], None] = {}
        self._gone: list[Node[T]] = []
        self._packing = packing
        self._packed: dict[Label, Packing[T]] = {}
        self._sent: dict[Peer, dict[Key, T]] = {}

    # -- clients ------------------------------------------------------------------------------

    def held(self, client: Local) -> list[Node[T]]:
        """What a client has asked for."""
        return list(self._of_client.get(client, ()))

    def ask(self, client: Local, item: T) -> bool:
        """Enter what a client asks for, in place of all it covers; False if it has it already."""
        covers = self._covers
        held = self.held(client)
        if any(covers(node.item, item) for node in held):
            return False
        for narrow in [each for each in held if covers(item, each.item)]:
            self._release(client, narrow)
        node = self.poset.insert(item)
        self._of_client.setdefault(client, {})[node] = None
        self._take_in(client, node)
        return True

    def cancel(self, client: Local, item: T) -> int:
        """Cancel all that a client has asked for and an item covers; gives how many those are."""
        covers = self._covers
        covered = [each for each in self.held(client) if covers(item, each.item)]
        for node in covered:
            self._release(client, node)
        return len(covered)

    def _release(self, client: Local, node: Node[T]) -> None:
        held = self._of_client[client]
        del held[node]
        if not held:
            del self._of_client[client]
        self._let_go(client, node)

    # -- neighbours ---------------------------------------------------------------------------

    def put(self, peer: Peer, key: Key, item: T) -> None:
        """Enter what a neighbour asks for."""
        self.take_back(peer, [key])
        node = self.poset.insert(item)
        self._of_peer.setdefault(peer, {})[key] = node
        self._take_in(Entry(peer, key), node)

    def take_back(self, peer: Peer, keys: Iterable[Key]) -> None:
        """Remove what a neighbour no longer asks for; what it did not ask for is not there."""
        held = self._of_peer.get(peer, {})
        for key in keys:
            node = held.pop(key, None)
            if node is not None:
                self._let_go(Entry(peer, key), node)

    def holds(self, peer: Peer, key: Key) -> bool:
        """Whether a neighbour has asked for something by this name."""
        return key in self._of_peer.get(peer, ())

    def held_by(self, peer: Peer) -> list[Node[T]]:
        """What a neighbour has asked for."""
        return list(self._of_peer.get(peer, {}).values())

    def item(self, peer: Peer, key: Key) -> T:
        """What a neighbour has asked for by this name."""
        return self._of_peer[peer][key].item

    def forget(self, peer: Peer) -> None:
        """Remove all that a neighbour has asked for, and that it was sent anything."""
        self.take_back(peer, list(self._of_peer.get(peer, ())))
        self._of_peer.pop(peer, None)
        for node in [*self.poset, *self._gone]:
            for label in [each for each in node.forwards if _label(each).peer == peer]:
                node.forwards.discard(label)
        self._sent.pop(peer, None)
        for label in [each for each in self._packed if each.peer == peer]:
            del self._packed[label]
        self.mark_all()

    # -- what to send -------------------------------------------------------------------------

    def mark(self, node: Node[T]) -> None:
        """See where a node is to be sent when things settle."""
        self._marked[node] = None

    def mark_all(self) -> None:
        """See where everything is to be sent when things settle."""
        self._marked.update(dict.fromkeys(self.poset))

    def settle(self) -> dict[Peer, Sent[T]]:
        """Bring what was sent up to date; gives what to send to each neighbour."""
        if not self._marked and not self._gone:
            return {}
        gone: dict[Label, list[Node[T]]] = {}
        new: dict[Label, list[Node[T]]] = {}
        for node, before in self._settle_nodes().items():
            here = node in self.poset
            now = [_label(each) for each in node.forwards] if here else []
            for label in before:
                if label not in now:
                    gone.setdefault(label, []).append(node)
            for label in now:
                if label not in before:
                    new.setdefault(label, []).append(node)
        sent: dict[Peer, Sent[T]] = {}
        for label in dict.fromkeys([*gone, *new]):
            self._pack(label, gone.get(label, []), new.get(label, []), sent)
        return sent

    def _pack(
        self, label: Label, gone: list[Node[T]], new: list[Node[T]], sent: dict[Peer, Sent[T]]
    ) -> None:
        packed = self._packed.get(label)
        if packed is None:
            packed = self._packed[label] = self._packing()
        dropped, added = packed.change(gone, new)
        of_peer = sent.setdefault(label.peer, Sent())
        known = self._sent.setdefault(label.peer, {})
        for number in dropped:
            key = Key(number, label.tree)
            of_peer.dropped.append(key)
            del known[key]
        for number, item in added:
            key = Key(number, label.tree)
            of_peer.added.append((key, item))
            known[key] = item

    def sent(self, peer: Peer) -> dict[Key, T]:
        """What a neighbour was sent and has, by name."""
        return self._sent.get(peer, {})

    def _settle_nodes(self) -> dict[Node[T], list[Label]]:
        """Compute where the marked nodes, and those below that it matters for, are to be sent.

        Gives where each that was looked at had been sent before.
        """
        before: dict[Node[T], list[Label]] = {
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

    def _take_in(self, asker: Asker, node: Node[T]) -> None:
        node.subscribers.add(asker)
        self.mark(node)

    def _let_go(self, asker: Asker, node: Node[T]) -> None:
        node.subscribers.discard(asker)
        if node.subscribers:
            self.mark(node)
            return
        self._marked.update(dict.fromkeys(node.children))
        self._marked.pop(node, None)
        self._reach.pop(node, None)
        self.poset.remove(node)
        self._gone.append(node)


def _label(each: Hashable) -> Label:
    assert isinstance(each, Label)
    return each
