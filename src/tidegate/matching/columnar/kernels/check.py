"""Checking whether an event satisfies an entry, as far as its bounds can tell: the innermost loop.

A constraint `(channel, low, high)` has one of these forms:

    low <= high     the inside: low <= x <= high. An equality has low == high.
    low > high      the outside: x >= low or x <= high. `x != 5` is (after 5, before 5).
    NaN             nothing satisfies it.

An event without a value has NaN, which satisfies none of them. In a channel of sets the event has
the number of a set. `(n, n)` requires that n is a member; the outside, `(n + 1, n - 1)`, that it is
not.

Bounds that move are checked by their envelopes, which hold for a time window. A value that lies
inside of an envelope by its margin satisfies the function at all times of the window; if it does
not, the pair is UNSURE, and evaluate.py looks at it again when all pairs are found.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, Int
from tidegate.matching.columnar.kernels.jit import inlined
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BEGIN,
    BOUND_WORDS,
    CHANNEL_MASK,
    DEAD,
    E_FIRST,
    E_FLAGS,
    END,
    ENTRY_WORDS,
    GONE,
    MOVING,
    SET,
    UNSURE,
    margin_at,
)


@inlined
def satisfied(x: float, low: float, high: float) -> bool:
    """Whether a value satisfies a constraint."""
    if low <= high:
        return x >= low and x <= high
    return x >= low or x <= high


@inlined
def as_probe(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Bounds as floats of 32 bits, rounded outwards: what passed still passes.

    If nothing passed, nothing does: the bounds are then +infinity and -infinity.
    """
    if not low <= high:
        return np.float32(np.inf), np.float32(-np.inf)
    # conversion rounds to nearest, so each side may be a step too narrow
    below, above = np.float32(low), np.float32(high)
    if below > low:
        below = np.nextafter(below, np.float32(-np.inf))
    if above < high:
        above = np.nextafter(above, np.float32(np.inf))
    return below, above


@inlined
def in_set(x: float, low: float, high: float, set_first: I32, set_value: F64) -> bool:
    """Whether a set satisfies a constraint, by bisection of its members."""
    if np.isnan(x):
        return False
    # of the outside, `(n + 1, n - 1)`, n itself is wanted
    wanted = low if low <= high else low - 1.0
    # bisection, because a string may satisfy many patterns
    begin, end = np.int64(set_first[np.int64(x)]), np.int64(set_first[np.int64(x) + 1])
    while begin < end:
        middle = (begin + end) >> 1
        if set_value[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    is_member = begin < set_first[np.int64(x) + 1] and set_value[begin] == wanted
    return bool(is_member == (low <= high))


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
