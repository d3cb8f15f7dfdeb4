"""A search tree by itself: copies of its entries, sets of many links."""

from __future__ import annotations

import numpy as np

from support.search_trees import tree_of
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.tuning import TreeTuning


def test_entries_that_are_taken_out_make_the_same_tree() -> None:
    filters = {f"s{i}": f"x = {i % 5} and y < {i} and z != 3" for i in range(30)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=2))
    matcher.remove("s4")
    index = matcher._index
    before = index.tree
    copied = index.copy()
    assert len(copied) == before.size == 29
    assert np.all(np.diff(copied.first) == 3)
    tree = index.build(copied, before.order)
    assert (tree.size, tree.order) == (before.size, before.order)
    assert tree.tests.values.tolist() == before.tests.values.tolist()
    check_tree(tree)


def test_more_than_64_links() -> None:
    filters = {f"s{i}": f"x = {i % 10}" for i in range(200)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=2))
    for i in range(200):
        matcher.set_links(f"s{i}", 1 << i)
    found = matcher.match_links(Event.of({"x": 3}), Moment(), (1 << 200) - 1)
    assert found.links == sum(1 << i for i in range(3, 200, 10))
    check_tree(matcher._index.tree)
