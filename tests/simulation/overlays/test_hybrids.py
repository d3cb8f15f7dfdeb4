from __future__ import annotations

from tidegate.routing.overlay.domains import Architecture
from tidegate.simulation.overlays.hybrids import graphs_in_tree, hierarchies_in_graph
from tidegate.simulation.overlays.topology import Topology


def members(topology: Topology, domain: str) -> set[str]:
    return {broker for broker in topology.brokers if domain in topology.domains_of(broker)}


def test_hierarchies_in_a_graph() -> None:
    made = hierarchies_in_graph(48, seed=1)
    assert made.domains["roots"] is Architecture.GENERAL
    assert {made.domains[f"c{i}"] for i in range(6)} == {Architecture.HIERARCHICAL}
    roots = [broker for broker in made.brokers if made.master(broker) is None]
    assert roots == [f"c{i}.0" for i in range(6)]
    assert not made.is_acyclic


def test_only_roots_leave_their_hierarchy() -> None:
    made = hierarchies_in_graph(48, seed=1)
    assert set(members(made, "roots")) == {f"c{i}.0" for i in range(6)}
    assert len(members(made, "c3")) == 8


def test_graphs_in_a_tree() -> None:
    made = graphs_in_tree(48, seed=1)
    assert made.domains["gateways"] is Architecture.ACYCLIC
    assert {made.domains[f"c{i}"] for i in range(6)} == {Architecture.GENERAL}
    gateways = members(made, "gateways")
    assert sorted(made.regions[each] for each in gateways) == [f"c{i}" for i in range(6)]
    assert sum(link.domain == "gateways" for link in made.links) == 5


def test_a_small_one_is_one_cluster() -> None:
    assert set(graphs_in_tree(5, seed=1).domains) == {"c0"}
    assert hierarchies_in_graph(1, seed=1).domains == {}
