"""Routing strategies: where subscriptions and advertisements are sent, and where events go.

All strategies work on the same tables. `flooding` sends events everywhere and subscriptions
nowhere. `match-first` sends subscriptions everywhere; the first broker finds the destinations of an
event, and the list travels with it (the baseline of Gryphon). `subscription` forwarding sends
subscriptions everywhere, less what is covered, and events where a matching one came from (Siena,
4.2.2). `advertisement` forwarding does that with advertisements, and sends subscriptions only to
where an advertisement that overlaps came from (Siena, 4.2.3). In a hierarchy (Siena, 4.2.1) the
last two send subscriptions to the master only, and events to the master in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.wanted_filter import WantedFilter, widest
from tidegate.routing.forwarding import Asker, Forwarding, MonitorAsker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Notify, Peer, Publication
from tidegate.routing.outbox import Destination
from tidegate.routing.overlay.domains import Domain


@dataclass(frozen=True, slots=True)
class BrokerDomains:
    """The domains of a broker, and which neighbour is in which."""

    domains: dict[str, Domain] = field(default_factory=dict)
    domain_of: dict[Peer, Domain] = field(default_factory=dict)

    def ways(self, asker: Asker) -> Iterator[tuple[Domain, Peer | None, Peer | None]]:
        """For each domain the tree, and the sender on it, for what someone asks for."""
        if isinstance(asker, NeighbourAsker):
            return self.ways_of(asker.peer, asker.key.tree)
        return self.ways_of(None, None)

    def ways_of(
        self, peer: Peer | None, tree: Peer | None
    ) -> Iterator[tuple[Domain, Peer | None, Peer | None]]:
        """For each domain the tree, and the sender on it, for what came from a neighbour."""
        inside = None if peer is None else self.domain_of.get(peer)
        for domain in self.domains.values():
            if domain is inside:
                yield domain, tree, peer
            else:
                yield domain, domain.own_tree, None

    def spread(self, asker: Asker) -> Iterator[Destination]:
        """All neighbours away from someone who asks."""
        for domain, tree, sender in self.ways(asker):
            peers = domain.upward(sender) if domain.only_upward else domain.onward(tree, sender)
            for peer in peers:
                yield Destination(peer, tree)

    def away_from(self, askers: Iterable[Hashable]) -> Iterable[Destination]:
        """All neighbours away from any of those who ask."""
        labels: dict[Destination, None] = {}
        for asker in askers:
            assert isinstance(asker, Client | MonitorAsker | NamedAsker | NeighbourAsker)
            labels.update(dict.fromkeys(self.spread(asker)))
        return labels


@dataclass(frozen=True, slots=True)
class Arrival:
    """An event that is to be passed on, and how it came."""

    publication: Publication
    peer: Peer | None
    """The neighbour it came from; None for a client."""
    tree: Peer | None
    destinations: frozenset[Peer] | None


AskersByDomain = Mapping[str, list[NeighbourAsker]]
"""Which neighbours, by domain, have asked for something that an event matches."""
Hops = Callable[[Arrival, AskersByDomain, BrokerDomains], list[tuple[Peer, Notify]]]
"""To which neighbours an event goes on."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """Where subscriptions and events go."""

    hops: Hops
    sends_subscriptions: bool = True
    tree_per_source: bool = False
    needs_advertisements: bool = False
    """Whether subscriptions go only to where an advertisement that overlaps came from."""

    def wanted(
        self,
        node: PosetNode[WantedFilter],
        around: BrokerDomains,
        offers: Forwarding[Advertisement],
    ) -> Iterable[Destination]:
        """Where a filter should be sent, were nothing covering it."""
        if not self.sends_subscriptions:
            return ()
        labels = around.away_from(node.subscribers)
        return (
            _to_sources(node.item, labels, around, offers) if self.needs_advertisements else labels
        )


def _to_sources(
    wanted: WantedFilter,
    labels: Iterable[Destination],
    around: BrokerDomains,
    offers: Forwarding[Advertisement],
) -> Iterator[Destination]:
    """Those neighbours through which events can come that match."""
    sources: dict[Peer, list[NeighbourAsker]] = {}
    still = widest(wanted)
    for offer in offers.poset:
        if offer.item.overlaps(still):
            for asker in offer.subscribers:
                if isinstance(asker, NeighbourAsker):
                    sources.setdefault(asker.peer, []).append(asker)
    for label in labels:
        domain = around.domain_of[label.peer]
        if domain.only_upward or any(
            label.tree is None or domain.is_between(label.tree, str(each.key.tree))
            for each in sources.get(label.peer, ())
        ):
            yield label


def asked_for(matched: Iterable[PosetNode[WantedFilter]], around: BrokerDomains) -> AskersByDomain:
    """Which neighbours have asked for something that an event matches."""
    found: dict[str, list[NeighbourAsker]] = {}
    for node in matched:
        for asker in node.subscribers:
            if isinstance(asker, NeighbourAsker):
                found.setdefault(around.domain_of[asker.peer].name, []).append(asker)
    return found


def _everywhere(
    arrival: Arrival, _asked: AskersByDomain, around: BrokerDomains
) -> list[tuple[Peer, Notify]]:
    return [
        (peer, Notify(arrival.publication, tree))
        for domain, tree, sender in around.ways_of(arrival.peer, arrival.tree)
        for peer in domain.onward(tree, sender)
    ]


def _to_destinations(
    arrival: Arrival, asked: AskersByDomain, around: BrokerDomains
) -> list[tuple[Peer, Notify]]:
    """The first broker of a domain finds the destinations; the others divide them up."""
    sent: list[tuple[Peer, Notify]] = []
    for domain, tree, sender in around.ways_of(arrival.peer, arrival.tree):
        if sender is None:
            named = {each.key.tree for each in asked.get(domain.name, ())}
            destinations = frozenset(each for each in named if each is not None)
        else:
            destinations = arrival.destinations or frozenset()
        groups: dict[Peer, set[Peer]] = {}
        for target in sorted(destinations - {domain.me}):
            hop = domain.next_hop(target)
            if hop is not None and hop != sender:
                groups.setdefault(hop, set()).add(target)
        sent += [
            (hop, Notify(arrival.publication, tree, frozenset(targets)))
            for hop, targets in groups.items()
        ]
    return sent


def _to_askers(
    arrival: Arrival, asked: AskersByDomain, around: BrokerDomains
) -> list[tuple[Peer, Notify]]:
    sent: list[tuple[Peer, Notify]] = []
    for domain, tree, sender in around.ways_of(arrival.peer, arrival.tree):
        entries = asked.get(domain.name, ())
        if tree is None:
            peers = dict.fromkeys(each.peer for each in entries if each.peer != sender)
            if domain.only_upward:
                peers.update(dict.fromkeys(domain.upward(sender)))
        else:
            below = set(domain.onward(tree, sender))
            peers = dict.fromkeys(
                each.peer
                for each in entries
                if each.peer in below and domain.is_between(tree, str(each.key.tree))
            )
        sent += [(peer, Notify(arrival.publication, tree)) for peer in peers]
    return sent


STRATEGIES: Mapping[str, Strategy] = {
    "flooding": Strategy(_everywhere, sends_subscriptions=False),
    "match-first": Strategy(_to_destinations, tree_per_source=True),
    "subscription": Strategy(_to_askers),
    "advertisement": Strategy(_to_askers, needs_advertisements=True),
}


def strategy(name: str) -> Strategy:
    """The strategy of a name."""
    if name not in STRATEGIES:
        raise RoutingError(f"there is no routing {name!r}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
