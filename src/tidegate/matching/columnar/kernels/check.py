"""Checking whether an event satisfies an entry, as far as its bounds say.

A constraint `(channel, low, high)` holds if `low <= x <= high`; where low is greater than high it
means the outside, `x >= low or x <= high`. NaN satisfies neither. In a channel of sets the event
has the number of a set, and the constraint holds if `low` is in it; where low is greater than high,
if the number between them is not.

Bounds that move are first checked by their envelopes, which hold for a stretch of time. A value
that lies inside of one by its margin surely satisfies the function, too; a pair of which that
cannot be said is looked at again when all are found (evaluating.py).
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, Int
from tidegate.matching.columnar.kernels.jit import inlined
from tidegate.matching.columnar.kernels.part import (
    BOUND,
    CHANNEL_MASK,
    DEAD,
    E_FIRST,
    E_FLAGS,
    ENTRY,
    ENTRY_NUMBERS,
    GONE,
    MOVING,
    SET,
    UNSURE,
)


@inlined
def satisfied(x: float, low: float, high: float) -> bool:
    """Whether a value satisfies a constraint."""
    if low <= high:
        return x >= low and x <= high
    return x >= low or x <= high


@inlined
def as_probe(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Bounds as floats of 32 bits, rounded away from each other; none pass if none did."""
    if not low <= high:
        return np.float32(np.inf), np.float32(-np.inf)
    below, above = np.float32(low), np.float32(high)
    if below > low:
        below = np.nextafter(below, np.float32(-np.inf))
    if above < high:
        above = np.nextafter(above, np.float32(np.inf))
    return below, above


@inlined
def in_set(x: float, low: float, high: float, set_first: I32, set_value: F64) -> bool:
    """Whether a set satisfies a constraint."""
    if np.isnan(x):
        return False
    wanted = low if low <= high else low - 1.0
    begin, end = np.int64(set_first[np.int64(x)]), np.int64(set_first[np.int64(x) + 1])
    while begin < end:
        middle = (begin + end) >> 1
        if set_value[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    found = begin < set_first[np.int64(x) + 1] and set_value[begin] == wanted
    return bool(found == (low <= high))


# Numba counts references whenever it hands on a tuple of arrays or a view, which in the innermost
# loops would cost more than the work. So a part is taken apart once, before the loops begin, and
# what is called inside of them gets each array by itself. For the same reason functions of time are
# evaluated in a loop of their own, later: with a call to the machine that runs them in these loops,
# each pair took three times as long, even where nothing had to be run.


@inlined
def take_apart(at: I64, i32: I32, f64: F64) -> tuple[I32, F64, I64, F32]:
    """What is checked of a packed part: its entries, and its bounds as floats, as the integers that
    stand among them, and as the floats of 32 bits that do."""
    entries = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    bound = f64[at[2 * BOUND] : at[2 * BOUND + 1]]
    return entries, bound, bound.view(np.int64), bound.view(np.float32)


@inlined
def check_bounds(
    entry: Int,
    numbers: I32,
    bound: F64,
    bound_channel: I64,
    margins: F32,
    events: F64,
    event: Int,
    set_first: I32,
    set_value: F64,
) -> Int:
    """The flags of an entry whose bounds an event satisfies; -1 if it does not.

    UNSURE is among them if the event may still not satisfy the functions of the entry.
    """
    at = ENTRY_NUMBERS * np.int64(entry)
    flags = np.int64(numbers[at + E_FLAGS])
    if flags & (DEAD | GONE):
        return -1
    place = 3 * np.int64(numbers[at + E_FIRST])
    last = 3 * np.int64(numbers[at + ENTRY_NUMBERS + E_FIRST])
    sure = True
    while place < last:
        channel = bound_channel[place + 2] & CHANNEL_MASK
        low, high = bound[place], bound[place + 1]
        if channel & SET:
            if not in_set(events[event, channel ^ SET], low, high, set_first, set_value):
                return -1
        else:
            x = events[event, channel]
            if not satisfied(x, low, high):
                return -1
            if flags & MOVING:
                # without branches, because what is near a bound cannot be predicted
                margin = margins[2 * place + 5]
                sure &= (margin == 0.0) | ((x >= low + margin) & (x <= high - margin))
        place += 3
    return flags if sure else flags | UNSURE
