from __future__ import annotations

import numpy as np

from tidegate.matching.summary.kernels.lists import (
    ABSENT,
    LOOSE,
    append_members,
    clip,
    gather,
    hull,
    remove_term,
)

LOW = np.array([0.0, 5.0, 2.0])
HIGH = np.array([9.0, 6.0, 3.0])
EXACT = np.zeros(3, np.uint8)


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


def test_members_are_clipped_to_a_row() -> None:
    pool, out = np.array([0, 2, 4], np.int32), np.zeros(3, np.int32)
    assert clip(pool, 0, 3, LOW, HIGH, EXACT, 5.0, 6.0, out) == (2, 0)
    assert out[:2].tolist() == [0, 2]
    assert clip(pool, 0, 3, LOW, HIGH, EXACT, 3.0, 7.0, out) == (3, 2)
    assert out.tolist() == [0, 2 | LOOSE, 4 | LOOSE]
    assert clip(pool, 0, 1, LOW, HIGH, np.ones(3, np.uint8), 3.0, 7.0, out) == (1, 0)
    assert out[0] == LOOSE


def test_the_hull_of_members_within_a_row() -> None:
    pool = np.array([2, 4], np.int32)
    assert hull(pool, 0, 2, LOW, HIGH, -1.0, 100.0) == (2.0, 6.0)
    assert hull(pool, 0, 2, LOW, HIGH, 2.5, 5.5) == (2.5, 5.5)
