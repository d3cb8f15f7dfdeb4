"""The outbox: what each neighbour was sent, under which key, and what to send when that changes.

Rules.

(1) The outbox holds for each neighbour exactly what the neighbour holds from this broker: links
    lose nothing while they are up, and when one goes down both ends forget.
(2) A key means one item at a time. An item that takes the place of one with the same structure
    takes its key too, and is sent as an update ("Parametric Subscriptions", figure 6: PROPAGATE);
    an item of another structure is sent as a whole.
(3) What has not changed is not sent.

Theory of operation. `forwarding` says which nodes of its poset a destination gets and loses. A wire
form turns the nodes of one destination into numbered items: each node by itself, or several merged
(see `merging`). The outbox gives a number its key on the link and compares its item with what was
sent under that key before. Such a table of what a neighbour has from us is BGP's Adj-RIB-Out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from tidegate.matching.poset.nodes import PosetNode
from tidegate.routing.messages import Key, Peer

T = TypeVar("T")


class Destination(NamedTuple):
    """Where an item is sent: a neighbour and, in general graphs, the root of a spanning tree."""

    peer: Peer
    tree: Peer | None


class NeighbourDelta(Generic[T]):
    """Items added, updated and removed at one neighbour."""

    __slots__ = ("added", "removed", "updated")

    def __init__(self) -> None:
        self.added: list[tuple[Key, T]] = []
        """Items to be sent as a whole; the neighbour may hold another one under the same key."""
        self.updated: list[tuple[Key, T, T]] = []
        """Key, old item and new item, where both have the same structure."""
        self.removed: list[Key] = []

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)


class DestinationChange(Generic[T]):
    """The nodes that one destination gets, loses, or keeps with another item."""

    __slots__ = ("added", "removed", "updated")

    def __init__(self) -> None:
        self.removed: list[PosetNode[T]] = []
        self.added: list[PosetNode[T]] = []
        self.updated: list[PosetNode[T]] = []


class WireForm(Protocol[T]):
    """Chooses the form in which the nodes of one destination are sent."""

    def change(
        self,
        removed: Iterable[PosetNode[T]],
        added: Iterable[PosetNode[T]],
        updated: Iterable[PosetNode[T]],
    ) -> tuple[list[int], list[tuple[int, T]]]:
        """Change the nodes of the destination.

        Returns the removed numbers, and the (number, item) pairs that are new or may have changed.
        """
        ...


class OneFilterEach(Generic[T]):
    """Sends the item of each node by itself, under the number of the node."""

    def change(
        self,
        removed: Iterable[PosetNode[T]],
        added: Iterable[PosetNode[T]],
        updated: Iterable[PosetNode[T]],
    ) -> tuple[list[int], list[tuple[int, T]]]:
        current = [(node.number, node.item) for each in (updated, added) for node in each]
        return [node.number for node in removed], current


class _SentTo(Generic[T]):
    """The wire form of one destination, and the key number of each item that was sent to it."""

    __slots__ = ("key_numbers", "wire_form")

    def __init__(self, wire_form: WireForm[T]) -> None:
        self.wire_form = wire_form
        self.key_numbers: dict[int, int] = {}


class Outbox(Generic[T]):
    """The items that were sent to each neighbour of a broker.

    An item is sent as an update of another one where ``structure`` is equal for both.
    """

    def __init__(
        self, wire_form: Callable[[], WireForm[T]], structure: Callable[[T], Hashable]
    ) -> None:
        self._new_wire_form = wire_form
        self._structure = structure
        self._sent_to: dict[Destination, _SentTo[T]] = {}
        self._sent: dict[Peer, dict[Key, T]] = {}
        self._last_key_number = 0

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """The items that a neighbour was sent and still holds, by key."""
        return self._sent.get(peer, {})

    def forget(self, peer: Peer) -> None:
        """Forget what a neighbour was sent, because its link went down and it has forgotten too."""
        self._sent.pop(peer, None)
        for destination in [each for each in self._sent_to if each.peer == peer]:
            del self._sent_to[destination]

    def number_anew(
        self, peer: Peer, ordered: Callable[[Mapping[Key, T]], Mapping[Key, T]]
    ) -> None:
        """Give the items of a neighbour other keys; ``ordered`` returns the items by these.

        Equal items of one destination may swap keys.
        """
        old = self._sent.get(peer)
        if not old:
            return
        new = ordered(old)
        free: dict[tuple[Peer | None, int], list[Key]] = {}
        for key, item in new.items():
            free.setdefault((key.tree, id(item)), []).append(key)
        keys = {key: free[key.tree, id(item)].pop(0) for key, item in old.items()}
        for destination, sent_to in self._sent_to.items():
            if destination.peer == peer:
                for number, key_number in sent_to.key_numbers.items():
                    key = Key(key_number, destination.tree)
                    sent_to.key_numbers[number] = keys[key].number
        self._sent[peer] = dict(new)
        self._last_key_number = max(self._last_key_number, *(each.number for each in new))

    def change(
        self, changes: Mapping[Destination, DestinationChange[T]]
    ) -> dict[Peer, NeighbourDelta[T]]:
        """Note changes of some destinations; returns what to send to each neighbour.

        The destinations of one neighbour share a delta, so that it is sent in one message.
        """
        deltas: dict[Peer, NeighbourDelta[T]] = {}
        for destination, change in changes.items():
            delta = deltas.setdefault(destination.peer, NeighbourDelta())
            self._change_destination(destination, change, delta)
        return {peer: delta for peer, delta in deltas.items() if delta}

    def _change_destination(
        self, destination: Destination, change: DestinationChange[T], delta: NeighbourDelta[T]
    ) -> None:
        sent_to = self._sent_to.get(destination)
        if sent_to is None:
            sent_to = self._sent_to[destination] = _SentTo(self._new_wire_form())
        held = self._sent.setdefault(destination.peer, {})
        removed, current = sent_to.wire_form.change(change.removed, change.added, change.updated)
        keys = sent_to.key_numbers
        # The numbers whose keys become free, by structure: a new item of the same structure takes
        # over the first of them, so that it goes out as an update.
        free: dict[Hashable, list[int]] = {}
        if removed and current:
            for number in removed:
                item = held[Key(keys[number], destination.tree)]
                free.setdefault(self._structure(item), []).append(number)
        for number, item in current:
            if number not in keys:
                replaced = free.get(self._structure(item)) if free else None
                if replaced:
                    keys[number] = keys.pop(replaced.pop(0))
                else:
                    self._last_key_number += 1
                    keys[number] = self._last_key_number
            self._send(Key(keys[number], destination.tree), item, held, delta)
        for number in removed:
            if number in keys:  # else its key was taken over
                key = Key(keys.pop(number), destination.tree)
                delta.removed.append(key)
                del held[key]

    def _send(self, key: Key, item: T, held: dict[Key, T], delta: NeighbourDelta[T]) -> None:
        """Note an item under a key that the neighbour may hold already, and add the difference."""
        old = held.get(key)
        held[key] = item
        if old == item:
            return
        if old is None or self._structure(old) != self._structure(item):
            delta.added.append((key, item))
        else:
            delta.updated.append((key, old, item))
