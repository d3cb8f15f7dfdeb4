"""Evaluating functions of time, for the pairs of which bounds alone do not say enough.

The kernels that find pairs mark those UNSURE whose values lie between what a function can be and
what it surely is in a stretch of time. Here the functions of these are evaluated, exactly as the
language says, and the pairs that do not match are left out.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.compiling import inlined, lean
from tidegate.matching.parts import (
    E_MOTION,
    E_SUBSCRIPTION,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    F64,
    I32,
    I64,
    MOTION,
    NO_TIME,
    PROGRAM,
    U8,
    UNSURE,
    VERIFY,
    Int,
)
from tidegate.matching.programs import (
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


@lean
def evaluate_unsure(
    at: I64,
    i32: I32,
    f64: F64,
    events: F64,
    micros: I64,
    variables: F64,
    stack: F64,
    count: Int,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Leave out the pairs that are unsure and do not match; these have entries for subscriptions.

    Gives how many pairs are left, in the same order, and all flags seen.
    """
    numbers = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    motion = f64[at[2 * MOTION] : at[2 * MOTION + 1]]
    program = i32[at[2 * PROGRAM] : at[2 * PROGRAM + 1]]
    words = motion.view(np.int64)
    kept, seen = np.int64(0), np.int64(0)
    for index in range(count):
        flags, event = np.int64(out_flags[index]), out_event[index]
        subscription = out_subscription[index]
        if flags & UNSURE:
            entry = ENTRY_NUMBERS * np.int64(subscription)
            flags = check_functions(
                flags ^ UNSURE, np.int64(numbers[entry + E_MOTION]),
                np.int64(numbers[entry + ENTRY_NUMBERS + E_MOTION]), motion, words, program,
                events, event, micros[event], variables, stack,
            )  # fmt: skip
            subscription = numbers[entry + E_SUBSCRIPTION]
        if flags >= 0:
            out_event[kept] = event
            out_subscription[kept] = subscription
            out_flags[kept] = flags
            seen |= flags
            kept += 1
    return kept, seen


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
    micros: Int,
    variables: F64,
    stack: F64,
) -> Int:
    """The flags of a pair of which the functions in a motion hold; -1 if one does not.

    ``variables`` has a row for each event, or one for all.
    """
    t = 0.0
    since = words[begin + M_SINCE]
    if micros != NO_TIME and since != NO_TIME:
        t = np.float64(judged_at(micros, since, words[begin + M_HOLD]) - since) / 1e6
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
