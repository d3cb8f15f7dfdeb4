"""Routing strategies: along which links subscriptions, advertisements and events are forwarded.

All strategies work on the same tables (see `forwarding`).

- `flooding`: events go to all brokers, subscriptions stay where they are.
- `match-first`: subscriptions go to all brokers. The first broker matches an event against all of
  them and sends a list of target brokers along with it (the baseline of Gryphon, "match first").
- `subscription`: subscriptions go to all brokers, except where a wider one goes. Events follow the
  reverse paths of the subscriptions they match (Siena, 4.2.2).
- `link-matching`: all subscriptions go to all brokers. Each broker on the way matches an event just
  far enough to know over which links it goes (Gryphon, 3; see `links.link_matching`).
- `summaries`: each broker sends a summary of its subscriptions, merged with those it has received,
  to one neighbour. Events go to brokers that examine the summaries, and from there to those whose
  subscriptions may match ("Subscription Summarization"; see `summaries.summaries`).
- `advertisement`: advertisements go to all brokers, except where a wider one goes; subscriptions
  only follow the reverse paths of advertisements they overlap, and events as before (Siena, 4.2.3).

In a hierarchical domain `subscription` and `advertisement` send subscriptions to the master only,
and every event to the master in any case (Siena, 4.2.1).

Why an event meets the subscriptions it matches. In an acyclic domain there is one path between two
brokers. In a general graph a filter spreads along the tree of shortest paths from its own broker,
and an event along the tree from its broker. Shortest paths are unique and the same in both
directions (see `graph`), so both trees join the two brokers by the same path. A filter under a key
with tree ``s`` concerns an event on tree ``p`` exactly at the brokers on the path from p to s.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.matching.batches import EventBatch
from tidegate.matching.poset.wanted_filter import WantedFilter, over_estimate_ever
from tidegate.routing.askers import NeighbourAsker
from tidegate.routing.batching.asker_codes import AskerCodes, AskerPairs
from tidegate.routing.forwarding import Forwarding
from tidegate.routing.messages import Examination, Notify, Peer, Publication
from tidegate.routing.outbox import Destination
from tidegate.routing.overlay.broker_domains import BrokerDomains
from tidegate.routing.spaces import routed_event
from tidegate.routing.substrates import FilterNode, Substrate


@dataclass(frozen=True, slots=True)
class IncomingEvent:
    """An event that a broker must deliver and pass on, and how it came to the broker."""

    publication: Publication
    sender: Peer | None
    """The neighbour from which it came; None if a client has published it here."""
    tree: Peer | None
    """The root of the tree along which it came; None for a client, or where there is one tree."""
    targets: frozenset[Peer] | None
    """The brokers that the event must reach, if the first broker has determined them."""
    examination: Examination | None = None
    """Who examines the event next, if it is routed by summaries."""


Hops = list[tuple[Peer, Notify]]


class RecipientMatching(Protocol):
    """Finds who gets an event at a broker."""

    @property
    def steps(self) -> int:
        """Matching steps of all events so far; 0 if they are not counted."""
        ...

    def route(self, incoming: IncomingEvent) -> tuple[list[FilterNode], Hops]:
        """The nodes that an event matches, those of this broker's own askers at least, and the
        next hops."""
        ...


AskersByDomain = Mapping[str, list[NeighbourAsker]]
"""The neighbours that have asked for a filter that an event matches, by the name of the domain."""
NextHops = Callable[[IncomingEvent, AskersByDomain, BrokerDomains], Hops]
"""Returns the neighbours to which an event is passed on, with the message for each."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a broker forwards subscriptions and events."""

    next_hops: NextHops | None
    """None for link matching and summaries, which find the next hops by themselves."""
    sends_subscriptions: bool = True
    tree_per_source: bool = False
    """Whether each broker has a spanning tree of its own, also in domains that need only one."""
    needs_advertisements: bool = False
    """Whether subscriptions are sent only towards advertisements that they overlap."""
    sends_targets: bool = False
    """Whether a list of target brokers travels with an event."""
    sends_summaries: bool = False
    """Whether brokers send summaries of their subscriptions instead of these."""

    @property
    def matches_links(self) -> bool:
        """Whether brokers match events with links, for which none may lack a filter."""
        return self.next_hops is None and not self.sends_summaries

    def destinations(
        self,
        node: FilterNode,
        domains: BrokerDomains,
        advertisements: Forwarding[Advertisement],
    ) -> Iterable[Destination]:
        """The destinations of a filter if nothing covered it (rule 1 of `forwarding`)."""
        if not self.sends_subscriptions:
            return ()
        destinations = domains.destinations_away_from(node.subscribers)
        if not self.needs_advertisements:
            return destinations
        return _towards_publishers(node.item, destinations, domains, advertisements)


