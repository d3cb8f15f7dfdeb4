"""Interval arithmetic on programs: what a function of time can be while `t` and variables vary.

Rule: an interval may be too wide, never too narrow. Two facts keep it:

- Addition, subtraction, multiplication, division and `sqrt` round to nearest, and rounding keeps
  order: a <= b implies round(a) <= round(b). So computing with the ends of an interval encloses
  what the machine computes with any value inside, bit for bit, without directed rounding.
- `exp`, `ln`, `sin` and `cos` of the C library need not keep order. Their results are widened by
  _INEXACT, which is far more than they can be off.

An interval is a pair `low <= high`; NOTHING has its ends the wrong way round and stands for a
function that is undefined at all times. Where a function is defined only for a part of its
argument (`sqrt` from -1 to 4), the interval is that of the part, because an undefined bound
satisfies nothing. Whether it is defined for all of it is computed along, as ``surely``.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, Int
from tidegate.matching.rows.kernels.jit import inlined, kernel, lean
from tidegate.matching.rows.kernels.programs import (
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
    STACK_MAX,
)

NOTHING = (np.inf, -np.inf)
"""The interval of a value that is undefined at all times."""

INTERVAL_STACK = 2 * STACK_MAX
"""Scratch space, in floats, that ``run_program_over`` needs: low ends, and STACK_MAX later high."""

_TURN = 2 * np.pi
_INEXACT = 1e-9
"""More than the error of the C library's functions, relative and absolute."""
_FAR = 1e6
"""Radians beyond which a sine is taken to be anything: its argument is too coarse by then."""


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
    """An interval with every value that a function can take, and whether it surely has one.

    As ``run_program``, but `t` is an interval, and ``variables`` has two rows, the least and the
    greatest value of each. Returns NOTHING for a function that is never defined.
    """
    depth, low, high, surely = 0, 0.0, 0.0, True
    while True:
        operation = program[at]
        at += 1
        if operation == P_END:
            return stack[0], stack[STACK_MAX], surely
        # leaves push an interval, a function of one argument replaces the last one, and one of two
        # arguments pops one and replaces the other
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
            surely = False  # the variable may lose its value during the window
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
            # two infinities may cancel to something undefined
            surely &= np.isfinite(low) and np.isfinite(high)
            surely &= np.isfinite(other_low) and np.isfinite(other_high)
            if operation in (P_DIVIDE, P_REMAINDER):
                surely &= not other_low <= 0.0 <= other_high
            low, high = _of_two(operation, low, high, other_low, other_high)
        # whatever is computed from NOTHING is NOTHING; NaN ends here as well
        if not low <= high:
            return NOTHING[0], NOTHING[1], False
        stack[depth - 1], stack[STACK_MAX + depth - 1] = low, high


@kernel
def _of_one(operation: Int, low: float, high: float) -> tuple[float, float]:
    """The interval of a function of one argument."""
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
        # infinity stays as it is: infinity minus a part of infinity would be NaN
        if np.isfinite(most):
            most += _INEXACT * (1 + abs(most))
        if np.isfinite(least):
            least -= _INEXACT * (1 + abs(least))
        return least, most
    if operation == P_SIN:
        return _wave(low, high, 0.25)
    return _wave(low, high, 0.0)


@kernel
def _wave(low: float, high: float, top: float) -> tuple[float, float]:
    """The interval of a cosine shifted so that it is 1 at ``top`` turns; that of a sine is 1/4.

    It is 1 again after each whole turn, and -1 half a turn later.
    """
    if not (high - low < _TURN and abs(low) < _FAR and abs(high) < _FAR):
        return -1.0, 1.0
    first, last = low / _TURN - top, high / _TURN - top
    at_low, at_high = np.cos(first * _TURN), np.cos(last * _TURN)
    least, most = min(at_low, at_high) - _INEXACT, max(at_low, at_high) + _INEXACT
    # is there a whole number of turns, or one and a half, between the ends?
    if np.floor(last + _INEXACT) >= np.ceil(first - _INEXACT):
        most = 1.0
    if np.floor(last - 0.5 + _INEXACT) >= np.ceil(first - 0.5 - _INEXACT):
        least = -1.0
    return least, most


@kernel
def _of_two(
    operation: Int, a_low: float, a_high: float, b_low: float, b_high: float
) -> tuple[float, float]:
    """The interval of a function of two arguments, each taken to vary on its own."""
    # sums grow with both arguments, differences with the first and against the second
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
        # a quotient near the pole can be anything
        return NOTHING if b_low == 0.0 == b_high else (-np.inf, np.inf)
    # products and quotients are extreme at the corners
    if operation == P_MULTIPLY:
        w, x, y, z = a_low * b_low, a_low * b_high, a_high * b_low, a_high * b_high
    else:
        w, x, y, z = a_low / b_low, a_low / b_high, a_high / b_low, a_high / b_high
    if np.isnan(w) or np.isnan(x) or np.isnan(y) or np.isnan(z):
        return -np.inf, np.inf  # zero times infinity at a corner, but not beside it
    return min(min(w, x), min(y, z)), max(max(w, x), max(y, z))


@inlined
def _unless_undefined(low: float, high: float) -> tuple[float, float]:
    """The ends of an interval; one that is undefined (infinity - infinity) becomes infinite."""
    return -np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high


@kernel
def _remainder(a_low: float, a_high: float, b_low: float, b_high: float) -> tuple[float, float]:
    """The interval of a remainder, which has the sign of its dividend."""
    if b_low == 0.0 == b_high:
        return NOTHING
    if b_low == b_high and np.isfinite(a_low) and np.isfinite(a_high):
        # Without a jump in between, the remainder grows as its argument does. After a jump it has
        # grown by a whole divisor less, which half a divisor tells apart whatever the rounding.
        low, high = np.fmod(a_low, b_low), np.fmod(a_high, b_low)
        if a_high - a_low < abs(b_low) and abs((high - low) - (a_high - a_low)) < abs(b_low) / 2:
            return low, high
    # otherwise: smaller than the divisor, and not further from zero than the dividend
    most = max(abs(b_low), abs(b_high))
    return (
        0.0 if a_low >= 0.0 else -min(most, -a_low),
        0.0 if a_high <= 0.0 else min(most, a_high),
    )


@inlined
def line_over(a: float, b: float, t_low: float, t_high: float) -> tuple[float, float, bool]:
    """The interval of `a + b * t`, and whether it surely has a value."""
    first, last = b * t_low, b * t_high
    # zero times infinity may be anything, as in ``_of_two``
    if np.isnan(first) or np.isnan(last):
        return -np.inf, np.inf, False
    low, high = _unless_undefined(a + min(first, last), a + max(first, last))
    return low, high, np.isfinite(low) and np.isfinite(high)


@inlined
def shifted_by(a: float, low: float, high: float, surely: bool) -> tuple[float, float, bool]:
    """The interval of `a + f(t)`, from that of `f(t)`."""
    surely = surely and np.isfinite(a) and np.isfinite(low) and np.isfinite(high)
    if low <= high:
        low, high = _unless_undefined(a + low, a + high)
    return low, high, surely
