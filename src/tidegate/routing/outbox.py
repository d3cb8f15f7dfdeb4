"""What was sent to which place, under which name, and what is to be sent when that changes.

Rules. (1) A neighbour knows what it was sent by a name, and no two things have had one name at the
same time. (2) What takes the place of something of the same structure takes its name too, and is
sent as an update ("Parametric Subscriptions", figure 6, PROPAGATE); other structures are sent as a
whole. (3) What did not change is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, TypeVar

from tidegate.matching.poset.nodes import PosetNode
from tidegate.routing.messages import Key, Peer

T = TypeVar("T")


class Destination(NamedTuple):
    """Where something is sent: to a neighbour, down a tree."""

    peer: Peer
    tree: Peer | None


class NeighbourDelta(Generic[T]):
    """What is to be sent to a neighbour, and to be taken back."""

    __slots__ = ("added", "altered", "dropped")

    def __init__(self) -> None:
        self.added: list[tuple[Key, T]] = []
        self.altered: list[tuple[Key, T, T]] = []
        """What takes the place of something of the same structure: its name, the old, the new."""
        self.dropped: list[Key] = []

    def __bool__(self) -> bool:
        return bool(self.added or self.altered or self.dropped)


class DestinationChange(Generic[T]):
    """What is different for a place."""

    __slots__ = ("altered", "gone", "new")

    def __init__(self) -> None:
        self.gone: list[PosetNode[T]] = []
        self.new: list[PosetNode[T]] = []
        self.altered: list[PosetNode[T]] = []


class WireForm(Protocol[T]):
    """Decides as what the things are sent that go to one place."""

    def change(
        self,
        gone: Iterable[PosetNode[T]],
        new: Iterable[PosetNode[T]],
        altered: Iterable[PosetNode[T]],
    ) -> tuple[list[int], list[tuple[int, T]]]:
        """Take things out and in, and others again that are not what they were.

        Gives the numbers that are no more, and what is new or another under a number.
        """
        ...


class OneFilterEach(Generic[T]):
    """Sends each thing as it is."""

    def change(
        self,
        gone: Iterable[PosetNode[T]],
        new: Iterable[PosetNode[T]],
        altered: Iterable[PosetNode[T]],
    ) -> tuple[list[int], list[tuple[int, T]]]:
        """What goes and comes, by the numbers of the nodes."""
        there = [(node.number, node.item) for each in (altered, new) for node in each]
        return [node.number for node in gone], there


class _SentTo(Generic[T]):
    """What was sent to a place: how it is packed, and which name each number of that has there."""

    __slots__ = ("names", "packing")

    def __init__(self, packing: WireForm[T]) -> None:
        self.packing = packing
        self.names: dict[int, int] = {}


class Outbox(Generic[T]):
    """What the neighbours of a broker were sent.

    ``structure`` tells what may be sent as an update in place of what.
    """

    def __init__(
        self, packing: Callable[[], WireForm[T]], structure: Callable[[T], Hashable]
    ) -> None:
        self._packing = packing
        self._structure = structure
        self._packed: dict[Destination, _SentTo[T]] = {}
        self._sent: dict[Peer, dict[Key, T]] = {}
        self._named = 0

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """What a neighbour was sent and has, by name."""
        return self._sent.get(peer, {})

    def forget(self, peer: Peer) -> None:
        """Take it that a neighbour has nothing."""
        self._sent.pop(peer, None)
        for label in [each for each in self._packed if each.peer == peer]:
            del self._packed[label]

    def change(
        self, changes: Mapping[Destination, DestinationChange[T]]
    ) -> dict[Peer, NeighbourDelta[T]]:
        """Gives what to send to each neighbour."""
        sent: dict[Peer, NeighbourDelta[T]] = {}
        for label, change in changes.items():
            self._pack(label, change, sent.setdefault(label.peer, NeighbourDelta()))
        return {peer: each for peer, each in sent.items() if each}

    def _pack(
        self, label: Destination, change: DestinationChange[T], sent: NeighbourDelta[T]
    ) -> None:
        """Say what changes for a place; what goes gives its name to what comes in its place."""
        packed = self._packed.get(label)
        if packed is None:
            packed = self._packed[label] = _SentTo(self._packing())
        known = self._sent.setdefault(label.peer, {})
        dropped, there = packed.packing.change(change.gone, change.new, change.altered)
        names = packed.names
        free: dict[Hashable, list[int]] = {}
        if dropped and there:
            for number in dropped:
                item = known[Key(names[number], label.tree)]
                free.setdefault(self._structure(item), []).append(number)
        for number, item in there:
            likely = free.get(self._structure(item)) if number not in names and free else None
            if likely:
                names[number] = names.pop(likely.pop(0))
            elif number not in names:
                self._named += 1
                names[number] = self._named
            self._say(Key(names[number], label.tree), item, known, sent)
        for number in dropped:
            if number in names:
                key = Key(names.pop(number), label.tree)
                sent.dropped.append(key)
                del known[key]

    def _say(self, key: Key, item: T, known: dict[Key, T], sent: NeighbourDelta[T]) -> None:
        old = known.get(key)
        known[key] = item
        if old == item:
            return
        if old is None or self._structure(old) != self._structure(item):
            sent.added.append((key, item))
        else:
            sent.altered.append((key, old, item))
