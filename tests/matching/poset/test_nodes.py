"""Nodes of a poset: linked both ways, listed by their numbers."""

from __future__ import annotations

from itertools import pairwise

from tidegate import Filter, parse
from tidegate.language.algebra.work import STEPS_MAX, Budget
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import (
    SETTLED_BOXES_MAX,
    SETTLED_SIZE_MAX,
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


def node_of(filter: Filter) -> PosetNode[Filter]:
    return PosetNode(filter, 0, FILTERS.boxes(filter), evolves=False)


def lists(first: int, boxes: int, intervals: int) -> Filter:
    """A filter with some boxes, each with a list of numbers on an attribute, beside another one."""
    count = intervals // boxes - 1
    texts = (
        f"a{box} in ({', '.join(str(3 * i + first) for i in range(count))}) and b = {box + first}"
        for box in range(boxes)
    )
    return parse(" or ".join(texts))


def test_settled_nodes_can_be_compared_within_the_budget() -> None:
    nodes = [node_of(lists(first, SETTLED_BOXES_MAX, SETTLED_SIZE_MAX)) for first in (0, 1)]
    assert [node.settled for node in nodes] == [True, True]
    for wide in nodes:
        for narrow in nodes:
            with Budget() as budget:
                assert wide.item.covers(narrow.item) == (wide is narrow)
            assert budget.left > STEPS_MAX // 20


def test_large_nodes_are_not_settled() -> None:
    many_boxes = lists(0, SETTLED_BOXES_MAX + 1, 4 * SETTLED_BOXES_MAX)
    long_list = lists(0, 1, SETTLED_SIZE_MAX + 2)
    assert [node_of(each).settled for each in (many_boxes, long_list)] == [False, False]
