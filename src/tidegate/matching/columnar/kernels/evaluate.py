"""Evaluating functions of time, for the pairs of which bounds alone do not say enough.

The kernels that find pairs mark those UNSURE whose values lie between what a function can be and
what it surely is in a stretch of time. Here the functions of these are evaluated, exactly as the
language says, and the pairs that do not match are left out.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, NO_TIME, U8, Int
from tidegate.matching.columnar.kernels.jit import inlined, lean
from tidegate.matching.columnar.kernels.part import (
    E_MOTION,
    E_SUBSCRIPTION,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    GONE,
    MOTION,
    PROGRAM,
    UNSURE,
    VERIFY,
)
from tidegate.matching.columnar.kernels.programs import (
    HEAD_WORDS,
    LINEAR,
    M_HOLD,
    M_SINCE,
    MOTION_WORDS,
    SHIFTED,
    channel_of,
    compare,
    comparison_of,
    is_same_shift,
    judged_at,
    length_of,
    run_program,
)

BLOCK_PAIRS = 4096
"""So many pairs are gone through at a time."""
_LINE_WORDS = 8
"""Words in a line of memory."""


@lean
def evaluate_unsure(
    at: I64,
    i32: I32,
    f64: F64,
    events: F64,
    times_us: I64,
    variables: F64,
    stack: F64,
    chosen: I32,
    pair_event: I32,
    pair_subscription: I32,
    pair_flags: U8,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Copy the pairs that match; those that are unsure have entries in place of subscriptions.

    Gives how many they are, in the same order, and all flags seen. ``chosen`` is room for the pairs
    of a block.
    """
    numbers = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    motion = f64[at[2 * MOTION] : at[2 * MOTION + 1]]
    program = i32[at[2 * PROGRAM] : at[2 * PROGRAM + 1]]
    words = motion.view(np.int64)
    kept, seen = np.int64(0), np.int64(0)
    for block in range(0, len(out_flags), BLOCK_PAIRS):
        stop = min(block + BLOCK_PAIRS, len(out_flags))
        count = np.int64(0)
        for pair in range(block, stop):
            chosen[count] = pair
            count += np.int64((pair_flags[pair] & UNSURE) != 0)
        stack[0] = _read_ahead(chosen, count, pair_subscription, numbers, motion)
        for index in range(count):
            pair = chosen[index]
            entry, event = ENTRY_NUMBERS * np.int64(pair_subscription[pair]), pair_event[pair]
            flags = check_functions(
                np.int64(pair_flags[pair]) ^ UNSURE, np.int64(numbers[entry + E_MOTION]),
                np.int64(numbers[entry + ENTRY_NUMBERS + E_MOTION]), motion, words, program,
                events, event, times_us[event], variables, stack,
            )  # fmt: skip
            pair_subscription[pair] = numbers[entry + E_SUBSCRIPTION]
            pair_flags[pair] = flags if flags >= 0 else GONE
        for pair in range(block, stop):
            flags = np.int64(pair_flags[pair])
            out_event[kept] = pair_event[pair]
            out_subscription[kept] = pair_subscription[pair]
            out_flags[kept] = flags
            matches = np.int64((flags & GONE) == 0)
            seen |= flags * matches
            kept += matches
    return kept, seen


@inlined
def _read_ahead(
    chosen: I32, count: Int, pair_subscription: I32, numbers: I32, motion: F64
) -> float:
    """Read from all motions that are needed, so that memory brings them at the same time.

    They are anywhere. One after the other, each would be waited for.
    """
    read = 0.0
    for index in range(count):
        entry = ENTRY_NUMBERS * np.int64(pair_subscription[chosen[index]])
        begin = np.int64(numbers[entry + E_MOTION])
        last = np.int64(numbers[entry + ENTRY_NUMBERS + E_MOTION]) - 1
        read += motion[begin] + motion[min(begin + _LINE_WORDS, last)]
    return read


@inlined
def check_functions(
    flags: Int,
    begin: Int,
    end: Int,
    motion: F64,
    words: I64,
    program: I32,
    events: F64,
    event: Int,
    time_us: Int,
    variables: F64,
    stack: F64,
) -> Int:
    """The flags of a pair of which the functions in a motion hold; -1 if one does not.

    ``variables`` has a row for each event, or one for all.
    """
    t = 0.0
    since = words[begin + M_SINCE]
    if time_us != NO_TIME and since != NO_TIME:
        t = np.float64(judged_at(time_us, since, words[begin + M_HOLD]) - since) / 1e6
    row = min(event, variables.shape[0] - 1)
    place, before, shift = begin + MOTION_WORDS, begin, 0.0
    while place < end and flags >= 0:
        head = words[place]
        value = events[event, channel_of(head)]
        constants = place + HEAD_WORDS
        if words[place + 1] == LINEAR:
            bound = motion[constants] + motion[constants + 1] * t
        elif words[place + 1] & SHIFTED:
            if before == begin or not is_same_shift(words, before, place):
                shift = run_program(
                    program, words[place + 1] ^ SHIFTED, motion, constants + 1, t, variables, row,
                    stack,
                )  # fmt: skip
                before = place
            bound = motion[constants] + shift
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
