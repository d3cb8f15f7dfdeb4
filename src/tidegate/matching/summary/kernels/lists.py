"""Lists of members in one pool: the ids at the rows of a summary.

A member is the number of a term (one interval or pattern of a constraint, see `member_lists.py`)
shifted by one bit, and in that bit whether the row is wider than the term: LOOSE. List l is
``pool[start[l] : start[l] + length[l]]``, in no order, with room for ``capacity[l]``. So a member
is added at the end, and removed by putting the last one in its place.
"""

from __future__ import annotations

from tidegate.matching.arrays import I32, I64, U8, Int
from tidegate.matching.rows.kernels.jit import kernel

LOOSE = 1
"""The bit of a member whose row has values that its term has not."""

ABSENT = 2
"""In place of the bit of a member: it was not in the list."""


@kernel
def append_members(
    pool: I32, start: I64, length: I32, capacity: I32, lists: I64, members: I32, done: Int
) -> int:
    """Append ``members[i]`` to ``lists[i]`` from i = ``done`` on.

    Returns the first i whose list is full, or the number of lists.
    """
    for i in range(done, len(lists)):
        each = lists[i]
        if length[each] == capacity[each]:
            return i
        pool[start[each] + length[each]] = members[i]
        length[each] += 1
    return len(lists)


@kernel
def remove_term(pool: I32, start: I64, length: I32, lists: I64, term: Int, bits: U8) -> None:
    """Remove a term from some lists; ``bits`` gets the bit of each member, or ABSENT."""
    for i in range(len(lists)):
        each = lists[i]
        begin = start[each]
        end = begin + length[each]
        bits[i] = ABSENT
        for place in range(begin, end):
            if pool[place] >> 1 == term:
                bits[i] = pool[place] & LOOSE
                pool[place] = pool[end - 1]
                length[each] -= 1
                break


@kernel
def gather(pool: I32, start: I64, length: I32, lists: I64, out: I32) -> None:
    """Write the terms of some lists one after the other."""
    filled = 0
    for each in lists:
        for place in range(start[each], start[each] + length[each]):
            out[filled] = pool[place] >> 1
            filled += 1
