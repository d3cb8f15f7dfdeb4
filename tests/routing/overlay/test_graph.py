"""Shortest paths are unique and the same in both directions, where many cost the same time."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.overlay.graph import NO_COST, Announcement, Graph

NAMES = list("abcdefg")
Links = dict[tuple[str, str], int]

links = st.dictionaries(
    st.sampled_from([(one, other) for one in NAMES for other in NAMES if one < other]),
    st.integers(0, 2),  # few costs, so that many paths are of the same length
    max_size=15,
)


def graph_of(links: Links) -> Graph:
    announced: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    for (one, other), cost in links.items():
        announced[one][other] = announced[other][one] = cost
    return Graph.of(Announcement(name, 1, tuple(near.items())) for name, near in announced.items())


def path(graph: Graph, start: str, end: str) -> list[str] | None:
    """From one broker to another, read off the parents in the tree of the first."""
    tree = graph.tree(start)
    if end not in tree.costs:
        return None
    backward = [end]
    while backward[-1] != start:
        backward.append(tree.parents[backward[-1]])
    return backward[::-1]


@given(links)
def test_paths_are_the_same_both_ways_and_so_are_their_parts(links: Links) -> None:
    graph = graph_of(links)
    for one in NAMES:
        for other in NAMES:
            there, back = path(graph, one, other), path(graph, other, one)
            assert there == (None if back is None else back[::-1])
            for at, middle in enumerate(there or ()):
                assert path(graph, one, middle) == (there or [])[: at + 1]
                assert path(graph, middle, other) == (there or [])[at:]


@given(links)
def test_paths_are_shortest(links: Links) -> None:
    graph = graph_of(links)
    plain: nx.Graph[str] = nx.Graph()
    plain.add_nodes_from(NAMES)
    plain.add_weighted_edges_from((one, other, cost) for (one, other), cost in links.items())
    for one in NAMES:
        lengths = dict(nx.single_source_dijkstra_path_length(plain, one))
        assert {name: cost[0] for name, cost in graph.tree(one).costs.items()} == lengths


@given(links)
def test_passes_is_whether_a_broker_is_on_the_path(links: Links) -> None:
    graph = graph_of(links)
    for one in NAMES:
        for other in NAMES:
            there = path(graph, one, other)
            for middle in NAMES:
                passes = graph.tree(one).passes(through=graph.tree(middle), to=other)
                assert passes == (there is not None and middle in there)


@given(links)
def test_children_are_the_brokers_with_this_parent(links: Links) -> None:
    graph = graph_of(links)
    for root in NAMES:
        tree = graph.tree(root)
        assert tree.costs[root] == NO_COST
        for broker in NAMES:
            below = [name for name, parent in tree.parents.items() if parent == broker]
            assert sorted(tree.children(broker)) == sorted(below)


@given(links)
def test_a_subtree_has_the_brokers_whose_paths_lead_through_its_first(links: Links) -> None:
    graph = graph_of(links)
    for root in NAMES:
        for broker in NAMES:
            if path(graph, root, broker) is not None:
                below = [each for each in NAMES if broker in (path(graph, root, each) or ())]
                assert sorted(graph.tree(root).subtree(broker)) == below
                assert graph.tree(root).subtree(broker)[0] == broker


@given(links)
def test_reaches_is_whether_there_is_a_path(links: Links) -> None:
    graph = graph_of(links)
    for one in NAMES:
        for other in NAMES:
            assert graph.reaches(one, other) == (path(graph, one, other) is not None)


def test_a_link_counts_when_both_ends_have_announced_it() -> None:
    a = Announcement("a", 1, (("b", 5),))
    b = Announcement("b", 1, (("a", 5), ("c", 5)))
    assert not Graph.of([a]).reaches("a", "b")
    assert Graph.of([a, b]).neighbours("a") == {"b": 5}
    assert Graph.of([a, b]).neighbours("b") == {"a": 5}  # c has not announced it


def test_a_link_has_the_higher_cost_of_its_ends() -> None:
    announced = [Announcement("a", 1, (("b", 5),)), Announcement("b", 1, (("a", 7),))]
    graph = Graph.of(announced)
    assert graph.neighbours("a") == {"b": 7}
    assert graph.neighbours("b") == {"a": 7}


def test_brokers_that_know_the_same_share_a_graph() -> None:
    announced = [Announcement("a", 1, (("b", 5),)), Announcement("b", 1, (("a", 5),))]
    later = [Announcement("b", 9, (("a", 5),)), Announcement("a", 9, (("b", 5),))]
    assert Graph.of(announced) is Graph.of(later)


def test_an_unknown_broker_has_no_neighbours_and_reaches_itself_only() -> None:
    graph = Graph({})
    assert graph.neighbours("a") == {}
    assert graph.reaches("a", "a")
    assert not graph.reaches("a", "b")
    assert graph.tree("a").children("a") == []
