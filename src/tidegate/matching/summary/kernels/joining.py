"""What two neighbouring rows of a range table have in common."""

from __future__ import annotations

from tidegate.matching.arrays import I32, I64
from tidegate.matching.rows.kernels.jit import kernel


@kernel
def count_common(pool: I32, start: I64, length: I32, lists: I64, marks: I64, common: I64) -> None:
    """How many terms each list has in common with the next one.

    ``marks`` has an element for each term, none of which is a number of a row.
    """
    for row in range(len(lists)):
        each = lists[row]
        shared = 0
        for place in range(start[each], start[each] + length[each]):
            term = pool[place] >> 1
            shared += row > 0 and marks[term] == row - 1
            marks[term] = row
        if row > 0:
            common[row - 1] = shared


@kernel
def unite(
    pool: I32, start: I64, length: I32, one: int, other: int, marks: I64, mark: int, out: I32
) -> int:
    """Write the members of two lists, each term once; returns how many. No term has the mark."""
    filled = 0
    for each in (one, other):
        for place in range(start[each], start[each] + length[each]):
            term = pool[place] >> 1
            if marks[term] != mark:
                marks[term] = mark
                out[filled] = pool[place]
                filled += 1
    return filled
