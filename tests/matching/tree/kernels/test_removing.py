"""Removing entries, and joining what has become small."""

from __future__ import annotations

from support.search_trees import kind_of, matching, path_count, tree_of
from support.tree_invariants import check_tree
from tidegate.matching.tree.kernels.layout import LEAF
from tidegate.matching.tree.tuning import PLAIN, TreeTuning


def test_a_tree_whose_subscriptions_go_is_a_leaf_again() -> None:
    filters = {f"s{i}": f"x = {i} and y = {i % 3}" for i in range(40)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=4))
    for i in range(38):
        matcher.remove(f"s{i}")
        check_tree(matcher._index.tree)
    assert kind_of(matcher) == LEAF
    assert matcher._index.tree.nodes == 1
    assert matching(matcher, x=39, y=0) == ["s39"]


def test_pieces_of_a_range_join_again() -> None:
    filters = {f"n{i}": f"x between {10 * i} and {10 * i + 5}" for i in range(30)}
    matcher = tree_of({**filters, "wide": "x between 4 and 262"}, TreeTuning(leaf_paths_max=8))
    assert path_count(matcher, "wide") > 1
    for id in filters:
        matcher.remove(id)
    assert path_count(matcher, "wide") == 1
    assert matching(matcher, x=30) == ["wide"]
    assert matching(matcher, x=263) == []


def test_nodes_of_the_plain_tree_go_with_their_last_subscription() -> None:
    matcher = tree_of({"a": "x = 1 and y = 2", "b": "x = 1 and z = 3"}, PLAIN)
    matcher.remove("a")
    check_tree(matcher._index.tree)
    matcher.remove("b")
    assert matcher._index.tree.nodes == 1
    assert matcher._index.tree.paths == 0
