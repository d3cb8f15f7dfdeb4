"""Checking whether an event satisfies an entry: its bounds, and its functions of time.

A constraint `(channel, low, high)` holds if `low <= x <= high`; where low is greater than high it
means the outside, `x >= low or x <= high`. NaN satisfies neither. In a channel of sets the event
has the number of a set, and the constraint holds if `low` is in it; where low is greater than high,
if the number between them is not.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.compiling import inlined
from tidegate.matching.parts import (
    BOUND,
    DEAD,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    F64,
    GONE,
    I32,
    I64,
    MOTION,
    NO_TIME,
    PROGRAM,
    SET,
    VERIFY,
    Int,
)
from tidegate.matching.programs import (
    HEAD_WORDS,
    LINEAR,
    M_HOLD,
    M_SINCE,
    M_SURE_HIGH,
    M_SURE_LOW,
    MOTION_WORDS,
    channel_of,
    compare,
    comparison_of,
    judged_at,
    length_of,
    run_program,
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
# what is called inside of them gets each array by itself. For the same reason bounds and motion are
# checked by two calls: one function that was handed the arrays of both took three times as long.


@inlined
def take_apart(at: I64, i32: I32, f64: F64) -> tuple[I32, F64, I64, F64, I64, I32]:
    """What is checked of a packed part: its entries, bounds, motions and programs.

    Bounds and motions are there twice, as floats and as the integers that stand among them.
    """
    entries = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    bound = f64[at[2 * BOUND] : at[2 * BOUND + 1]]
    motion = f64[at[2 * MOTION] : at[2 * MOTION + 1]]
    program = i32[at[2 * PROGRAM] : at[2 * PROGRAM + 1]]
    return entries, bound, bound.view(np.int64), motion, motion.view(np.int64), program


@inlined
def check_bounds(
    entry: Int,
    numbers: I32,
    bound: F64,
    bound_channel: I64,
    events: F64,
    event: Int,
    set_first: I32,
    set_value: F64,
) -> Int:
    """The flags of an entry whose bounds an event satisfies; -1 if it does not."""
    at = ENTRY_NUMBERS * np.int64(entry)
    flags = np.int64(numbers[at + E_FLAGS])
    if flags & (DEAD | GONE):
        return -1
    place = 3 * np.int64(numbers[at + E_FIRST])
    last = 3 * np.int64(numbers[at + ENTRY_NUMBERS + E_FIRST])
    while place < last:
        channel = bound_channel[place + 2]
        if channel & SET:
            x = events[event, channel ^ SET]
            if not in_set(x, bound[place], bound[place + 1], set_first, set_value):
                return -1
        elif not satisfied(events[event, channel], bound[place], bound[place + 1]):
            return -1
        place += 3
    return flags


@inlined
def check_motion(
    flags: Int,
    entry: Int,
    numbers: I32,
    motion: F64,
    words: I64,
    program: I32,
    events: F64,
    event: Int,
    micros: Int,
    variables: F64,
    stack: F64,
) -> Int:
    """The flags of an entry whose moving bounds an event satisfies too; -1 if it does not.

    ``variables`` has a row for each event, or one for all.
    """
    t = 0.0
    begin = np.int64(numbers[ENTRY_NUMBERS * entry + E_MOTION])
    end = np.int64(numbers[ENTRY_NUMBERS * entry + ENTRY_NUMBERS + E_MOTION])
    since = words[begin + M_SINCE]
    if micros != NO_TIME and since != NO_TIME:
        t = np.float64(judged_at(micros, since, words[begin + M_HOLD]) - since) / 1e6
    row = min(event, variables.shape[0] - 1)
    place = begin + MOTION_WORDS
    value = events[event, channel_of(words[place])]
    if value >= motion[begin + M_SURE_LOW] and value <= motion[begin + M_SURE_HIGH]:
        place = end
    while place < end and flags >= 0:
        head = words[place]
        value = events[event, channel_of(head)]
        constants = place + HEAD_WORDS
        if words[place + 1] == LINEAR:
            bound = motion[constants] + motion[constants + 1] * t
        else:
            bound = run_program(
                program, words[place + 1], motion, constants, t, variables, row, stack
            )
        if np.isnan(bound) or np.isnan(value):
            flags = np.int64(-1)
        elif abs(value) >= EXACT_MAX:
            flags |= VERIFY
        elif not compare(comparison_of(head), value, bound):
            flags = np.int64(-1)
        place += length_of(head)
    return flags
