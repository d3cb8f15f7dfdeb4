"""Nodes of a poset: joined both ways, listed in the order in which they were made."""

from __future__ import annotations

from itertools import pairwise

from tidegate.matching.poset.nodes import (
    PosetNode,
    children_of,
    closed,
    cut,
    first_common,
    link,
    parents_of,
    replaced,
    unlink,
    without,
)


def chain(length: int) -> list[PosetNode[str]]:
    """Nodes, each above the next one; those made later are further up."""
    made = [PosetNode(str(number), number, [], moves=False) for number in range(length)]
    nodes = made[::-1]
    for parent, child in pairwise(nodes):
        link(parent, child)
    return nodes


def test_edges_go_both_ways() -> None:
    top, middle, low = chain(3)
    assert (top.children, middle.parents, middle.children) == ([middle], [top], [low])
    assert [node.is_root for node in (top, middle, low)] == [True, False, False]
    assert (low.ancestors(), top.descendants()) == ([middle, top], [low, middle])
    unlink(middle, low)
    unlink(middle, low)  # which is not there any more
    assert (low.parents, middle.children) == ([], [])


def test_every_edge_that_comes_or_goes_is_counted_at_both_ends() -> None:
    top, low = chain(2)
    before = top.shifts, low.shifts
    unlink(top, low)
    unlink(top, low)
    assert (top.shifts, low.shifts) == (before[0] + 1, before[1] + 1)


def test_sets_of_nodes() -> None:
    top, upper, lower, low = chain(4)
    above = closed([lower], parents_of)
    assert list(above) == [lower, upper, top]
    assert without(above, parents_of) == [lower]
    below = closed([upper], children_of)
    assert first_common(above, below) is lower
    assert first_common(dict.fromkeys([top]), below) is None
    assert replaced([top, upper], upper, {lower: None, top: None}) == [top, lower]
    assert replaced([top], upper, {lower: None}) == [top]
    cut(dict.fromkeys([top, upper]), dict.fromkeys([lower, low]))
    assert upper.children == []
    assert lower.children == [low]
