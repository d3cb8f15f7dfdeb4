"""Changes of an overlay: its acyclic and hierarchical versions, and a bandwidth for its links.

Siena's study compares architectures on one network (Siena, 6): with the same brokers, and those of
the links that the architecture allows.
"""

from __future__ import annotations

from dataclasses import replace

import networkx as nx

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import DOMAIN
from tidegate.simulation.overlays.topology import Link, Topology


def acyclic(topology: Topology) -> Topology:
    """The acyclic overlay of the minimum spanning tree by delay."""
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
    """The hierarchical overlay of the shortest paths from a root, by default the central broker."""
    root = central(topology) if root is None else root
    _, masters = _shortest_paths(root, topology.graph())
    links = tuple(
        replace(topology.link(broker, master), a=master, b=broker, domain=DOMAIN)
        for broker, master in masters.items()
    )
    return _reshaped(topology, links, Architecture.HIERARCHICAL)


def with_bandwidth(topology: Topology, bytes_per_s: float) -> Topology:
    """The overlay with a bandwidth for all links that have none."""
    links = tuple(
        link if link.bandwidth_bytes_per_s else replace(link, bandwidth_bytes_per_s=bytes_per_s)
        for link in topology.links
    )
    return replace(topology, links=links)


def central(topology: Topology) -> str:
    """A broker in the middle of a longest shortest path through the overlay.

    The path is found by going to the farthest broker twice, which is exact in a tree and close to
    it elsewhere. The exact centre would need the shortest paths between all pairs.
    """
    graph = topology.graph()
    farthest = topology.brokers[0]
    for _ in range(2):
        delays_s, predecessors = _shortest_paths(farthest, graph)
        farthest = max(delays_s, key=delays_s.__getitem__)
    half_s, path = delays_s[farthest] / 2, [farthest]
    while path[-1] in predecessors:
        path.append(predecessors[path[-1]])
    return min(path, key=lambda broker: abs(delays_s[broker] - half_s))


def _shortest_paths(start: str, graph: nx.Graph[str]) -> tuple[dict[str, float], dict[str, str]]:
    """The delays from a broker to all others, and the predecessors on the shortest paths."""
    predecessors, delays_s = nx.dijkstra_predecessor_and_distance(graph, start, weight="delay_s")
    return delays_s, {broker: predecessors[broker][0] for broker in delays_s if broker != start}


def _reshaped(topology: Topology, links: tuple[Link, ...], architecture: Architecture) -> Topology:
    name = f"{topology.name}-{architecture.value}"
    domains = {DOMAIN: architecture} if links else {}
    return replace(topology, name=name, links=links, domains=domains)
