from __future__ import annotations

import numpy as np

from tidegate.matching.summary.kernels.counting import count_event

POOL = np.array([0, 2, 1, 4, 6], np.int32)  # terms 0 1 | 0 (loose) 2 | 3
START, LENGTH = np.array([0, 2, 4]), np.array([2, 2, 1], np.int32)
ENTRY_OF = np.array([0, 1, 1, 2], np.int32)
NEEDED = np.array([2, 2, 1], np.int32)


class Scratch:
    def __init__(self) -> None:
        self.seen = np.zeros(3, np.int64)
        self.counted = np.zeros(3, np.int32)
        self.loose = np.zeros(3, np.uint8)
        self.stamp = 1

    def count(self, lists: list[int], ends: list[int]) -> dict[int, bool]:
        found, sure = np.zeros(3, np.int32), np.zeros(3, np.uint8)
        total = count_event(
            POOL, START, LENGTH, ENTRY_OF, NEEDED, np.array(lists, np.int64),
            np.array(ends, np.int64), self.seen, self.counted, self.loose, self.stamp, found, sure,
        )  # fmt: skip
        self.stamp += len(ends) + 1
        return dict(zip(found[:total].tolist(), map(bool, sure[:total].tolist()), strict=True))


def test_an_entry_is_counted_once_for_an_attribute() -> None:
    scratch = Scratch()
    assert scratch.count([0, 2], [2]) == {}
    assert scratch.count([0, 2], [1, 2]) == {0: False, 1: True}
    assert scratch.count([0], [1]) == {}
    assert scratch.count([4], [1]) == {2: True}


def test_a_loose_row_is_not_sure() -> None:
    scratch = Scratch()
    assert scratch.count([4 | 1], [1]) == {2: False}
    assert scratch.count([0, 2 | 1, 4], [1, 2, 3]) == {0: False, 1: False, 2: True}


def test_events_do_not_disturb_each_other() -> None:
    scratch = Scratch()
    for _ in range(3):
        assert scratch.count([0], [1]) == {}
        assert scratch.count([2], [1]) == {}
    assert scratch.count([], []) == {}
