"""Checking whether an event satisfies an entry, as far as its bounds can tell: the innermost loop.

The forms of a constraint are those of `rows/kernels/constraints.py`.

Bounds that move are checked by their envelopes, which hold for a time window. A value that lies
inside of an envelope by its margin satisfies the function at all times of the window; if it does
not, the pair is UNSURE, and evaluate.py looks at it again when all pairs are found.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, Int
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BEGIN,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_FIRST,
    E_FLAGS,
    END,
    ENTRY_WORDS,
    margin_at,
)
from tidegate.matching.rows.kernels.constraints import in_set, satisfied
from tidegate.matching.rows.kernels.flags import DEAD, GONE, MOVING, SET, UNSURE
from tidegate.matching.rows.kernels.jit import inlined

# Why the functions below take arrays one by one: Numba counts references whenever it hands on a
# tuple of arrays or a view, with atomic operations that in these loops cost more than the work. A
# call for each entry that was given the arrays of bounds and motion as a tuple made each pair take
# three times as long. So a part is taken apart once, before the loops begin. The kernels that call
# these cannot be ``lean``, because they allocate.
#
# For the same reason functions of time are evaluated in a loop of their own, later: with a call to
# the machine that runs programs in these loops, each pair took three times as long, even where
# there was no program to run.


@inlined
def take_apart(at: I64, i32: I32, f64: F64) -> tuple[I32, F64, I64, F32]:
    """The entries and the constraints of a packed part.

    The constraints come as three views of one memory: as floats for the bounds, as integers for the
    channels, and as floats of 32 bits for the margins.
    """
    entries = i32[at[BEGIN.entry] : at[END.entry]]
    bound = f64[at[BEGIN.bound] : at[END.bound]]
    return entries, bound, bound.view(np.int64), bound.view(np.float32)


@inlined
def check_bounds(
    entry: Int,
    entries: I32,
    bound: F64,
    bound_bits: I64,
    margins: F32,
    events: F64,
    event: Int,
    set_first: I32,
    set_value: F64,
) -> Int:
    """The flags of an entry if an event satisfies its bounds; -1 if it does not.

    UNSURE is among them if the event may still not satisfy the functions of the entry.
    """
    # int64 before the product: 32 bits would overflow with many entries
    words = ENTRY_WORDS * np.int64(entry)
    flags = np.int64(entries[words + E_FLAGS])
    if flags & (DEAD | GONE):
        return -1
    # from the first constraint of this entry to the first of the next one
    place = BOUND_WORDS * np.int64(entries[words + E_FIRST])
    end = BOUND_WORDS * np.int64(entries[words + ENTRY_WORDS + E_FIRST])
    sure = True
    while place < end:
        channel = bound_bits[place + B_CHANNEL] & CHANNEL_MASK
        low, high = bound[place + B_LOW], bound[place + B_HIGH]
        if channel & SET:
            if not in_set(events[event, channel ^ SET], low, high, set_first, set_value):
                return -1
        else:
            x = events[event, channel]
            if not satisfied(x, low, high):
                return -1
            if flags & MOVING:
                # Without branches, because which values are near a bound cannot be predicted. A
                # margin of 0 is that of a bound that does not move, or of an envelope that is
                # exact; the rounding of the two sums is allowed for by the margin (envelopes.py).
                margin = margins[margin_at(place)]
                sure &= (margin == 0.0) | ((x >= low + margin) & (x <= high - margin))
        place += BOUND_WORDS
    return flags if sure else flags | UNSURE
