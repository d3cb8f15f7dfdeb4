from __future__ import annotations

from collections import Counter
from random import Random

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.plain_networks import (
    MEAN_DEGREE,
    centralized,
    chain,
    connected_pairs,
    random_graph,
    random_tree,
    star,
    tree,
)
from tidegate.simulation.overlays.topology import Topology


def degrees(topology: Topology) -> Counter[int]:
    return Counter(len(topology.neighbours(broker)) for broker in topology.brokers)


def test_shapes() -> None:
    assert (centralized().brokers, centralized().links) == (("b0",), ())
    assert degrees(chain(5)) == {1: 2, 2: 3}
    assert degrees(star(5)) == {1: 4, 4: 1}
    assert degrees(tree(13)) == {1: 9, 3: 1, 4: 3}
    assert nx.diameter(tree(40).graph()) == 6


def test_a_hierarchy_hangs_from_its_first_broker() -> None:
    made = tree(4, architecture=Architecture.HIERARCHICAL)
    assert [made.master(broker) for broker in made.brokers] == [None, "b0", "b0", "b0"]


def test_random_trees_are_equally_likely() -> None:
    trees = Counter(
        frozenset((x.a, x.b) for x in random_tree(4, seed).links) for seed in range(1600)
    )
    assert len(trees) == 4**2  # Cayley's formula
    assert min(trees.values()) > 60  # 100 are expected


def test_the_mean_degree_of_random_graphs() -> None:
    assert len(random_graph(100, 1).links) == 50 * MEAN_DEGREE


@given(st.integers(1, 50), st.floats(0, 60), st.integers())
def test_connected_pairs(count: int, mean_degree: float, seed: int) -> None:
    pairs = connected_pairs(count, mean_degree, Random(seed))
    graph = nx.Graph(pairs)
    graph.add_nodes_from(range(count))
    assert nx.is_connected(graph)
    assert len(set(pairs)) == len(pairs)
    assert all(0 <= a < b < count for a, b in pairs)
    complete = count * (count - 1) // 2
    assert len(pairs) == max(count - 1, min(round(mean_degree * count / 2), complete))
