"""The hash table of value branches, compared with a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.arrays import I64
from tidegate.matching.tree.kernels.layout import EMPTY, NONE, S_CHILD, SLOT_WORDS
from tidegate.matching.tree.kernels.slots import drop_child, find_child, move_slots, put_child

KEYS = st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, 2.5, -7.0, 1e300, np.inf]))


def empty(slots: int) -> I64:
    table = np.zeros((slots, SLOT_WORDS), np.int64)
    table[:, S_CHILD] = EMPTY
    return table.ravel()


def bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


@given(st.lists(st.tuples(KEYS, st.booleans()), max_size=40))
def test_children_come_and_go(changes: list[tuple[tuple[int, float], bool]]) -> None:
    table, expected = empty(32), dict[tuple[int, float], int]()
    for child, ((node, value), is_added) in enumerate(changes):
        key = (node, value)
        if is_added and key not in expected:
            put_child(table, node, bits(value), child)
            expected[key] = child
        elif not is_added and key in expected:
            drop_child(table, node, bits(value))
            del expected[key]
    moved = empty(64)
    move_slots(table, moved)
    for node in range(4):
        for value in (0.0, 1.0, 2.5, -7.0, 1e300, np.inf):
            for each in (table, moved):
                assert find_child(each, node, bits(value)) == expected.get((node, value), NONE)
