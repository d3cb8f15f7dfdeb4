"""An overlay: brokers, the links between them, and the domains that the links form (Siena, 4).

Rules. (1) A domain is a set of links of one architecture, and is connected by them. (2) A
hierarchical or acyclic domain has no cycle; a general one may. (3) In a hierarchical domain `a` of
a link is the master of `b`, and a broker has at most one master. (4) Brokers that have links of two
domains are gateways. Domains joined by gateways form a tree: between two domains there is one path,
so a cycle stays within one general domain, whose routing can deal with it. (5) All brokers are
connected.

Every `Topology` satisfies these rules; constructing one that breaks them raises TopologyError.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import networkx as nx
from networkx.utils import UnionFind

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture

BROKERS_MAX = 100_000
LINKS_MAX = 1_000_000
NAME_CHARS_MAX = 100


@dataclass(frozen=True, slots=True)
class Link:
    """A connection of two brokers; in a hierarchical domain ``a`` is the master of ``b``.

    Without a bandwidth, messages of any size take just the delay.
    """

    a: str
    b: str
    delay_s: float
    domain: str
    bandwidth_bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Topology:
    """The immutable description of an overlay; raises TopologyError where it breaks the rules.

    ``regions`` maps brokers to regions, for workloads with regional topics, and ``positions`` to
    the points where they are drawn. Brokers may be absent from either.

    >>> links = (Link("hub", "east", 0.01, "all"), Link("hub", "west", 0.02, "all"))
    >>> overlay = Topology("mine", ("hub", "east", "west"), links, {"all": Architecture.ACYCLIC})
    >>> overlay.neighbours("hub")
    ('east', 'west')
    """

    name: str
    brokers: tuple[str, ...]
    links: tuple[Link, ...]
    domains: Mapping[str, Architecture] = field(hash=False)
    regions: Mapping[str, str] = field(default_factory=dict, hash=False)
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    _links: Mapping[str, Mapping[str, Link]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("domains", "regions", "positions"):  # the caller may modify its own
            object.__setattr__(self, name, dict(getattr(self, name)))
        _check_names(self)
        for link in self.links:
            _check_link(link, self.domains)
        object.__setattr__(self, "_links", _links_by_ends(self))
        _check_masters(self.links, self.domains)
        _check_connected(self)
        _check_domains(self.links, self.domains)

    def links_of(self, broker: str) -> tuple[Link, ...]:
        """The links of a broker, in the order of ``links``."""
        return tuple(self._links_from(broker).values())

    def neighbours(self, broker: str) -> tuple[str, ...]:
        """The brokers at the other ends of a broker's links."""
        return tuple(self._links_from(broker))

    def link(self, a: str, b: str) -> Link:
        """The link between two brokers, named in either order."""
        try:
            return self._links_from(a)[b]
        except KeyError:
            raise TopologyError(
                f"there is no link between {a!r} and {b!r} in {self.name!r}"
            ) from None

    def _links_from(self, broker: str) -> Mapping[str, Link]:
        try:
            return self._links[broker]
        except KeyError:
            raise TopologyError(f"there is no broker {broker!r} in {self.name!r}") from None

    def master(self, broker: str) -> str | None:
        """The broker above this one in its hierarchy; None for a root and outside hierarchies."""
        for link in self.links_of(broker):
            if link.b == broker and self.domains[link.domain] is Architecture.HIERARCHICAL:
                return link.a
        return None

    def domains_of(self, broker: str) -> tuple[str, ...]:
        """The domains that a broker has links of; a gateway has several."""
        return tuple(dict.fromkeys(link.domain for link in self.links_of(broker)))

    @property
    def is_acyclic(self) -> bool:
        """Whether there is one path only between any two brokers."""
        return len(self.links) == len(self.brokers) - 1

    def graph(self) -> nx.Graph[str]:
        """A graph of networkx with the same brokers and links; a link has its ``delay_s``."""
        graph: nx.Graph[str] = nx.Graph()
        graph.add_nodes_from(self.brokers)
        graph.add_weighted_edges_from(
            ((link.a, link.b, link.delay_s) for link in self.links), weight="delay_s"
        )
        return graph


def _check_names(topology: Topology) -> None:
    brokers, links = topology.brokers, topology.links
    if not brokers:
        raise TopologyError("an overlay has at least one broker")
    if len(brokers) > BROKERS_MAX:
        raise TopologyError(f"{len(brokers)} brokers; the limit is {BROKERS_MAX}")
    if len(links) > LINKS_MAX:
        raise TopologyError(f"{len(links)} links; the limit is {LINKS_MAX}")
    _check_name(topology.name, "an overlay")
    seen: set[str] = set()
    for broker in brokers:
        _check_name(broker, "a broker")
        if broker in seen:
            raise TopologyError(f"the broker {broker!r} is named twice")
        seen.add(broker)
    for domain in topology.domains:
        _check_name(domain, "a domain")
    for what, mapping in (("region", topology.regions), ("position", topology.positions)):
        for broker in mapping:
            if broker not in seen:
                raise TopologyError(f"{broker!r} has a {what}, but there is no such broker")
    for broker, position in topology.positions.items():
        if not all(map(math.isfinite, position)):
            raise TopologyError(f"{broker!r} has the position {position}, which is not finite")


