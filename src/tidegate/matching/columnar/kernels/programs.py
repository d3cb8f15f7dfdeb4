"""Functions of time as small programs, and the machine that runs them inside the kernels.

A program is a list of operations, operands first; its constants stand beside it, so that all rows
of a shape share one program.

The motion of an entry is all that is known of its constraints whose bounds move, in one place in
memory: words of 64 bits, first when its subscription began, for which time its functions are
evaluated, then for each constraint a head, the place of its program, and the program's constants.
The head holds the channel, the comparison and how many constants there are. What is added to a
function as a constant, `a` in `a + f(t)`, stands first and is no part of the program, because the
two bounds of a range often differ in it alone. `a + b * t`, the most common function, has no
program at all, only `a` and `b`.

Functions are evaluated for the time of the event, unless the second word says otherwise: with EVERY
and an interval added to it, for the last time at which a whole number of intervals had passed; with
anything less, which is a time itself, for that time, but never for a later one than the event's.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Int
from tidegate.matching.columnar.kernels.jit import inlined, lean

# Programs: an operation, with its argument behind it where it takes one.
(
    P_END, P_CONSTANT, P_ELAPSED, P_VARIABLE, P_NEGATE, P_ADD, P_SUBTRACT, P_MULTIPLY, P_DIVIDE,
    P_REMAINDER, P_MIN, P_MAX, P_ABS, P_FLOOR, P_CEIL, P_SQRT, P_EXP, P_LN, P_SIN, P_COS,
) = range(20)  # fmt: skip

STACK_MAX = 80
"""How many values a program may have at hand at once."""

C_EQUAL, C_NOT_EQUAL, C_LESS, C_LESS_EQUAL, C_GREATER, C_GREATER_EQUAL = range(6)

LINEAR = -1
"""Stands for the program of `a + b * t`."""
SHIFTED = 1 << 40
"""Marks the place of a program to whose value the first constant is added."""
M_SINCE, M_HOLD, MOTION_WORDS = range(3)
"""What a motion begins with, and how many words that is."""
EVERY = 2**62
"""More than any time in microseconds; see above."""
HEAD_WORDS = 2
"""What a constraint has in front of its constants."""


def head(channel: int, comparison: int, constants: int) -> int:
    """The first word of a constraint in a motion."""
    return channel | comparison << 32 | constants << 40


@inlined
def channel_of(head: Int) -> Int:
    """The channel in a head."""
    return head & 0xFFFFFFFF


@inlined
def comparison_of(head: Int) -> Int:
    """The comparison in a head."""
    return (head >> 32) & 0xFF


@inlined
def length_of(head: Int) -> Int:
    """How many words a constraint has."""
    return HEAD_WORDS + (head >> 40)


@inlined
def judged_at(time_us: Int, since: Int, hold: Int) -> Int:
    """The time for which the functions of an entry are evaluated for an event of a time."""
    if hold < EVERY:
        return min(time_us, hold)
    if hold == EVERY:
        return time_us
    return time_us - (time_us - since) % (hold - EVERY)


@inlined
def is_same_shift(words: I64, one: Int, other: Int) -> bool:
    """Whether two constraints that are shifted differ in nothing but what is added."""
    same = bool(words[one + 1] == words[other + 1])
    if same:
        for word in range(HEAD_WORDS + 1, length_of(words[one])):
            same &= words[one + word] == words[other + word]
    return same


@lean
def run_program(
    program: I32,
    at: Int,
    constants: F64,
    constant_at: Int,
    t: float,
    variables: F64,
    row: Int,
    stack: F64,
) -> float:
    """The value of a function, computed as the language says; NaN where it is undefined.

    The values of variables stand in one row of ``variables``.
    """
    depth = 0
    while True:
        operation = program[at]
        at += 1
        if operation == P_END:
            return float(stack[0])
        if operation == P_CONSTANT:
            stack[depth] = constants[constant_at]
            constant_at += 1
            depth += 1
        elif operation == P_ELAPSED:
            stack[depth] = t
            depth += 1
        elif operation == P_VARIABLE:
            stack[depth] = variables[row, program[at]]
            at += 1
            depth += 1
        elif operation == P_NEGATE:
            stack[depth - 1] = -stack[depth - 1]
        elif operation >= P_ABS:
            x = stack[depth - 1]
            if operation == P_ABS:
                x = abs(x)
            elif operation == P_FLOOR:
                x = np.floor(x)
            elif operation == P_CEIL:
                x = np.ceil(x)
            elif operation == P_SQRT:
                x = np.sqrt(x) if x >= 0.0 else np.nan
            elif operation == P_EXP:
                x = np.exp(x)
            elif operation == P_LN:
                x = np.log(x) if x > 0.0 else np.nan
            elif operation == P_SIN:
                x = np.sin(x) if np.isfinite(x) else np.nan
            else:
                x = np.cos(x) if np.isfinite(x) else np.nan
            stack[depth - 1] = x
        else:
            depth -= 1
            a, b = stack[depth - 1], stack[depth]
            if operation == P_ADD:
                x = a + b
            elif operation == P_SUBTRACT:
                x = a - b
            elif operation == P_MULTIPLY:
                x = a * b
            elif operation == P_DIVIDE:
                x = a / b if b != 0.0 else np.nan
            elif operation == P_REMAINDER:
                x = np.fmod(a, b) if b != 0.0 and np.isfinite(a) else np.nan
            elif operation == P_MIN:
                x = np.minimum(a, b)
            else:
                x = np.maximum(a, b)
            stack[depth - 1] = x


@inlined
def compare(operator: Int, value: float, bound: float) -> bool:
    """One of `= != < <= > >=`."""
    if operator == C_EQUAL:
        return value == bound
    if operator == C_NOT_EQUAL:
        return value != bound
    if operator == C_LESS:
        return value < bound
    if operator == C_LESS_EQUAL:
        return value <= bound
    if operator == C_GREATER:
        return value > bound
    return value >= bound
