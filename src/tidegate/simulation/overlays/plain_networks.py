"""Overlays of one domain and a plain shape: chain, star, trees, random graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import networkx as nx

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.topology import Link, Topology

DELAY_S = 0.010
"""The delay of a link where nothing says otherwise."""

DOMAIN = "overlay"
"""The domain of an overlay that has only one."""

_RANDOM_DELAYS_S = (0.005, 0.050)

BrokerPair = tuple[int, int]


def centralized() -> Topology:
    """One broker that does it all."""
    return Topology("centralized", ("b0",), (), {})


def chain(brokers: int) -> Topology:
    """Brokers in a row."""
    return _plain("chain", brokers, [(i - 1, i) for i in range(1, brokers)])


def star(brokers: int) -> Topology:
    """One broker in the middle, linked with each of the others."""
    return _plain("star", brokers, [(0, i) for i in range(1, brokers)])


def tree(
    brokers: int, fan_out: int = 3, architecture: Architecture = Architecture.ACYCLIC
) -> Topology:
    """A balanced tree, filled level by level.

    >>> tree(5, fan_out=2).neighbours("b1")
    ('b0', 'b3', 'b4')
    """
    if fan_out < 1:
        raise TopologyError(f"a fan-out of {fan_out}; 1 or more is right")
    pairs = [((i - 1) // fan_out, i) for i in range(1, brokers)]
    name = "hierarchy" if architecture is Architecture.HIERARCHICAL else "tree"
    return _plain(name, brokers, pairs, architecture)


def random_tree(brokers: int, seed: int) -> Topology:
    """A tree, each of all labelled trees equally likely (by its Prüfer sequence)."""
    random = Random(seed)
    if brokers <= 2:
        return _plain("random-tree", brokers, [(0, 1)][: brokers - 1])
    code = [random.randrange(brokers) for _ in range(brokers - 2)]
    pairs = sorted((min(pair), max(pair)) for pair in nx.from_prufer_sequence(code).edges)
    return _plain("random-tree", brokers, pairs, random=random)


def random_graph(brokers: int, seed: int, mean_degree: float = 3.0) -> Topology:
    """A connected graph with a given number of links and no other structure."""
    random = Random(seed)
    pairs = connected_pairs(brokers, mean_degree, random)
    return _plain("random-graph", brokers, pairs, Architecture.GENERAL, random)


def connected_pairs(count: int, mean_degree: float, random: Random) -> list[BrokerPair]:
    """Pairs of 0 to ``count`` - 1 that connect them all, and more up to the mean degree."""
    found = {(random.randrange(i), i): None for i in range(1, count)}
    wanted = min(round(mean_degree * count / 2), count * (count - 1) // 2)
    while len(found) < wanted:
        a, b = random.randrange(count), random.randrange(count)
        if a != b:
            found[min(a, b), max(a, b)] = None
    return list(found)


def one_domain(
    name: str,
    brokers: Iterable[str],
    links: Iterable[tuple[str, str, float]],
    architecture: Architecture,
    regions: Mapping[str, str] | None = None,
    positions: Mapping[str, tuple[float, float]] | None = None,
) -> Topology:
    """An overlay whose links, each two brokers and a delay, are all of one domain."""
    made = tuple(Link(a, b, delay_s, DOMAIN) for a, b, delay_s in links)
    domains = {DOMAIN: architecture} if made else {}
    return Topology(name, tuple(brokers), made, domains, regions or {}, positions or {})


def random_delay_s(low_s: float, high_s: float, random: Random) -> float:
    """A delay of whole microseconds, evenly from a range."""
    return random.randint(round(low_s * 1e6), round(high_s * 1e6)) / 1e6


def _plain(
    name: str,
    brokers: int,
    pairs: Iterable[BrokerPair],
    architecture: Architecture = Architecture.ACYCLIC,
    random: Random | None = None,
) -> Topology:
    """Brokers `b0`, `b1`, ...; the delays are all the same, or random."""
    names = [f"b{i}" for i in range(brokers)]
    links = [
        (names[a], names[b], random_delay_s(*_RANDOM_DELAYS_S, random) if random else DELAY_S)
        for a, b in pairs
    ]
    return one_domain(name, names, links, architecture)
