"""All overlays that can be asked for by name, size and seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.errors import TopologyError
from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays import hybrids, paper_networks, plain_networks, reshaping
from tidegate.simulation.overlays.topology import BROKERS_MAX, Topology
from tidegate.simulation.overlays.transit_stub import transit_stub

SEED_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes overlays of one kind; ``make`` takes the number of brokers and the seed.

    ``brokers`` is how many there are where nobody asks for a number, or always if ``fixed``.
    """

    summary: str
    brokers: int
    make: Callable[[int, int], Topology]
    fixed: bool = False


def generate(name: str, brokers: int | None = None, seed: int = 0) -> Topology:
    """An overlay of `TOPOLOGIES`; the same arguments give the same overlay.

    >>> len(generate("transit-stub", brokers=30, seed=3).brokers)
    30
    """
    if name not in TOPOLOGIES:
        raise TopologyError(f"there is no topology {name!r}; there are {', '.join(TOPOLOGIES)}")
    generator = TOPOLOGIES[name]
    count = generator.brokers if brokers is None else brokers
    if generator.fixed and count != generator.brokers:
        size = "1 broker" if generator.brokers == 1 else f"{generator.brokers} brokers"
        raise TopologyError(f"the topology {name!r} always has {size}, not {count}")
    if not 1 <= count <= BROKERS_MAX:
        raise TopologyError(f"{count} brokers were asked for; 1 to {BROKERS_MAX} can be had")
    if not 0 <= seed <= SEED_MAX:
        raise TopologyError(f"the seed {seed} is not between 0 and {SEED_MAX}")
    return generator.make(count, seed)


def _fixed(summary: str, brokers: int, make: Callable[[], Topology]) -> Generator:
    return Generator(summary, brokers, lambda _brokers, _seed: make(), fixed=True)


def _seedless(summary: str, brokers: int, make: Callable[[int], Topology]) -> Generator:
    return Generator(summary, brokers, lambda count, _seed: make(count))


TOPOLOGIES: Mapping[str, Generator] = {
    "centralized": _fixed("one broker", 1, plain_networks.centralized),
    "chain": _seedless("brokers in a row", 10, plain_networks.chain),
    "star": _seedless("one broker linked with all others", 10, plain_networks.star),
    "tree": _seedless("a balanced tree, acyclic", 40, plain_networks.tree),
    "hierarchy": _seedless(
        "a balanced tree, hierarchical",
        40,
        lambda count: plain_networks.tree(count, architecture=Architecture.HIERARCHICAL),
    ),
    "random-tree": Generator("any tree, equally likely", 40, plain_networks.random_tree),
    "random-graph": Generator(
        "a connected graph of mean degree 3", 40, plain_networks.random_graph
    ),
    "transit-stub": Generator("backbones and the networks around them", 100, transit_stub),
    "transit-stub-acyclic": Generator(
        "the minimum spanning tree of transit-stub",
        100,
        lambda count, seed: reshaping.acyclic(transit_stub(count, seed)),
    ),
    "transit-stub-hierarchical": Generator(
        "the shortest paths from the centre of transit-stub",
        100,
        lambda count, seed: reshaping.hierarchical(transit_stub(count, seed)),
    ),
    "hierarchies-in-graph": Generator(
        "hierarchical clusters, a general graph of their roots", 48, hybrids.hierarchies_in_graph
    ),
    "graphs-in-tree": Generator(
        "general clusters, an acyclic graph of their gateways", 48, hybrids.graphs_in_tree
    ),
    "gryphon": _fixed("three regional trees with lateral links", 39, paper_networks.gryphon),
    "summaries13": _fixed("the example of summaries, a tree", 13, paper_networks.summaries13),
    "isp24": _fixed("a backbone of cities of the United States", 24, paper_networks.isp24),
    "highway20": _fixed("highways out of a city and two ring roads", 20, paper_networks.highway20),
    "trading20": _fixed("market data, clearing houses, firms", 20, paper_networks.trading20),
}
