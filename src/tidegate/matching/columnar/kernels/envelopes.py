"""Bounds that move, held still: what they can be over a stretch of time.

A bound that is a function of time is evaluated exactly whenever an event comes that near. To keep
most events from coming near, the entry also has a still constraint on the same channel, its
envelope: all values that any of its moving constraints can let pass at any time of a stretch. The
envelope is computed by interval arithmetic on the function's program, is written where the bounds
of still filters stand, and has bits in the same bitmaps. It is computed anew when time leaves the
stretch. So a filter that moves costs an event what a still one costs, and the function is evaluated
for the few entries that are left. Not even for all of those: an envelope has a *margin*, and what
lies inside of it by that much passes all through the stretch.

Rule: an envelope may be too wide, never too narrow. Addition, multiplication and the like round
to nearest, which keeps order, so computing with the ends of an interval encloses what is computed
with any value inside; the results of `exp`, `ln`, `sin` and `cos` are widened by more than they can
be off. A value that is undefined satisfies nothing and needs no enclosing.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, NO_TIME, Int
from tidegate.matching.columnar.kernels.jit import inlined, kernel, lean
from tidegate.matching.columnar.kernels.part import (
    E_MOTION,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    MOTION,
    PROGRAM,
)
from tidegate.matching.columnar.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    C_NOT_EQUAL,
    HEAD_WORDS,
    LINEAR,
    M_HOLD,
    M_SINCE,
    MOTION_WORDS,
    P_ABS,
    P_ADD,
    P_CEIL,
    P_CONSTANT,
    P_DIVIDE,
    P_ELAPSED,
    P_END,
    P_EXP,
    P_FLOOR,
    P_LN,
    P_MAX,
    P_MIN,
    P_MULTIPLY,
    P_NEGATE,
    P_REMAINDER,
    P_SIN,
    P_SQRT,
    P_SUBTRACT,
    P_VARIABLE,
    SHIFTED,
    STACK_MAX,
    channel_of,
    comparison_of,
    is_same_shift,
    judged_at,
    length_of,
)

NOTHING = (np.inf, -np.inf)
"""The interval of a value that is undefined at all times."""

SURE_MAX = EXACT_MAX - 1

_TURN = 2 * np.pi
_INEXACT = 1e-9
_FAR = 1e6
"""Beyond so many radians no use is made of where exactly a sine stands."""


@inlined
def elapsed(begin: Int, end: Int, timeless: Int, since: Int, hold: Int) -> tuple[float, float]:
    """What `t` can be in a stretch, for a subscription that began at a time and is held so."""
    if since == NO_TIME or begin > end:
        return 0.0, 0.0
    low = np.float64(judged_at(begin, since, hold) - since) / 1e6
    high = np.float64(judged_at(end, since, hold) - since) / 1e6
    if timeless:
        return min(low, 0.0), max(high, 0.0)
    return low, high


@lean
def run_program_over(
    program: I32,
    at: Int,
    constants: F64,
    constant_at: Int,
    t_low: float,
    t_high: float,
    variables: F64,
    stack: F64,
) -> tuple[float, float, bool]:
    """An interval that has each value that a function can take, and whether it surely has one.

    ``variables`` are two rows, the least and the most that each can be. A function that is never
    defined gives NOTHING.
    """
    depth, low, high, surely = 0, 0.0, 0.0, True
    while True:
        operation = program[at]
        at += 1
        if operation == P_END:
            return stack[0], stack[STACK_MAX], surely
        if operation == P_CONSTANT:
            low = float(constants[constant_at])
            high = low
            constant_at += 1
            depth += 1
        elif operation == P_ELAPSED:
            low, high = t_low, t_high
            depth += 1
        elif operation == P_VARIABLE:
            low, high = variables[0, program[at]], variables[1, program[at]]
            at += 1
            depth += 1
            surely = False  # it may be taken away
        elif operation == P_NEGATE or operation >= P_ABS:
            low, high = stack[depth - 1], stack[STACK_MAX + depth - 1]
            surely &= np.isfinite(low) and np.isfinite(high)
            if operation in (P_SQRT, P_LN):
                surely &= low > 0.0
            low, high = _of_one(operation, low, high)
        else:
            depth -= 1
            low, high = stack[depth - 1], stack[STACK_MAX + depth - 1]
            other_low, other_high = stack[depth], stack[STACK_MAX + depth]
            surely &= np.isfinite(low) and np.isfinite(high)
            surely &= np.isfinite(other_low) and np.isfinite(other_high)
            if operation in (P_DIVIDE, P_REMAINDER):
                surely &= not other_low <= 0.0 <= other_high
            low, high = _of_two(operation, low, high, other_low, other_high)
        if not low <= high:
            return NOTHING[0], NOTHING[1], False
        stack[depth - 1], stack[STACK_MAX + depth - 1] = low, high


@kernel
def _of_one(operation: Int, low: float, high: float) -> tuple[float, float]:
    """A function of one argument."""
    if operation == P_NEGATE:
        return -high, -low
    if operation == P_ABS:
        least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        return least, max(abs(low), abs(high))
    if operation == P_FLOOR:
        return np.floor(low), np.floor(high)
    if operation == P_CEIL:
        return np.ceil(low), np.ceil(high)
    if operation == P_SQRT:
        return (np.sqrt(max(low, 0.0)), np.sqrt(high)) if high >= 0.0 else NOTHING
    if operation == P_EXP:
        return np.exp(low) * (1 - _INEXACT), np.exp(high) * (1 + _INEXACT)
    if operation == P_LN:
        if not high > 0.0:
            return NOTHING
        most = np.log(high)
        least = np.log(low) if low > 0.0 else -np.inf
        if np.isfinite(most):
            most += _INEXACT * (1 + abs(most))
        if np.isfinite(least):
            least -= _INEXACT * (1 + abs(least))
        return least, most
    if operation == P_SIN:
        return _sine(low, high, 0.25)
    return _sine(low, high, 0.0)


@kernel
def _sine(low: float, high: float, top: float) -> tuple[float, float]:
    """A wave that is 1 at ``top`` turns and at each whole turn more, and -1 half a turn later."""
    if not (high - low < _TURN and abs(low) < _FAR and abs(high) < _FAR):
        return -1.0, 1.0
    first, last = low / _TURN - top, high / _TURN - top
    at_low, at_high = np.cos(first * _TURN), np.cos(last * _TURN)
    least, most = min(at_low, at_high) - _INEXACT, max(at_low, at_high) + _INEXACT
    if np.floor(last + _INEXACT) >= np.ceil(first - _INEXACT):
        most = 1.0
    if np.floor(last - 0.5 + _INEXACT) >= np.ceil(first - 0.5 - _INEXACT):
        least = -1.0
    return least, most


@kernel
def _of_two(
    operation: Int, a_low: float, a_high: float, b_low: float, b_high: float
) -> tuple[float, float]:
    """A function of two arguments."""
    if operation == P_ADD:
        return _unless_undefined(a_low + b_low, a_high + b_high)
    if operation == P_SUBTRACT:
        return _unless_undefined(a_low - b_high, a_high - b_low)
    if operation == P_MIN:
        return min(a_low, b_low), min(a_high, b_high)
    if operation == P_MAX:
        return max(a_low, b_low), max(a_high, b_high)
    if operation == P_REMAINDER:
        return _remainder(a_low, a_high, b_low, b_high)
    if operation == P_DIVIDE and b_low <= 0.0 <= b_high:
        return NOTHING if b_low == 0.0 == b_high else (-np.inf, np.inf)
    if operation == P_MULTIPLY:
        w, x, y, z = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    else:
        w, x, y, z = a_low / b_low, a_low / b_high, a_high / b_low, a_high / b_high
    if np.isnan(w) or np.isnan(x) or np.isnan(y) or np.isnan(z):
        return -np.inf, np.inf
    return min(min(w, x), min(y, z)), max(max(w, x), max(y, z))


@inlined
def _unless_undefined(low: float, high: float) -> tuple[float, float]:
    return -np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high


@kernel
def _remainder(a_low: float, a_high: float, b_low: float, b_high: float) -> tuple[float, float]:
    if b_low == 0.0 == b_high:
        return NOTHING
    if b_low == b_high and np.isfinite(a_low) and np.isfinite(a_high):
        # without a jump in between, the remainder grows as its argument does
        low, high = np.fmod(a_low, b_low), np.fmod(a_high, b_low)
        if a_high - a_low < abs(b_low) and abs((high - low) - (a_high - a_low)) < abs(b_low) / 2:
            return low, high
    most = max(abs(b_low), abs(b_high))
    return (
        0.0 if a_low >= 0.0 else -min(most, -a_low),
        0.0 if a_high <= 0.0 else min(most, a_high),
    )


@inlined
def _line_over(a: float, b: float, t_low: float, t_high: float) -> tuple[float, float, bool]:
    """What `a + b * t` can be, and whether it surely has a value."""
    low, high = _of_two(P_MULTIPLY, b, b, t_low, t_high)
    low, high = _unless_undefined(a + low, a + high)
    return low, high, np.isfinite(low) and np.isfinite(high)


@inlined
def shifted_by(a: float, low: float, high: float, surely: bool) -> tuple[float, float, bool]:
    """What `a + f(t)` can be, from what `f(t)` can be."""
    surely = surely and np.isfinite(a) and np.isfinite(low) and np.isfinite(high)
    if low <= high:
        low, high = _unless_undefined(a + low, a + high)
    return low, high, surely


@lean
def envelope(
    at: I64,
    i32: I32,
    f64: F64,
    entry: Int,
    channel: Int,
    times: I64,
    variables: F64,
    stack: F64,
) -> tuple[float, float, float, float]:
    """All values in a channel that the moving constraints of an entry can let pass in a stretch;
    and those that they let pass all the time.

    ``times`` are the first and the last of the stretch, and whether there are events without one.
    The first interval is never one value alone, which would be taken for an equality.
    """
    low, high = -np.inf, np.inf
    sure_low, sure_high = -np.inf, np.inf
    words = f64.view(np.int64)
    number = at[2 * ENTRY] + ENTRY_NUMBERS * np.int64(entry) + E_MOTION
    begin, end = at[2 * MOTION] + i32[number], at[2 * MOTION] + i32[number + ENTRY_NUMBERS]
    t_low, t_high = elapsed(
        times[0], times[1], times[2], words[begin + M_SINCE], words[begin + M_HOLD]
    )
    place, before = begin + MOTION_WORDS, begin
    shift_low, shift_high, shift_surely = 0.0, 0.0, False
    while place < end:
        head = words[place]
        comparison = comparison_of(head)
        if channel_of(head) == channel:
            program, constants = words[place + 1], place + HEAD_WORDS
            is_shifted = program != LINEAR and program & SHIFTED
            if is_shifted and (before == begin or not is_same_shift(words, before, place)):
                before = place
                shift_low, shift_high, shift_surely = run_program_over(
                    i32, at[2 * PROGRAM] + (program ^ SHIFTED), f64, constants + 1, t_low, t_high,
                    variables, stack,
                )  # fmt: skip
            if program == LINEAR:
                least, most, surely = _line_over(
                    float(f64[constants]), float(f64[constants + 1]), t_low, t_high
                )
            elif is_shifted:
                least, most, surely = shifted_by(
                    float(f64[constants]), shift_low, shift_high, shift_surely
                )
            else:
                least, most, surely = run_program_over(
                    i32, at[2 * PROGRAM] + program, f64, constants, t_low, t_high, variables, stack
                )
            if least > most:
                low = np.inf
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
        # one value, or none: a sliver around what there is
        low = min(low, np.finfo(np.float64).max)
        high = np.nextafter(low, np.inf)
    return low, high, sure_low, sure_high


@inlined
def margin_of(low: float, high: float, sure_low: float, sure_high: float) -> np.float32:
    """By how much a value must lie inside of an envelope to pass surely; infinity if none does.

    Floats that integers may be rounded to are never sure.
    """
    none = np.float32(np.inf)
    if not sure_low <= sure_high:
        return none
    if (sure_low != -np.inf and abs(sure_low) >= SURE_MAX) or (
        sure_high != np.inf and abs(sure_high) >= SURE_MAX
    ):
        return none
    margin = max(
        sure_low - low if sure_low > low else 0.0, high - sure_high if sure_high < high else 0.0
    )
    if margin == 0.0:
        return np.float32(0.0)
    # rounded up, and a bit more for the roundings of who adds it
    wide: np.float32 = np.nextafter(np.nextafter(np.float32(margin), none), none)
    if low + wide >= sure_low and high - wide <= sure_high:
        return wide
    return none
