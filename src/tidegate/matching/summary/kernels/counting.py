"""Algorithm 1: the entries all of whose attributes an event satisfies ("Subscription
Summarization", 3.3).

For each attribute of an event there are the lists of the rows that its value lies in. Each member
of a list is counted for its entry, once for an attribute however many of its lists it is in; an
entry whose count reaches the number of attributes in its mask matches. Counters are not cleared
between events: ``seen`` says at which attribute of which event an entry was counted last.
"""

from __future__ import annotations

from tidegate.matching.arrays import I32, I64, U8, Int
from tidegate.matching.rows.kernels.jit import kernel
from tidegate.matching.summary.kernels.lists import LOOSE


@kernel
def count_event(
    pool: I32, start: I64, length: I32, entry_of: I32, needed: I32,
    lists: I64, ends: I64, seen: I64, counted: I32, loose: U8, stamp: Int,
    found: I32, sure: U8,
) -> int:  # fmt: skip
    """Find the entries that an event matches; returns how many.

    ``lists`` are numbers of lists shifted by one bit, which is LOOSE if the whole row is wider than
    what the list stands for; those of attribute a end at ``ends[a]``. No entry was counted with a
    stamp of ``stamp`` or greater before. ``sure`` says for each entry found whether all rows in
    which it was counted are as narrow as its constraints.
    """
    total = 0
    begin = 0
    for attribute in range(len(ends)):
        now = stamp + attribute
        for i in range(begin, ends[attribute]):
            each = lists[i] >> 1
            row_loose = lists[i] & LOOSE
            for place in range(start[each], start[each] + length[each]):
                member = pool[place]
                entry = entry_of[member >> 1]
                if seen[entry] == now:
                    continue
                if seen[entry] < stamp:
                    counted[entry] = 0
                    loose[entry] = 0
                seen[entry] = now
                counted[entry] += 1
                loose[entry] |= member & LOOSE | row_loose
                if counted[entry] == needed[entry]:
                    found[total] = entry
                    total += 1
        begin = ends[attribute]
    for i in range(total):
        sure[i] = loose[found[i]] == 0
    return total
