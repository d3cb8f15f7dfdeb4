"""The index around the tree: the order of levels, given or chosen."""

from __future__ import annotations

from support.search_trees import matching, tree_of
from tidegate.matching.tree.matcher import TreeMatcher
from tidegate.matching.tree.tuning import TreeTuning


def attributes(matcher: TreeMatcher) -> list[str]:
    names = {number: name for (name, _), number in matcher._channels.numbers.items()}
    return [names[each] for each in matcher._index.tree.storage.order]


FILTERS = {"a": "x = 1 and y = 1", "b": "y = 2", "c": "y = 3 and z > 1", "d": "w starts with 'k'"}


def test_the_fewest_dont_cares_come_first() -> None:
    assert attributes(tree_of(FILTERS, TreeTuning())) == ["y", "x", "z"]


def test_given_attributes_come_before() -> None:
    matcher = tree_of(FILTERS, TreeTuning(order=("z", "nothing")))
    assert attributes(matcher) == ["z", "y", "x"]
    assert matching(matcher, x=1, y=1, z=9, w="key") == ["a", "d"]


def test_an_order_that_is_good_enough_is_kept() -> None:
    matcher = tree_of({f"s{i}": f"x = {i}" for i in range(200)}, TreeTuning())
    assert matcher._index.drifted_order() is None
    first = matcher._index.tree
    for i in range(50):
        matcher.update(f"s{i}", {})
    assert matcher._index.tree is first
