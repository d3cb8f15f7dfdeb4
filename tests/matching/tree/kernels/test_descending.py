"""The way of an entry down the tree: ranges that are cut, and copies for factored levels."""

from __future__ import annotations

from support.search_trees import kind_of, matching, path_count, tree_of
from support.tree_invariants import check_tree
from tidegate.matching.tree.kernels.descending import PATHS_MAX
from tidegate.matching.tree.kernels.layout import CUT, EXCLUSIVE, VALUES
from tidegate.matching.tree.tuning import TreeTuning

SMALL = TreeTuning(leaf_paths_max=1)


def test_a_range_that_contains_a_cut_has_a_path_on_either_side() -> None:
    filters = {f"n{i}": f"x between {10 * i} and {10 * i + 5}" for i in range(4)}
    matcher = tree_of({**filters, "wide": "x between 4 and 22"}, SMALL)
    assert path_count(matcher, "wide") > 1
    for x, expected in {3: ["n0"], 4: ["n0", "wide"], 22: ["n2", "wide"], 23: ["n2"]}.items():
        assert matching(matcher, x=x) == expected
    check_tree(matcher._index.tree)


def test_an_entry_has_few_paths_however_many_cuts_it_contains() -> None:
    filters = {f"n{i}": f"x between {10 * i} and {10 * i + 5}" for i in range(60)}
    matcher = tree_of({**filters, "wide": "x between 4 and 522"}, SMALL)
    assert path_count(matcher, "wide") <= PATHS_MAX
    assert matching(matcher, x=52) == ["n5", "wide"]
    assert matching(matcher, x=523) == ["n52"]
    check_tree(matcher._index.tree)


def test_what_does_not_care_is_copied_into_each_branch_of_a_factored_level() -> None:
    filters = {"one": "x = 1", "any": "y = 5", "some": "x > 1 and y = 5", "two": "x = 2 and y = 5"}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=1, factored=1, order=("x",)))
    assert kind_of(matcher) == VALUES | EXCLUSIVE
    assert path_count(matcher, "any") == 3  # x = 1, x = 2, and all other values
    assert path_count(matcher, "some") == 2
    matcher.add(tree_of({"three": "x = 3 and y = 5"}, SMALL)._table.get(n) for n in [0])
    assert path_count(matcher, "any") == 4
    assert matching(matcher, x=3, y=5) == ["any", "some", "three"]
    assert matching(matcher, x=4, y=5) == ["any", "some"]
    assert matching(matcher, y=5) == ["any"]
    check_tree(matcher._index.tree)


def test_a_factored_level_of_ranges_has_a_subtree_for_each_of_them() -> None:
    filters = {f"r{i}": f"x between {10 * i} and {10 * i + 9}" for i in range(4)}
    matcher = tree_of(
        {**filters, "any": "y = 1"}, TreeTuning(leaf_paths_max=1, factored=1, order=("x",))
    )
    assert kind_of(matcher) == CUT | EXCLUSIVE
    assert matching(matcher, x=12, y=1) == ["any", "r1"]
    assert matching(matcher, y=1) == ["any"]
    assert matching(matcher, x=-1, y=2) == []
    check_tree(matcher._index.tree)
