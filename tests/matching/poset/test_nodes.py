"""Nodes of a poset: linked both ways, listed by their numbers."""

from __future__ import annotations

from itertools import pairwise

from tidegate.matching.poset.nodes import (
    PosetNode,
    children_of,
    closure,
    first_common,
    link,
    parents_of,
    replaced,
    sources,
    unlink,
    unlink_all,
)


def chain(length: int) -> list[PosetNode[str]]:
    """Nodes, each above the next one; those with greater numbers are further up."""
    made = [PosetNode(str(number), number, [], evolves=False) for number in range(length)]
    nodes = made[::-1]
    for parent, child in pairwise(nodes):
        link(parent, child)
    return nodes


def test_edges_go_both_ways() -> None:
    top, middle, low = chain(3)
    assert (top.children, middle.parents, middle.children) == ([middle], [top], [low])
    assert [node.is_root for node in (top, middle, low)] == [True, False, False]
    unlink(middle, low)
    unlink(middle, low)  # which is not linked any more
    assert (low.parents, middle.children) == ([], [])


def test_added_and_removed_edges_are_counted_at_both_ends() -> None:
    top, low = chain(2)
    before = top.edge_changes, low.edge_changes
    unlink(top, low)
    unlink(top, low)
    assert (top.edge_changes, low.edge_changes) == (before[0] + 1, before[1] + 1)


def test_sets_of_nodes() -> None:
    top, upper, lower, low = chain(4)
    above = closure([lower], parents_of)
    assert list(above) == [lower, upper, top]
    assert sources(above, parents_of) == [lower]
    below = closure([upper], children_of)
    assert first_common(above, below) is lower
    assert first_common(dict.fromkeys([top]), below) is None
    assert replaced([top, upper], upper, {lower: None, top: None}) == [top, lower]
    assert replaced([top], upper, {lower: None}) == [top]
    unlink_all(dict.fromkeys([top, upper]), dict.fromkeys([lower, low]))
    assert upper.children == []
    assert lower.children == [low]
