"""The index around the tree: the order of levels, given or chosen."""

from __future__ import annotations

from support.search_trees import kind_of, matching, tree_of, word_of
from support.tree_invariants import check_tree
from tidegate.matching.rows.kernels.cell_kinds import STRING
from tidegate.matching.tree.kernels.layout import EXCLUSIVE, N_CHANNEL, VALUES
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


def test_a_given_attribute_is_factored_by_its_values_whatever_else_is_asked_about_it() -> None:
    """The first level went to its patterns, which no branch can test, and nothing was factored."""
    filters = {f"v{i}": f"y = {i} and w = 'k{i % 20}'" for i in range(100)}
    others = {"pattern": "w starts with 'k' and y = 1", "present": "w is not null and y = 2"}
    matcher = tree_of(others | filters, TreeTuning(order=("w",), factored=1))
    assert attributes(matcher)[:2] == ["w", "y"]
    assert matching(matcher, w="k2", y=2) == ["present", "v2"]
    assert kind_of(matcher) == VALUES | EXCLUSIVE
    assert word_of(matcher, N_CHANNEL) == matcher._channels.numbers["w", STRING]
    check_tree(matcher._index.tree)


def test_an_order_that_is_good_enough_is_kept() -> None:
    matcher = tree_of({f"s{i}": f"x = {i}" for i in range(200)}, TreeTuning())
    assert matcher._index.drifted_order() is None
    first = matcher._index.tree
    for i in range(50):
        matcher.update(f"s{i}", {})
    assert matcher._index.tree is first
