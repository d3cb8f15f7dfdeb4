"""Virtual links: the numbered links of a broker, and the mask of links for each spanning tree.

Rules (Gryphon, 3.2 and footnote 2).

(1) A filter leads to the brokers of its subscribers, its *homes*; a home is the root of the tree
    along which the filter came. Each home is reached by the first link of the path to it.
(2) Homes behind one neighbour share a virtual link if they are downstream on the same trees. So a
    virtual link is downstream on a tree as a whole or not at all.
(3) The mask of a tree has exactly the virtual links that are downstream on it.

Why the split is needed. Behind a neighbour n may be the homes g and h, and on the tree of p the
path to g may lead over this broker and the path to h may not. With one link for both, an event on
that tree would go to n for the sake of a subscriber at h, which gets it over another path: n would
get it in vain. With a link for each, the mask of p has the link of g only.

Theory of operation. A home h is downstream on the tree of p if this broker is on the path from p to
h. Paths are the same in both directions (see `graph`), so those p are the brokers below this one on
the tree of h. That set and the next hop identify the virtual link of h. Everything is computed from
the graphs of the broker's domains, which are immutable; another graph means other links.

A gateway is the home, in each of its domains, of all that comes from the others, and an event
enters these on the gateway's own tree (see `broker_domains`). So the links of two domains have
nothing to do with each other, and the mask of an event joins one mask from each domain.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from tidegate.matching.matcher import COLLECTED
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.messages import Peer
from tidegate.routing.overlay.broker_domains import BrokerDomains, TreeInDomain
from tidegate.routing.overlay.domains import Domain
from tidegate.routing.overlay.graph import Graph


class VirtualLink(NamedTuple):
    """The homes behind one neighbour that are downstream on the same trees."""

    peer: Peer
    """The neighbour: the physical link."""
    trees: frozenset[Peer]
    """The roots of the trees on which the homes are downstream."""
    homes: tuple[Peer, ...]


def virtual_links(domain: Domain) -> list[VirtualLink]:
    """The virtual links of a broker in a domain; the nearest homes come first."""
    me, graph = domain.me, domain.graph
    homes: dict[tuple[Peer, frozenset[Peer]], list[Peer]] = {}
    for home in graph.tree(me).parents:
        tree = graph.tree(home)
        homes.setdefault((tree.parents[me], frozenset(tree.subtree(me))), []).append(home)
    return [VirtualLink(peer, trees, tuple(behind)) for (peer, trees), behind in homes.items()]


class LinkNumbers:
    """The virtual links of all domains of a broker as bits of a set; COLLECTED is bit 0."""

    def __init__(self, domains: BrokerDomains) -> None:
        self._domains = domains
        self._graphs: dict[str, Graph] = {}
        """The graphs, by domain, from which the links were computed."""
        self._of_home: dict[tuple[str, Peer], int] = {}
        self._of_tree: dict[tuple[str, Peer], int] = {}
        self._of_peer: dict[Peer, int] = {}

    def refresh(self) -> bool:
        """Number the links again if the graph of a domain has changed; returns whether it has."""
        graphs = {name: domain.graph for name, domain in self._domains.by_name.items()}
        if graphs.keys() == self._graphs.keys() and all(
            graph is self._graphs[name] for name, graph in graphs.items()
        ):
            return False
        self._graphs = graphs
        self._of_home, self._of_tree, self._of_peer = {}, {}, {}
        bit = COLLECTED
        for name, domain in self._domains.by_name.items():
            for link in virtual_links(domain):
                bit <<= 1
                self._add(name, link, bit)
        return True

    def _add(self, domain: str, link: VirtualLink, bit: int) -> None:
        self._of_peer[link.peer] = self._of_peer.get(link.peer, 0) | bit
        for home in link.homes:
            self._of_home[domain, home] = bit
        for tree in link.trees:
            self._of_tree[domain, tree] = self._of_tree.get((domain, tree), 0) | bit

    def of_askers(self, askers: Iterable[Hashable]) -> int:
        """The links over which those are reached who asked for a filter.

        A neighbour has asked on behalf of a home. Which neighbour it was does not matter: while
        links change it may not be the next hop any more.
        """
        links = 0
        for asker in askers:
            if not isinstance(asker, NeighbourAsker):
                links |= COLLECTED
            elif asker.key.tree is not None:
                name = self._domains.domain_of[asker.peer].name
                links |= self._of_home.get((name, asker.key.tree), 0)
        return links

    def mask(self, trees: Iterable[TreeInDomain]) -> int:
        """The links down some trees, without COLLECTED and without the link to the sender."""
        mask = 0
        for domain, tree, sender in trees:
            if tree is not None:
                mask |= self._of_tree.get((domain.name, tree), 0)
            if sender is not None:
                mask &= ~self._of_peer.get(sender, 0)
        return mask

    def peers(self, links: int, domain: Domain) -> list[Peer]:
        """The neighbours in a domain to which some of the links lead, each once."""
        return [peer for peer in domain.neighbours if self._of_peer.get(peer, 0) & links]
