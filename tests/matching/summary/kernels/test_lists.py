from __future__ import annotations

import numpy as np

from tidegate.matching.summary.kernels.lists import (
    ABSENT,
    LOOSE,
    append_members,
    gather,
    remove_term,
)


def test_appending_stops_at_a_full_list() -> None:
    pool = np.zeros(4, np.int32)
    start, length = np.array([0, 2]), np.array([1, 2], np.int32)
    capacity = np.array([2, 2], np.int32)
    lists, members = np.array([0, 1]), np.array([7, 9], np.int32)
    assert append_members(pool, start, length, capacity, lists, members, 0) == 1
    assert (pool.tolist(), length.tolist()) == ([0, 7, 0, 0], [2, 2])


def test_removing_puts_the_last_member_in_the_place() -> None:
    pool = np.array([2, 5, 6, 8], np.int32)
    start, length = np.array([0, 3]), np.array([3, 1], np.int32)
    bits = np.zeros(2, np.uint8)
    remove_term(pool, start, length, np.array([0, 1]), 1, bits)
    assert (pool[:2].tolist(), length.tolist()) == ([6, 5], [2, 1])
    assert bits.tolist() == [0, ABSENT]
    remove_term(pool, start, length, np.array([0]), 2, bits[:1])
    assert bits.tolist() == [LOOSE, ABSENT]
    out = np.zeros(2, np.int32)
    gather(pool, start, length, np.array([1, 0]), out)
    assert out.tolist() == [4, 3]
