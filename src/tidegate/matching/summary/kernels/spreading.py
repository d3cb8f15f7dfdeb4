"""Which members of a row are members of the pieces that take its place.

A piece is a range within the row. It gets the terms that have values in common with it, and is cut
down to the hull of these values.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U8
from tidegate.matching.rows.kernels.jit import kernel
from tidegate.matching.summary.kernels.lists import LOOSE


@kernel
def measure_pieces(
    members: I32, term_low: F64, term_high: F64, lows: F64, highs: F64,
    firsts: F64, lasts: F64, counts: I64,
) -> None:  # fmt: skip
    """For each piece, in ascending order, its first and last value needed, and its members."""
    for piece in range(len(lows)):
        firsts[piece], lasts[piece], counts[piece] = highs[piece], lows[piece], 0
    for member in members:
        low, high = term_low[member >> 1], term_high[member >> 1]
        piece = np.searchsorted(highs, low)
        while piece < len(lows) and lows[piece] <= high:
            firsts[piece] = min(firsts[piece], max(low, lows[piece]))
            lasts[piece] = max(lasts[piece], min(high, highs[piece]))
            counts[piece] += 1
            piece += 1


@kernel
def fill_pieces(
    members: I32, term_low: F64, term_high: F64, term_loose: U8, firsts: F64, lasts: F64,
    ends: I64, partial: I64, out: I32,
) -> None:  # fmt: skip
    """Write the members of each piece, with their bits, before its ``ends``.

    The pieces are cut down already, and all have members. ``ends`` becomes where each piece begins;
    ``partial`` gets the number of its members that do not contain it.
    """
    for member in members:
        term = member >> 1
        low, high = term_low[term], term_high[term]
        piece = np.searchsorted(lasts, low)
        while piece < len(firsts) and firsts[piece] <= high:
            within = low <= firsts[piece] and lasts[piece] <= high
            partial[piece] += not within
            ends[piece] -= 1
            out[ends[piece]] = term << 1 | (term_loose[term] if within else LOOSE)
            piece += 1
