"""Envelopes of moving bounds: static bounds that enclose them during a time window.

A bound that is a function of time would have to be evaluated for every event. To keep most events
from coming near it, the entry also has a static constraint on the same channel, its *envelope*: all
values that its moving constraints can let pass at any time of the window. The envelope is computed
by interval arithmetic (program_intervals.py), is written where the bounds of static filters are,
and has bits in the same bitmaps. It is computed again when time leaves the window. So an evolving
filter costs an event what a static one costs, and its function is evaluated for the few entries
that are left. Not even for all of those: an envelope has a *margin*, and a value that lies inside
of it by that much passes at every time of the window.

    values      low                sure_low        sure_high                high
                 |------ margin ------|                |---- <= margin ------|
    envelope     [ may pass           [ surely passes  ]            may pass ]

One margin serves both sides, as the larger of the two distances; so it fits into the word of the
channel (columnar/kernels/part.py), and a constraint stays three words.

Rounding. The envelope may be too wide, never too narrow; what is sure may be too narrow, never too
wide. So a margin is rounded up, and by one step more, because the check adds it with a rounding of
its own. A margin of infinity says that nothing is sure.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, NO_TIME, Int
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.kernels.jit import inlined, lean_inlined
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
from tidegate.matching.rows.kernels.program_intervals import (
    line_over,
    run_program_over,
    shifted_by,
)
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    C_NOT_EQUAL,
)

W_BEGIN, W_END, W_TIMELESS = range(3)
"""The times of a window as an array: the first and the last in microseconds, and whether events
without a time belong to it. If no others do, the first is greater than the last."""


class WindowArrays(NamedTuple):
    """A time window as a kernel is given it: its times, and the range of each variable.

    Without times there is no window yet, and envelopes are not written. ``variables`` has two rows,
    the least and the greatest values; they are the wrong way round for a variable without a value.
    """

    times: I64
    variables: F64


SURE_MAX = EXACT_MAX - 1
"""Bounds from this on are never sure: an integer of an event may have been rounded to them."""


@inlined
def elapsed(begin: Int, end: Int, timeless: Int, since: Int, pin: Int) -> tuple[float, float]:
    """The range of `t` in a time window, for a motion with ``since`` and ``pin``.

    `t` grows with the time of an event, however it is pinned, so its ends are those of the window.
    An event without a time has a `t` of 0.
    """
    if since == NO_TIME or begin > end:
        return 0.0, 0.0
    low = np.float64(judged_at(begin, since, pin) - since) / 1e6
    high = np.float64(judged_at(end, since, pin) - since) / 1e6
    if timeless:
        return min(low, 0.0), max(high, 0.0)
    return low, high


@lean_inlined
def envelope(
    motion: F64,
    begin: Int,
    end: Int,
    program: I32,
    programs_at: Int,
    channel: Int,
    window: WindowArrays,
    stack: F64,
) -> tuple[float, float, float, float]:
    """The envelope of an entry's moving constraints on a channel, and the values that surely pass.

    The motion of the entry is from ``begin`` to ``end``; the programs begin at ``programs_at`` of
    ``program``. Returns low, high, sure_low, sure_high. If sure_low is greater than sure_high,
    nothing is sure. The envelope is never a single value, which would be taken for an equality.
    ``stack`` is scratch space of INTERVAL_STACK floats.
    """
    low, high = -np.inf, np.inf
    sure_low, sure_high = -np.inf, np.inf
    words = motion.view(np.int64)
    t_low, t_high = elapsed(
        window.times[W_BEGIN], window.times[W_END], window.times[W_TIMELESS],
        words[begin + M_SINCE], words[begin + M_PIN],
    )  # fmt: skip
    # ``before`` is the last SHIFTED record that was run, or ``begin`` for none
    place, before = begin + MOTION_WORDS, begin
    shift_low, shift_high, shift_surely = 0.0, 0.0, False
    while place < end:
        head = words[place + R_HEAD]
        comparison = comparison_of(head)
        if channel_of(head) == channel:
            code, constants = words[place + R_PROGRAM], place + R_CONSTANTS
            is_shifted = code != LINEAR and code & SHIFTED
            # the two bounds of a range usually share f(t), so it is computed for the first one only
            if is_shifted and (before == begin or not is_same_shift(words, before, place)):
                before = place
                shift_low, shift_high, shift_surely = run_program_over(
                    program, programs_at + (code ^ SHIFTED), motion, constants + 1, t_low, t_high,
                    window.variables, stack,
                )  # fmt: skip
            if code == LINEAR:
                least, most, surely = line_over(
                    float(motion[constants]), float(motion[constants + 1]), t_low, t_high
                )
            elif is_shifted:
                least, most, surely = shifted_by(
                    float(motion[constants]), shift_low, shift_high, shift_surely
                )
            else:
                least, most, surely = run_program_over(
                    program, programs_at + code, motion, constants, t_low, t_high,
                    window.variables, stack,
                )  # fmt: skip
            if least > most:
                low = np.inf  # never defined: nothing passes
            # What may pass needs only the most favourable value of the bound, and what surely
            # passes the least favourable one. Strict comparisons are as the others in the envelope,
            # which may be too wide.
            if comparison in (C_EQUAL, C_GREATER, C_GREATER_EQUAL):
                low = max(low, least)
                sure_low = max(sure_low, most)
            if comparison in (C_EQUAL, C_LESS, C_LESS_EQUAL):
                high = min(high, most)
                sure_high = min(sure_high, least)
            if comparison == C_GREATER:
                sure_low = max(sure_low, np.nextafter(most, np.inf))
            if comparison == C_LESS:
                sure_high = min(sure_high, np.nextafter(least, -np.inf))
            if comparison == C_NOT_EQUAL or not surely:
                sure_low = np.inf
        place += length_of(head)
    if low >= high:
        # A single value or none: the smallest interval that begins there. Equal bounds would be the
        # key of a cluster when the part is laid out again, and bounds the wrong way round would be
        # the outside.
        low = min(low, np.finfo(np.float64).max)
        high = np.nextafter(low, np.inf)
    return low, high, sure_low, sure_high


@inlined
def margin_of(low: float, high: float, sure_low: float, sure_high: float) -> np.float32:
    """How far inside of an envelope a value must lie to pass surely; infinity if none does.

    0 means that whatever lies in the envelope passes.
    """
    none = np.float32(np.inf)
    # also for NaN, which compares as false
    if not sure_low <= sure_high:
        return none
    if (sure_low != -np.inf and abs(sure_low) >= SURE_MAX) or (
        sure_high != np.inf and abs(sure_high) >= SURE_MAX
    ):
        return none
    # ends that are infinite on both sides have no distance; infinity minus infinity would be NaN
    margin = max(
        sure_low - low if sure_low > low else 0.0, high - sure_high if sure_high < high else 0.0
    )
    if margin == 0.0:
        return np.float32(0.0)
    # to 32 bits rounds to nearest, so one step up; and one more for the sums of the check
    wide: np.float32 = np.nextafter(np.nextafter(np.float32(margin), none), none)
    if low + wide >= sure_low and high - wide <= sure_high:
        return wide
    return none  # the bounds are so large that even that is lost in rounding
