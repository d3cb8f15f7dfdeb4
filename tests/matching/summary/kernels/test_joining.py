from __future__ import annotations

import numpy as np

from tidegate.matching.summary.kernels.joining import count_common, unite

POOL = np.array([0, 2, 4, 3, 5, 8], np.int32)  # terms 0 1 2 | 1 2 | 4
START, LENGTH = np.array([0, 3, 5]), np.array([3, 2, 1], np.int32)


def test_common_terms_of_neighbours() -> None:
    marks, common = np.full(5, -1), np.zeros(2, np.int64)
    count_common(POOL, START, LENGTH, np.array([0, 1, 2]), marks, common)
    assert common.tolist() == [2, 0]
    marks.fill(-1)
    count_common(POOL, START, LENGTH, np.array([2, 0]), marks, common)
    assert common[0] == 0


def test_the_union_has_each_term_once() -> None:
    out = np.zeros(5, np.int32)
    count = unite(POOL, START, LENGTH, 0, 1, np.full(5, -1), 9, out)
    assert sorted(member >> 1 for member in out[:count].tolist()) == [0, 1, 2]
