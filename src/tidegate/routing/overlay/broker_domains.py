"""The domains of one broker, and along which spanning trees it forwards in each of them.

A broker is in one domain or, as a gateway, in several (the hybrid architectures of Siena, 4.1). In
each domain it acts for everything that comes from outside of it: its clients, and its other
domains. So a message from a neighbour keeps its tree in the neighbour's own domain, and starts
out on this broker's own tree in all other domains.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from tidegate.errors import RoutingError
from tidegate.routing.askers import Asker, MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Peer
from tidegate.routing.outbox import Destination
from tidegate.routing.overlay.domains import Domain

TreeInDomain = tuple[Domain, Peer | None, Peer | None]
"""A domain, the root of a spanning tree in it, and the neighbour from which a message came along
this tree. The root is None where the domain has only one tree; the neighbour is None if the message
came from outside of the domain."""


@dataclass(frozen=True, slots=True)
class BrokerDomains:
    """The domains of a broker by name, and the domain in which each neighbour is."""

    by_name: dict[str, Domain] = field(default_factory=dict)
    domain_of: dict[Peer, Domain] = field(default_factory=dict)

    def trees_from(self, peer: Peer | None, tree: Peer | None) -> Iterator[TreeInDomain]:
        """The tree in each domain for what came from a neighbour along a tree, or from a client."""
        inside = None if peer is None else self.domain_of.get(peer)
        for domain in self.by_name.values():
            if domain is inside:
                yield domain, tree, peer
            else:
                yield domain, domain.own_tree, None

    def trees_of(self, asker: Asker) -> Iterator[TreeInDomain]:
        """The tree in each domain for the filters of an asker."""
        if isinstance(asker, NeighbourAsker):
            return self.trees_from(asker.peer, asker.key.tree)
        return self.trees_from(None, None)

    def destinations_of(self, asker: Asker) -> Iterator[Destination]:
        """The destinations of the filters of an asker: all neighbours down the trees."""
        for domain, tree, sender in self.trees_of(asker):
            if domain.routes_to_master:
                peers = domain.towards_master(sender)
            else:
                peers = domain.downstream(tree, sender)
            for peer in peers:
                yield Destination(peer, tree)

    def destinations_away_from(self, askers: Iterable[Hashable]) -> Iterable[Destination]:
        """The destinations of a filter with several askers, each once and in a fixed order."""
        destinations: dict[Destination, None] = {}
        for asker in askers:
            assert isinstance(asker, Client | MonitorAsker | NamedAsker | NeighbourAsker)
            destinations.update(dict.fromkeys(self.destinations_of(asker)))
        return destinations

    def check_tree(self, tree: Peer | None, peer: Peer) -> None:
        """Raise RoutingError unless a message of a neighbour names a tree where its domain has one
        for each source, and only there."""
        domain = self.domain_of[peer]
        if (tree is not None) != domain.tree_per_source:
            needed = "a tree for each source" if domain.tree_per_source else "one tree only"
            wrong = "a message without a tree" if tree is None else f"the tree {tree!r}"
            raise RoutingError(f"the domain {domain.name!r} has {needed}; {wrong} does not fit")