def _check_name(name: str, whose: str) -> None:
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise TopologyError(
            f"{name[:NAME_CHARS_MAX]!r} is no name for {whose}, which has 1 to {NAME_CHARS_MAX} "
            "printable characters"
        )


def _check_link(link: Link, domains: Mapping[str, Architecture]) -> None:
    if link.a == link.b:
        raise TopologyError(f"a link from {link.a!r} to itself")
    if link.domain not in domains:
        raise TopologyError(
            f"{_text(link)} is of the domain {link.domain!r}, which is not declared"
        )
    if not (math.isfinite(link.delay_s) and link.delay_s >= 0):
        raise TopologyError(
            f"{_text(link)} has a delay of {link.delay_s} s; it must be finite and not negative"
        )
    bandwidth = link.bandwidth_bytes_per_s
    if bandwidth is not None and not (math.isfinite(bandwidth) and bandwidth > 0):
        raise TopologyError(
            f"{_text(link)} has a bandwidth of {bandwidth} bytes/s; it must be finite and above 0"
        )


def _links_by_ends(topology: Topology) -> dict[str, dict[str, Link]]:
    """The links by their two ends; refuses unknown brokers and two links between the same ones."""
    by_ends: dict[str, dict[str, Link]] = {broker: {} for broker in topology.brokers}
    for link in topology.links:
        for one, other in ((link.a, link.b), (link.b, link.a)):
            if one not in by_ends:
                raise TopologyError(f"{_text(link)}: there is no broker {one!r}")
            if other in by_ends[one]:
                raise TopologyError(f"there are two links between {link.a!r} and {link.b!r}")
            by_ends[one][other] = link
    return by_ends


def _check_masters(links: Iterable[Link], domains: Mapping[str, Architecture]) -> None:
    masters: dict[str, str] = {}
    for link in links:
        if domains[link.domain] is Architecture.HIERARCHICAL:
            if link.b in masters:
                raise TopologyError(
                    f"the broker {link.b!r} has two masters, {masters[link.b]!r} and {link.a!r}"
                )
            masters[link.b] = link.a


def _check_connected(topology: Topology) -> None:
    start = topology.brokers[0]
    reached, frontier = {start}, [start]
    while frontier:
        for neighbour in topology.neighbours(frontier.pop()):
            if neighbour not in reached:
                reached.add(neighbour)
                frontier.append(neighbour)
    if len(reached) < len(topology.brokers):
        unreached = next(broker for broker in topology.brokers if broker not in reached)
        raise TopologyError(f"not connected: no path leads from {start!r} to {unreached!r}")


def _check_domains(links: Iterable[Link], domains: Mapping[str, Architecture]) -> None:
    """Check that each domain is connected, that trees are trees, and that domains form a tree.

    For the last, consider the graph whose nodes are the domains and the brokers, with an edge from
    a broker to each of its domains: domains form a tree if it has no cycle.
    """
    by_domain: dict[str, list[Link]] = {domain: [] for domain in domains}
    for link in links:
        by_domain[link.domain].append(link)
    joined: UnionFind[tuple[str, str]] = UnionFind()
    for domain, inside in by_domain.items():
        members = _check_domain(domain, domains[domain], inside)
        for broker in members:
            gateway, joint = ("broker", broker), ("domain", domain)
            if joined[gateway] == joined[joint]:
                raise TopologyError(
                    f"a cycle across domains: the gateway {broker!r} joins {domain!r} to domains "
                    "that another gateway joins to it already"
                )
            joined.union(gateway, joint)


def _check_domain(domain: str, architecture: Architecture, links: list[Link]) -> Iterable[str]:
    """Check that a domain is connected and, unless general, a tree; returns its brokers."""
    if not links:
        raise TopologyError(f"the domain {domain!r} has no links")
    members = dict.fromkeys(end for link in links for end in (link.a, link.b))
    joined: UnionFind[str] = UnionFind(members)
    components = len(members)
    for link in links:
        if joined[link.a] != joined[link.b]:
            joined.union(link.a, link.b)
            components -= 1
        elif architecture is not Architecture.GENERAL:
            raise TopologyError(
                f"{_text(link)} closes a cycle in the {architecture.value} domain {domain!r}"
            )
    if components > 1:
        raise TopologyError(
            f"the domain {domain!r} is in {components} parts; its own links must connect it"
        )
    return members


def _text(link: Link) -> str:
    return f"the link {link.a!r} to {link.b!r}"
