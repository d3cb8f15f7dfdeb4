"""Links of subscriptions: more than a word of them, and those of another tree."""

from __future__ import annotations

from support.search_trees import tree_of
from support.tree_invariants import check_tree
from tidegate.language.events import Event
from tidegate.matching.subscription import Moment
from tidegate.matching.tree.search_tree import SearchTree
from tidegate.matching.tree.tuning import TreeTuning


def test_more_than_64_links() -> None:
    filters = {f"s{i}": f"x = {i % 10}" for i in range(200)}
    matcher = tree_of(filters, TreeTuning(leaf_paths_max=2))
    for i in range(200):
        matcher.set_links(f"s{i}", 1 << i)
    found = matcher.match_links(Event.of({"x": 3}), Moment(), (1 << 200) - 1)
    assert found.links == sum(1 << i for i in range(3, 200, 10))
    check_tree(matcher._index.tree)


def test_links_are_set_changed_and_taken_away() -> None:
    matcher = tree_of({"a": "x = 1 or y = 1", "b": "x = 1"}, TreeTuning(leaf_paths_max=1))
    links, number = matcher._index.tree.links, matcher._table.number("a")
    for each in (0b101, 1 << 70, 0):
        matcher.set_links("a", each)
        assert links.of(number) == each
        assert matcher.match_links(Event.of({"y": 1}), Moment(), 1 << 70 | 0b100).links == (
            each & ~1
        )
        check_tree(matcher._index.tree)


def test_another_tree_takes_the_links_over() -> None:
    matcher = tree_of({f"s{i}": f"x = {i % 3} and y = {i}" for i in range(30)}, TreeTuning())
    for i in range(30):
        matcher.set_links(f"s{i}", 1 << 3 * i)
    before = matcher._index.tree
    after = SearchTree(before.storage.order, TreeTuning(leaf_paths_max=2))
    after.place(after.add(before.records.take_out()))
    after.links.take_over(before.links)
    assert [after.links.of(n) for n in range(30)] == [before.links.of(n) for n in range(30)]
    assert after.storage.link_words == 2
    check_tree(after)
