"""Placing many entries, while the arrays grow."""

from __future__ import annotations

from support.search_trees import matching, tree_of
from support.tree_invariants import check_tree
from tidegate.matching.tree.tuning import PLAIN, TreeTuning


def test_arrays_grow_while_entries_are_placed() -> None:
    filters = {f"s{i}": f"a = {i % 11} and b = {i % 13} and c = {i}" for i in range(900)}
    for tuning in (PLAIN, TreeTuning(), TreeTuning(leaf_paths_max=1, factored=2)):
        matcher = tree_of(filters, tuning)
        check_tree(matcher._index.tree)
        for i in range(0, 900, 77):
            assert matching(matcher, a=i % 11, b=i % 13, c=i) == [f"s{i}"]


def test_copies_of_a_factored_level_grow_the_arrays_too() -> None:
    filters = {f"any{i}": f"b = {i}" for i in range(60)}
    filters |= {f"value{i}": f"a = {i} and b = {i}" for i in range(60)}
    matcher = tree_of(filters, TreeTuning(order=("a",), factored=1, leaf_paths_max=2))
    assert matcher._index.tree.paths >= 60 * 61
    assert matching(matcher, a=7, b=7) == ["any7", "value7"]
    assert matching(matcher, a=99, b=7) == ["any7"]
    check_tree(matcher._index.tree)


def test_filters_that_match_nothing_are_not_placed() -> None:
    matcher = tree_of({"never": "false", "s": "x = 1"}, TreeTuning())
    assert matcher._index.tree.paths == 1
    assert matching(matcher, x=1) == ["s"]
