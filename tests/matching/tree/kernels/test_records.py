"""Records of nodes and paths that are freed and used again."""

from __future__ import annotations

from support.search_trees import arrays_of, tree_of
from support.tree_invariants import check_tree
from tidegate.language.filters import parse
from tidegate.matching.subscription import Subscription
from tidegate.matching.tree.kernels.layout import (
    H_NODES,
    H_NODES_TOP,
    H_PATHS,
    H_PATHS_TOP,
    H_SLOTS,
    NODE_WORDS,
    ROOT,
)
from tidegate.matching.tree.kernels.records import first_leaf, has_room, next_leaf
from tidegate.matching.tree.tuning import TreeTuning

SMALL = TreeTuning(leaf_paths_max=1)


def test_freed_records_are_used_again() -> None:
    matcher = tree_of({f"s{i}": f"x = {i}" for i in range(30)}, SMALL)
    head = arrays_of(matcher).head
    before = head.copy()
    for _ in range(5):
        for i in range(10, 30):
            matcher.remove(f"s{i}")
        matcher.add(Subscription(f"s{i}", parse(f"x = {i}")) for i in range(10, 30))
    head = arrays_of(matcher).head
    for word in (H_NODES, H_NODES_TOP, H_PATHS, H_PATHS_TOP, H_SLOTS):
        assert head[word] == before[word]
    check_tree(matcher._index.tree)


def test_there_is_room_until_the_arrays_are_full() -> None:
    arrays = arrays_of(tree_of({"s": "x = 1"}, SMALL))
    room = len(arrays.node) // NODE_WORDS - int(arrays.head[H_NODES])
    assert has_room(arrays, room, 0)
    assert not has_room(arrays, room + 1, 0)


def test_leaves_are_walked_once_each() -> None:
    matcher = tree_of({f"s{i}": f"x = {i % 4} and y = {i}" for i in range(12)}, SMALL)
    arrays = arrays_of(matcher)
    leaf, seen = int(first_leaf(arrays, ROOT)), []
    while leaf >= 0:
        seen.append(leaf)
        leaf = int(next_leaf(arrays, leaf, ROOT))
    assert len(seen) == len(set(seen)) == 12
