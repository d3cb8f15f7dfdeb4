"""The arrays of a tree grow and keep what is in them."""

from __future__ import annotations

import numpy as np

from tidegate.matching.tree.kernels.layout import (
    AS_VALUE,
    ENTRY_WORDS,
    H_LINK_WORDS,
    H_NODES,
    NODE_WORDS,
    NONE,
    ROOT,
    TEST_COUNTS,
)
from tidegate.matching.tree.kernels.records import new_leaf
from tidegate.matching.tree.kernels.slots import find_child
from tidegate.matching.tree.storage import FIRST_NODES, TreeStorage, grown
from tidegate.matching.tree.tuning import TreeTuning


def bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def test_a_new_tree_is_one_leaf_with_levels_in_order() -> None:
    storage = TreeStorage([4, 1], TreeTuning())
    assert storage.arrays.head[H_NODES] == 1
    assert storage.order == [4, 1]
    assert storage.arrays.level_of.tolist() == [NONE, 1, NONE, NONE, 0]


def test_new_channels_get_the_next_levels_and_statistics() -> None:
    storage = TreeStorage([2], TreeTuning())
    storage.arrays.tests[TEST_COUNTS * 2] = 7
    storage.arrays.extent[4:6] = [-1, 1]
    storage.number_levels(np.array([2, 9, 3], np.int32))
    assert storage.order == [2, 9, 3]
    assert storage.arrays.tests[TEST_COUNTS * 2] == 7
    assert storage.arrays.extent[4:8].tolist() == [-1, 1, np.inf, -np.inf]
    assert len(storage.arrays.extent) >= 2 * 10
    assert len(storage.arrays.tests) >= TEST_COUNTS * 10


def test_children_are_found_after_the_nodes_have_grown() -> None:
    storage = TreeStorage([0], TreeTuning())
    made = {
        value: int(new_leaf(storage.arrays, ROOT, AS_VALUE, value, 1, NONE))
        for value in np.arange(FIRST_NODES - 1) / 2
    }
    storage.grow_nodes()
    assert len(storage.arrays.node) == 2 * NODE_WORDS * FIRST_NODES
    for value, child in made.items():
        assert find_child(storage.arrays.slot, ROOT, bits(value)) == child


def test_room_for_entries_and_their_links() -> None:
    storage = TreeStorage([0], TreeTuning())
    assert storage.reserve_links(1)
    storage.reserve(10, 30, 50)
    storage.arrays.links[:10] = np.arange(10)
    assert len(storage.arrays.entry) >= 10 * ENTRY_WORDS
    assert not storage.reserve_links(1)
    assert storage.reserve_links(2)
    assert storage.link_words == storage.arrays.head[H_LINK_WORDS] == 2
    assert storage.arrays.links[:20].tolist() == [each for n in range(10) for each in (n, 0)]
    assert len(storage.arrays.may) == 2 * FIRST_NODES


def test_an_array_grows_at_least_to_twice_its_length() -> None:
    array = np.arange(4)
    assert grown(array, 3) is array
    assert grown(array, 5, fill=-1).tolist() == [0, 1, 2, 3, -1, -1, -1, -1]
    assert len(grown(array, 100)) == 100
