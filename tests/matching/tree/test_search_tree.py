"""A search tree by itself: copies of its entries."""

from __future__ import annotations

import numpy as np

from support.search_trees import tree_of
from support.tree_invariants import check_tree
from tidegate.matching.tree.tuning import TreeTuning


def test_entries_that_are_taken_out_make_the_same_tree() -> None:
    filters = {f"s{i}": f"x = {i % 5} and y < {i} and z != 3" for i in range(30)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=2))
    matcher.remove("s4")
    index = matcher._index
    before = index.tree
    copied = index.copy()
    assert len(copied) == before.records.size == 29
    assert np.all(np.diff(copied.first) == 3)
    tree = index.build(copied, before.storage.order)
    assert tree.records.size == before.records.size
    assert tree.storage.order == before.storage.order
    assert tree.records.tests.values.tolist() == before.records.tests.values.tolist()
    check_tree(tree)
