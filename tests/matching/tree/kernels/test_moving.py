"""Envelopes of moving bounds in the tree, through windows of time."""

from __future__ import annotations

import pytest

from support.search_trees import arrays_of
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.filters import parse
from tidegate.matching.naive import NaiveMatcher
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.tree.kernels.layout import H_PATHS
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning

SECOND_US = 1_000_000


@pytest.mark.parametrize("factored", [0, 1])
def test_moving_ranges_are_placed_anew_for_each_window(factored: int) -> None:
    oracle = NaiveMatcher()
    matcher = TreeMatcher(TreeTuning(leaf_paths_max=1, factored=factored))
    both = oracle, matcher
    for each in both:
        each.add(
            Subscription(str(i), parse(f"x between {i} + t and {i + 2} + t"), since=0)
            for i in range(0, 40, 3)
        )
    for second in (0, 1, 7, 300, 20):
        for x in range(second, second + 44, 5):
            found, expected = (
                sorted(each.match(Event.of({"x": x}), Moment(second * SECOND_US))) for each in both
            )
            assert found == expected
        check_tree(matcher._index.tree)
    assert arrays_of(matcher).head[H_PATHS] >= 14


def test_pinned_functions_are_evaluated_as_of_their_time() -> None:
    matcher = TreeMatcher(TreeTuning(leaf_paths_max=1))
    matcher.add([Subscription("s", parse("x <= t"), since=0, evolve=Cached(1.0))])
    matcher.add(Subscription(str(i), parse(f"x = {i}")) for i in range(3))
    matcher.pin(["s"], 2 * SECOND_US)
    assert "s" not in matcher.match(Event.of({"x": 5}), Moment(9 * SECOND_US))
    assert "s" in matcher.match(Event.of({"x": 2}), Moment(9 * SECOND_US))
    matcher.pin(["s"], None)
    assert "s" in matcher.match(Event.of({"x": 5}), Moment(9 * SECOND_US))
