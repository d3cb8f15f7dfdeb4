"""From an overlay with cycles to one without: the acyclic and the hierarchical on the same sites.

Siena's study compares architectures on one network (Siena, 6): the same brokers, and of the links
those that the architecture allows.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import DOMAIN
from tidegate.simulation.overlays.topology import Link, Topology


def acyclic(topology: Topology) -> Topology:
    """The minimum spanning tree by delay, as acyclic overlay."""
    kept = {
        frozenset(pair)
        for pair in nx.minimum_spanning_edges(topology.graph(), weight="delay_s", data=False)
    }
    links = tuple(
        replace(link, domain=DOMAIN)
        for link in topology.links
        if frozenset((link.a, link.b)) in kept
    )
    return _reshaped(topology, links, Architecture.ACYCLIC)


def hierarchical(topology: Topology, root: str | None = None) -> Topology:
    """The tree of shortest paths from a root, as hierarchical overlay.

    Without a root the most central broker is taken.
    """
    root = central(topology) if root is None else root
    _, masters = _ways_from(root, topology.graph())
    links = tuple(
        replace(topology.link(broker, master), a=master, b=broker, domain=DOMAIN)
        for broker, master in masters.items()
    )
    return _reshaped(topology, links, Architecture.HIERARCHICAL)


def with_bandwidth(topology: Topology, bytes_per_s: float) -> Topology:
    """The same overlay, where links that do not say it carry so many bytes in a second."""
    links = tuple(
        link if link.bandwidth_bytes_per_s else replace(link, bandwidth_bytes_per_s=bytes_per_s)
        for link in topology.links
    )
    return replace(topology, links=links)


def central(topology: Topology) -> str:
    """A broker in the middle of a longest way through the overlay.

    The way is found by going to the farthest broker twice, which is exact in a tree and close to it
    elsewhere; the exact centre would take the paths between all pairs.
    """
    graph = topology.graph()
    far = topology.brokers[0]
    for _ in range(2):
        delays, befores = _ways_from(far, graph)
        far = max(delays, key=delays.__getitem__)
    half_s, way = delays[far] / 2, [far]
    while way[-1] in befores:
        way.append(befores[way[-1]])
    return min(way, key=lambda broker: abs(delays[broker] - half_s))


def _ways_from(start: str, graph: nx.Graph[str]) -> tuple[dict[str, float], dict[str, str]]:
    """The delay from a broker to each, and which one comes before each on the shortest path."""
    befores, delays = nx.dijkstra_predecessor_and_distance(graph, start, weight="delay_s")
    return delays, {broker: befores[broker][0] for broker in delays if broker != start}


def _reshaped(topology: Topology, links: tuple[Link, ...], architecture: Architecture) -> Topology:
    name = f"{topology.name}-{architecture.value}"
    domains = {DOMAIN: architecture} if links else {}
    return replace(topology, name=name, links=links, domains=domains)
