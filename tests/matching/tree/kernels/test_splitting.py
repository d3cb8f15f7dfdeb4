"""Splitting leaves."""

from __future__ import annotations

import numpy as np
import pytest

from support.search_trees import arrays_of, kind_of, matching, tree_of, word_of
from support.tree_invariants import check_leaves_are_split, check_tree
from tidegate.experiments.search_tree import CHART_3, subscriptions
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels.layout import (
    CUT,
    KIND_MASK,
    LEAF,
    N_KIND,
    N_LEFT,
    NODE_WORDS,
    T_LEVEL,
    TIE_WORDS,
    VALUES,
)
from tidegate.matching.tree.kernels.splitting import LEVELS_MAX
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning


def test_a_leaf_is_split_when_it_is_too_large() -> None:
    filters = {f"s{i}": f"x = {i}" for i in range(4)}
    tuning = TreeTuning(leaf_paths_max=4)
    assert kind_of(tree_of(filters, tuning)) == LEAF
    assert kind_of(tree_of({**filters, "more": "x = 9"}, tuning)) == VALUES


def test_equal_filters_stay_in_one_leaf() -> None:
    matcher = tree_of({f"s{i}": "x starts with 'a'" for i in range(300)}, TreeTuning())
    assert kind_of(matcher) == LEAF
    assert len(matching(matcher, x="ab")) == 300


def test_trivial_tests_are_eliminated_or_not() -> None:
    filters = {f"s{i}": f"z = {i}" for i in range(4)} | {"x": "x = 1", "y": "y = 1"}
    order = ("x", "y", "z")
    few, many = (
        tree_of(filters, TreeTuning(order, leaf_paths_max=0, eliminates_trivial_tests=eliminated))
        for eliminated in (True, False)
    )
    assert few._index.tree.nodes < many._index.tree.nodes
    for matcher in few, many:
        assert matching(matcher, x=1, z=3) == ["s3", "x"]
        check_tree(matcher._index.tree)


@pytest.mark.parametrize("count", [3, 40])
def test_ranges_are_cut_where_they_separate(count: int) -> None:
    filters = {f"r{i}": f"x between {10 * i} and {10 * i + 4}" for i in range(count)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=1))
    ranges = word_of(matcher, N_LEFT)
    assert kind_of(matcher, ranges) & KIND_MASK == CUT
    assert [matching(matcher, x=10 * i + 4) for i in range(count)] == [
        [f"r{i}"] for i in range(count)
    ]
    assert matching(matcher, x=5) == []


def test_ranges_that_all_overlap_are_not_cut() -> None:
    filters = {f"r{i}": f"x between {i} and {100 - i} and y = {i}" for i in range(9)}
    matcher = tree_of(filters, TreeTuning(order=("x",), leaf_paths_max=1))
    assert kind_of(matcher, word_of(matcher, N_LEFT)) == VALUES  # on y
    assert matching(matcher, x=50, y=3) == ["r3"]
    assert matching(matcher, x=2, y=3) == []


def test_a_level_that_was_left_out_is_inserted_when_somebody_cares() -> None:
    order = ("x", "y", "z")
    filters = {f"s{i}": f"x = {i % 2} and z = {i}" for i in range(12)}
    matcher = tree_of(filters, TreeTuning(order, leaf_paths_max=2))
    matcher.add(Subscription(f"y{i}", parse(f"x = 1 and y = {i} and z = 3")) for i in range(12))
    check_tree(matcher._index.tree)
    before = matcher.steps
    assert matching(matcher, x=1, y=5, z=3) == ["s3", "y5"]
    assert matcher.steps - before < 12  # without the level, each of the twelve would be tested


def test_leaves_are_split_although_the_arrays_have_to_grow_first() -> None:
    # Those that don't care about a factored attribute are copied into the branch of a new value all
    # at once. With 200 subscriptions there happened to be no room then to split that branch.
    matcher = TreeMatcher(TreeTuning(factored=3))
    matcher.add(subscriptions(CHART_3, 200))
    matcher.match(Event.of({}), Moment(0))
    check_tree(matcher._index.tree)
    check_leaves_are_split(matcher._index.tree)


def test_a_leaf_of_equal_filters_is_split_as_soon_as_others_come() -> None:
    # the leaf holds nearly all paths, so there is room to split it only if it is made for that
    matcher = tree_of({f"p{i}": "x starts with 'a'" for i in range(200)}, TreeTuning())
    for i in range(0, 400, 40):
        matcher.add(Subscription(f"s{n}", parse(f"id = {n}")) for n in range(i, i + 40))
    check_tree(matcher._index.tree)
    before = matcher.steps
    assert matching(matcher, id=5) == ["s5"]
    assert matcher.steps - before < 210  # the first 200 and a few nodes


def test_a_leaf_is_split_when_those_have_gone_that_could_not_be_separated() -> None:
    matcher = tree_of({f"p{i}": "x starts with 'a'" for i in range(300)}, TreeTuning())
    matcher.add(Subscription(f"s{i}", parse(f"id = {i}")) for i in range(250))
    for i in range(280):
        matcher.remove(f"p{i}")
    matcher.add([Subscription("more", parse("id = 250"))])
    check_tree(matcher._index.tree)
    before = matcher.steps
    assert matching(matcher, id=250) == ["more"]
    assert matcher.steps - before < 30  # the 20 that are left and a few nodes


@pytest.mark.parametrize("tuning", [TreeTuning(), TreeTuning(leaf_paths_max=0)])
def test_only_so_many_levels_have_nodes(tuning: TreeTuning) -> None:
    """Attributes that hostile subscribers make up do not make the tree as deep as they are many."""
    count = LEVELS_MAX + 60
    matcher = tree_of({f"s{i}": f"a{i} = 1 and b > {i}" for i in range(count)}, tuning)
    check_tree(matcher._index.tree)
    assert 0 <= deepest_level(matcher) < LEVELS_MAX
    assert matching(matcher, **{f"a{i}": 1 for i in range(count)}, b=count) == sorted(
        f"s{i}" for i in range(count)
    )
    assert matching(matcher, **{f"a{count - 1}": 1}, b=0) == []
    for index in range(0, count, 2):
        matcher.remove(f"s{index}")
    check_tree(matcher._index.tree)
    assert matching(matcher, **{f"a{count - 1}": 1}, b=count) == [f"s{count - 1}"]


def deepest_level(matcher: TreeMatcher) -> int:
    """The last level that has a node."""
    arrays = arrays_of(matcher)
    ints = arrays.node.reshape(-1, NODE_WORDS).view(np.int32)
    levels = arrays.tie.reshape(-1, TIE_WORDS)[: len(ints), T_LEVEL]
    return int(levels[ints[:, N_KIND] & KIND_MASK != LEAF].max())
