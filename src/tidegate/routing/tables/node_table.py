"""Protocols of the tables of nodes: what `Forwarding` changes, and who is told of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from tidegate.matching.poset.antichain import Antichain
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.routing.askers import Asker
from tidegate.routing.messages import Key, Peer
from tidegate.routing.outbox import NeighbourDelta

T = TypeVar("T")


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


class NodeTable(Protocol[T]):
    """Nodes with their askers, and what each neighbour is sent because of them."""

    listener: NodeListener[T] | None
    """Who is told of all changes of the nodes."""

    @property
    def poset(self) -> Poset[T] | Antichain[T]:
        """The nodes that decide what is sent, as of the last `settle`."""
        ...

    def add_asker(self, asker: Asker, item: T) -> PosetNode[T]:
        """Add an asker to the node of an item, which may be new; returns the node."""
        ...

    def replace(self, asker: Asker, node: PosetNode[T], item: T) -> PosetNode[T]:
        """Replace the item of an asker; returns the node of the new item."""
        ...

    def remove_asker(self, asker: Asker, node: PosetNode[T]) -> None:
        """Remove an asker from a node, and the node with its last asker."""
        ...

    def mark(self, node: PosetNode[T]) -> None:
        """Compute the destinations of a node of ``poset`` again, at the next `settle`."""
        ...

    def mark_all(self) -> None:
        """Compute the destinations of all nodes again, at the next `settle`."""
        ...

    def settle(self) -> dict[Peer, NeighbourDelta[T]]:
        """Apply rule (1) of `forwarding` after some changes; returns what to send to each
        neighbour."""
        ...

    def sent(self, peer: Peer) -> Mapping[Key, T]:
        """The items that a neighbour holds from this broker (rule 2), by key."""
        ...

    def number_anew(
        self, peer: Peer, ordered: Callable[[Mapping[Key, T]], Mapping[Key, T]]
    ) -> None:
        """Give what a neighbour was sent other keys (see `Outbox.number_anew`)."""
        ...

    def forget(self, peer: Peer) -> None:
        """Forget what a neighbour was sent, after all its items were removed."""
        ...

    def rename_askers(self, renamed: Mapping[tuple[Asker, PosetNode[T]], Asker]) -> None:
        """Put other askers in the place of those of some nodes; the table must have settled.

        Old and new ones must have the same destinations.
        """
        ...
