from __future__ import annotations

import numpy as np

from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.kernels.spreading import fill_pieces, measure_pieces

LOW = np.array([0.0, 5.0, 2.0])
HIGH = np.array([9.0, 6.0, 3.0])
EXACT = np.zeros(3, np.uint8)

Piece = tuple[float, float, list[int], int]


def spread(members: list[int], pieces: list[tuple[float, float]]) -> list[Piece]:
    """The pieces that are needed: hull, members, and how many of these do not contain it."""
    terms = np.array(members, np.int32) << 1
    lows, highs = np.array(pieces, np.float64).T.copy()
    firsts, lasts, counts = np.empty(len(lows)), np.empty(len(lows)), np.empty(len(lows), np.int64)
    measure_pieces(terms, LOW, HIGH, lows, highs, firsts, lasts, counts)
    needed = counts > 0
    firsts, lasts, ends = firsts[needed], lasts[needed], np.cumsum(counts[needed])
    begins, partial = ends.copy(), np.zeros(len(ends), np.int64)
    out = np.zeros(counts.sum(), np.int32)
    fill_pieces(terms, LOW, HIGH, EXACT, firsts, lasts, begins, partial, out)
    assert begins.tolist() == [0, *ends[:-1].tolist()]
    return [
        (firsts[i], lasts[i], sorted(out[begins[i] : ends[i]].tolist()), int(partial[i]))
        for i in range(len(ends))
    ]


def test_a_piece_gets_the_members_that_need_it() -> None:
    assert spread([0, 1, 2], [(0, 4), (4.5, 7)]) == [
        (0, 4, [0, 4 | LOOSE], 1),
        (4.5, 7, [0, 2 | LOOSE], 1),
    ]


def test_a_piece_is_cut_down_to_what_is_needed() -> None:
    assert spread([1, 2], [(0, 4), (4.5, 4.8), (5, 5), (5.5, 9)]) == [
        (2, 3, [4], 0),
        (5, 5, [2], 0),
        (5.5, 6, [2], 0),
    ]


def test_what_is_loose_by_itself_stays_so() -> None:
    begins, partial, out = np.array([1]), np.zeros(1, np.int64), np.zeros(1, np.int32)
    one = np.ones(3, np.uint8)
    ends = np.array([0.0]), np.array([9.0])
    fill_pieces(np.array([0], np.int32), LOW, HIGH, one, *ends, begins, partial, out)
    assert (out.tolist(), partial.tolist()) == ([LOOSE], [0])