def _towards_publishers(
    wanted: WantedFilter,
    destinations: Iterable[Destination],
    domains: BrokerDomains,
    advertisements: Forwarding[Advertisement],
) -> Iterator[Destination]:
    """The destinations from which events that match a filter can come."""
    sources: dict[Peer, list[NeighbourAsker]] = {}
    # Advertisements do not evolve: what counts is whether the filter can ever overlap them.
    static = over_estimate_ever(wanted)
    for node in advertisements.poset:
        if node.item.overlaps(static):
            for asker in node.subscribers:
                if isinstance(asker, NeighbourAsker):
                    sources.setdefault(asker.peer, []).append(asker)
    for destination in destinations:
        domain = domains.domain_of[destination.peer]
        if domain.routes_to_master or any(
            destination.tree is None or domain.is_on_path(destination.tree, str(each.key.tree))
            for each in sources.get(destination.peer, ())
        ):
            yield destination


class FilterMatching:
    """Finds the filters that an event matches; the strategy follows their askers."""

    def __init__(
        self, me: Peer, domains: BrokerDomains, next_hops: NextHops, substrate: Substrate
    ) -> None:
        self._me = me
        self._domains = domains
        self._next_hops = next_hops
        self._substrate = substrate

    @property
    def steps(self) -> int:
        return self._substrate.steps

    def route(self, incoming: IncomingEvent) -> tuple[list[FilterNode], Hops]:
        """The nodes that an event matches, and the next hops."""
        matched: list[FilterNode] = []
        if not self.only_passes(incoming.targets):
            matched = self._substrate.matching(routed_event(incoming.publication))
        asking = (asker for node in matched for asker in node.subscribers)
        return matched, self.hops(incoming, asking)

    def only_passes(self, targets: frozenset[Peer] | None) -> bool:
        """Whether this broker is not among the targets of an event, so it has no subscriber."""
        return targets is not None and self._me not in targets

    def hops(self, incoming: IncomingEvent, asking: Iterable[Hashable]) -> Hops:
        """The next hops of an event, given the askers of the nodes that it matches."""
        askers: dict[str, list[NeighbourAsker]] = {}
        for asker in asking:
            if isinstance(asker, NeighbourAsker):
                domain = self._domains.domain_of[asker.peer]
                askers.setdefault(domain.name, []).append(asker)
        return self._next_hops(incoming, askers, self._domains)

    def asker_pairs(self, batch: EventBatch, codes: AskerCodes) -> AskerPairs:
        """The pairs of an event of a batch and an asker whose filter it matches, by event."""
        return self._substrate.asker_pairs(batch, codes)


def _flood(incoming: IncomingEvent, _asking: AskersByDomain, domains: BrokerDomains) -> Hops:
    return [
        (peer, Notify(incoming.publication, tree))
        for domain, tree, sender in domains.trees_from(incoming.sender, incoming.tree)
        for peer in domain.downstream(tree, sender)
    ]


def _follow_targets(
    incoming: IncomingEvent, asking: AskersByDomain, domains: BrokerDomains
) -> Hops:
    """The first broker of a domain determines the targets; each broker splits them by next hop.

    Each broker has a tree of its own here, and a filter is hidden only by one on the same tree. So
    the trees of the filters that an event matches are just the brokers with a matching subscriber.
    """
    sent: Hops = []
    for domain, tree, sender in domains.trees_from(incoming.sender, incoming.tree):
        if sender is None:
            roots = {each.key.tree for each in asking.get(domain.name, ())}
            targets = frozenset(each for each in roots if each is not None)
        else:
            targets = incoming.targets or frozenset()
        by_hop: dict[Peer, set[Peer]] = {}
        for target in sorted(targets - {domain.me}):
            hop = domain.next_hop(target)
            if hop is not None and hop != sender:
                by_hop.setdefault(hop, set()).add(target)
        sent += [
            (hop, Notify(incoming.publication, tree, frozenset(behind)))
            for hop, behind in by_hop.items()
        ]
    return sent


def _follow_subscriptions(
    incoming: IncomingEvent, asking: AskersByDomain, domains: BrokerDomains
) -> Hops:
    """To the neighbours that have asked for a matching filter, but never back or across trees."""
    sent: Hops = []
    for domain, tree, sender in domains.trees_from(incoming.sender, incoming.tree):
        askers = asking.get(domain.name, ())
        if tree is None:
            peers = dict.fromkeys(each.peer for each in askers if each.peer != sender)
            if domain.routes_to_master:
                peers.update(dict.fromkeys(domain.towards_master(sender)))
        else:
            below = set(domain.downstream(tree, sender))
            peers = dict.fromkeys(
                each.peer
                for each in askers
                if each.peer in below and domain.is_on_path(tree, str(each.key.tree))
            )
        sent += [(peer, Notify(incoming.publication, tree)) for peer in peers]
    return sent


STRATEGIES: Mapping[str, Strategy] = {
    "flooding": Strategy(_flood, sends_subscriptions=False),
    "match-first": Strategy(_follow_targets, tree_per_source=True, sends_targets=True),
    "subscription": Strategy(_follow_subscriptions),
    "advertisement": Strategy(_follow_subscriptions, needs_advertisements=True),
    "link-matching": Strategy(None, tree_per_source=True),
    "summaries": Strategy(None, sends_subscriptions=False, sends_summaries=True),
}


def strategy(name: str) -> Strategy:
    """The strategy with this name; raises RoutingError if there is none."""
    if name not in STRATEGIES:
        raise RoutingError(f"there is no routing {name!r}; there are {', '.join(STRATEGIES)}")
    return STRATEGIES[name]
