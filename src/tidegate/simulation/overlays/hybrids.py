"""Siena's two hybrid architectures (Siena, 4): clusters of one architecture, joined by another.

Within a cluster delays are short and one organisation runs all brokers. Between clusters there are
few links, with long delays. So each of the two may have the architecture that suits it.
"""

from __future__ import annotations

from random import Random

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import (
    FAN_OUT,
    MEAN_DEGREE,
    connected_pairs,
    random_delay_s,
)
from tidegate.simulation.overlays.topology import Link, Topology

CLUSTER_SIZE = 8

_NEAR_S = (0.001, 0.005)
_FAR_S = (0.020, 0.080)


def hierarchies_in_graph(brokers: int, seed: int) -> Topology:
    """Hierarchical clusters whose roots form a general graph."""
    random = Random(seed)
    clusters = _clusters(brokers)
    links = []
    for number, cluster in enumerate(clusters):
        for i in range(1, len(cluster)):
            delay_s = random_delay_s(*_NEAR_S, random)
            links.append(Link(cluster[(i - 1) // FAN_OUT], cluster[i], delay_s, f"c{number}"))
    for a, b in connected_pairs(len(clusters), MEAN_DEGREE, random):
        delay_s = random_delay_s(*_FAR_S, random)
        links.append(Link(clusters[a][0], clusters[b][0], delay_s, "roots"))
    inside, between = Architecture.HIERARCHICAL, Architecture.GENERAL
    return _hybrid("hierarchies-in-graph", clusters, links, "roots", inside, between)


def graphs_in_tree(brokers: int, seed: int) -> Topology:
    """General clusters, one gateway of each, and an acyclic graph of the gateways."""
    random = Random(seed)
    clusters = _clusters(brokers)
    links = []
    for number, cluster in enumerate(clusters):
        for a, b in connected_pairs(len(cluster), MEAN_DEGREE, random):
            delay_s = random_delay_s(*_NEAR_S, random)
            links.append(Link(cluster[a], cluster[b], delay_s, f"c{number}"))
    gateways = [random.choice(cluster) for cluster in clusters]
    for i in range(1, len(clusters)):
        delay_s = random_delay_s(*_FAR_S, random)
        links.append(Link(gateways[random.randrange(i)], gateways[i], delay_s, "gateways"))
    inside, between = Architecture.GENERAL, Architecture.ACYCLIC
    return _hybrid("graphs-in-tree", clusters, links, "gateways", inside, between)


def _clusters(brokers: int) -> list[list[str]]:
    """The names of brokers by cluster; `c2.5` is broker 5 of cluster 2.

    The sizes of clusters differ by at most one.
    """
    count = max(1, round(brokers / CLUSTER_SIZE))
    sizes = [brokers // count + (number < brokers % count) for number in range(count)]
    return [[f"c{number}.{i}" for i in range(size)] for number, size in enumerate(sizes)]


def _hybrid(
    name: str,
    clusters: list[list[str]],
    links: list[Link],
    joint: str,
    inside: Architecture,
    between: Architecture,
) -> Topology:
    used = dict.fromkeys(link.domain for link in links)
    domains = {domain: between if domain == joint else inside for domain in used}
    regions = {broker: f"c{n}" for n, cluster in enumerate(clusters) for broker in cluster}
    return Topology(name, tuple(regions), tuple(links), domains, regions)
