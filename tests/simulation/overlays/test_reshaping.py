from __future__ import annotations

from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.paper_networks import summaries13
from tidegate.simulation.overlays.plain_networks import centralized, chain, random_graph, star
from tidegate.simulation.overlays.reshaping import acyclic, central, hierarchical, with_bandwidth
from tidegate.simulation.overlays.topology import Topology
from tidegate.simulation.overlays.transit_stub import transit_stub

SIZES, SEEDS = st.integers(1, 80), st.integers(0, 2**32)


def total_delay_s(topology: Topology) -> float:
    return sum(link.delay_s for link in topology.links)


def farthest_s(topology: Topology, broker: str) -> float:
    delays = nx.single_source_dijkstra_path_length(topology.graph(), broker, weight="delay_s")
    return max(delays.values())


@settings(max_examples=settings().max_examples // 4)
@given(SIZES, SEEDS)
def test_the_acyclic_overlay_is_a_minimum_spanning_tree(brokers: int, seed: int) -> None:
    whole = random_graph(brokers, seed)
    made = acyclic(whole)
    assert set(made.domains.values()) <= {Architecture.ACYCLIC}
    assert set(made.links) <= set(whole.links)
    assert (made.brokers, made.is_acyclic) == (whole.brokers, True)
    least = nx.minimum_spanning_tree(whole.graph(), weight="delay_s").size(weight="delay_s")
    assert total_delay_s(made) == pytest.approx(least)


@settings(max_examples=settings().max_examples // 4)
@given(SIZES, SEEDS)
def test_the_hierarchy_has_the_shortest_ways_from_its_root(brokers: int, seed: int) -> None:
    whole = transit_stub(brokers, seed)
    made = hierarchical(whole)
    assert set(made.domains.values()) <= {Architecture.HIERARCHICAL}
    assert made.regions == whole.regions
    (root,) = [broker for broker in made.brokers if made.master(broker) is None]
    before = nx.single_source_dijkstra_path_length(whole.graph(), root, weight="delay_s")
    after = nx.single_source_dijkstra_path_length(made.graph(), root, weight="delay_s")
    assert after == pytest.approx(before)


def test_a_root_can_be_chosen() -> None:
    assert hierarchical(chain(3), root="b2").master("b0") == "b1"


def test_names() -> None:
    made = transit_stub(30, 1)
    assert acyclic(made).name == "transit-stub-acyclic"
    assert hierarchical(made).name == "transit-stub-hierarchical"


def test_the_centre() -> None:
    assert central(chain(9)) == "b4"
    assert central(star(9)) == "b0"
    assert central(centralized()) == "b0"
    assert central(summaries13()) in {"7", "8"}


@settings(max_examples=settings().max_examples // 4)
@given(SIZES, SEEDS)
def test_the_centre_of_a_tree_is_exact(brokers: int, seed: int) -> None:
    made = acyclic(random_graph(brokers, seed))
    least = min(farthest_s(made, broker) for broker in made.brokers)
    assert farthest_s(made, central(made)) == pytest.approx(least)


def test_a_long_way_and_a_wide_one() -> None:
    assert hierarchical(chain(10_000)).is_acyclic
    assert acyclic(star(10_000)).is_acyclic


def test_links_without_a_bandwidth_get_one() -> None:
    made = chain(3)
    first = replace(made.links[0], bandwidth_bytes_per_s=5.0)
    made = replace(made, links=(first, made.links[1]))
    assert [link.bandwidth_bytes_per_s for link in with_bandwidth(made, 9.0).links] == [5.0, 9.0]
