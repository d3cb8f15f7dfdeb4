"""Overlays of one domain and a simple structure: chain, star, trees, random graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import networkx as nx

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import Link, Topology

DELAY_S = 0.010
"""The delay of a link unless it is random or given by a paper."""

DOMAIN = "overlay"
"""The name of the domain of an overlay that has only one."""

FAN_OUT = 3
"""The number of children of a broker in a balanced tree."""

MEAN_DEGREE = 3.0
"""The mean number of links of a broker in a random graph."""

_RANDOM_DELAYS_S = (0.005, 0.050)

BrokerPair = tuple[int, int]


def centralized() -> Topology:
    """A single broker."""
    return Topology("centralized", ("b0",), (), {})


def chain(brokers: int) -> Topology:
    """Brokers in a row."""
    return _plain("chain", brokers, [(i - 1, i) for i in range(1, brokers)])


def star(brokers: int) -> Topology:
    """One broker in the middle, linked with each of the others."""
    return _plain("star", brokers, [(0, i) for i in range(1, brokers)])


def tree(brokers: int, architecture: Architecture = Architecture.ACYCLIC) -> Topology:
    """A balanced tree, filled level by level.

    >>> tree(6).neighbours("b1")
    ('b0', 'b4', 'b5')
    """
    pairs = [((i - 1) // FAN_OUT, i) for i in range(1, brokers)]
    name = "hierarchy" if architecture is Architecture.HIERARCHICAL else "tree"
    return _plain(name, brokers, pairs, architecture)


def random_tree(brokers: int, seed: int) -> Topology:
    """A uniformly random labelled tree, by its Prüfer sequence."""
    random = Random(seed)
    if brokers <= 2:
        return _plain("random-tree", brokers, [(0, 1)][: brokers - 1])
    code = [random.randrange(brokers) for _ in range(brokers - 2)]
    pairs = sorted((min(pair), max(pair)) for pair in nx.from_prufer_sequence(code).edges)
    return _plain("random-tree", brokers, pairs, random=random)


def random_graph(brokers: int, seed: int) -> Topology:
    """A random connected graph."""
    random = Random(seed)
    pairs = connected_pairs(brokers, MEAN_DEGREE, random)
    return _plain("random-graph", brokers, pairs, Architecture.GENERAL, random)


def connected_pairs(count: int, mean_degree: float, random: Random) -> list[BrokerPair]:
    """The edges of a random connected graph of the nodes 0 to ``count`` - 1.

    They are a random tree, and random further edges up to the mean degree.
    """
    pairs = {(random.randrange(i), i): None for i in range(1, count)}  # a dict keeps their order
    edges = min(round(mean_degree * count / 2), count * (count - 1) // 2)
    while len(pairs) < edges:
        a, b = random.randrange(count), random.randrange(count)
        if a != b:
            pairs[min(a, b), max(a, b)] = None
    return list(pairs)


def one_domain(
    name: str,
    brokers: Iterable[str],
    links: Iterable[tuple[str, str, float]],
    architecture: Architecture,
    regions: Mapping[str, str] | None = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
) -> Topology:
    """An overlay of one domain, from links that are given as two brokers and a delay."""
    domain_links = tuple(Link(a, b, delay_s, DOMAIN) for a, b, delay_s in links)
    domains = {DOMAIN: architecture} if domain_links else {}
    return Topology(name, tuple(brokers), domain_links, domains, regions or {}, positions or {})


def random_delay_s(low_s: float, high_s: float, random: Random) -> float:
    """A uniformly random delay in whole microseconds."""
    return random.randint(round(low_s * 1e6), round(high_s * 1e6)) / 1e6


def _plain(
    name: str,
    brokers: int,
    pairs: Iterable[BrokerPair],
    architecture: Architecture = Architecture.ACYCLIC,
    random: Random | None = None,
) -> Topology:
    """An overlay of brokers `b0`, `b1`, ...; delays are DELAY_S, or random with a generator."""
    names = [f"b{i}" for i in range(brokers)]
    links = [
        (names[a], names[b], random_delay_s(*_RANDOM_DELAYS_S, random) if random else DELAY_S)
        for a, b in pairs
    ]
    return one_domain(name, names, links, architecture)
