"""Whether an event satisfies the functions of time of an entry, evaluated as the language says."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, NO_TIME, Int
from tidegate.matching.rows.kernels.flags import EXACT_MAX, VERIFY
from tidegate.matching.rows.kernels.jit import inlined
from tidegate.matching.rows.kernels.motion import (
    LINEAR,
    M_PIN,
    M_SINCE,
    MOTION_WORDS,
    R_CONSTANTS,
    R_HEAD,
    R_PROGRAM,
    SHIFTED,
    channel_of,
    comparison_of,
    is_same_shift,
    judged_at,
    length_of,
)
from tidegate.matching.rows.kernels.programs import compare, run_program


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
    """The flags of a pair if the functions of the entry's motion hold; -1 if one does not.

    The motion is that from ``begin`` to ``end``; ``words`` is the view of it as integers. VERIFY is
    added to the flags where a float cannot decide.
    """
    t = 0.0
    since = words[begin + M_SINCE]
    if time_us != NO_TIME and since != NO_TIME:
        # subtracted as integers: a float of microseconds since 1970 would be coarse
        t = np.float64(judged_at(time_us, since, words[begin + M_PIN]) - since) / 1e6
    row = min(event, variables.shape[0] - 1)
    # ``before`` is the last SHIFTED record that was run, or ``begin`` for none
    place, before, shift = begin + MOTION_WORDS, begin, 0.0
    while place < end and flags >= 0:
        head, program_at = words[place + R_HEAD], words[place + R_PROGRAM]
        value = events[event, channel_of(head)]
        constants = place + R_CONSTANTS
        if program_at == LINEAR:
            bound = motion[constants] + motion[constants + 1] * t
        elif program_at & SHIFTED:
            if before == begin or not is_same_shift(words, before, place):
                shift = run_program(
                    program, program_at ^ SHIFTED, motion, constants + 1, t, variables, row, stack
                )
                before = place
            bound = motion[constants] + shift
        else:
            bound = run_program(program, program_at, motion, constants, t, variables, row, stack)
        # NaN, undefined or absent, satisfies nothing; `!=` would let it pass
        if np.isnan(bound) or np.isnan(value):
            flags = np.int64(-1)
        elif abs(value) >= EXACT_MAX:
            flags |= VERIFY  # the event may have an integer that the float only approximates
        elif not compare(comparison_of(head), value, bound):
            flags = np.int64(-1)
        place += length_of(head)
    return flags
