"""Functions of time as small programs, and the stack machine that runs them inside the kernels.

A program is a list of 32-bit operations in postfix order (operands first), ended by P_END. Its
constants are not in it but beside it, taken in the order in which they occur. So all rows of a
shape share one program and differ only in their constants. P_VARIABLE alone has an argument, the
number of the variable, in the next word:

    :a * sin(t + @load)     P_CONSTANT  P_ELAPSED  P_VARIABLE 0  P_ADD  P_SIN  P_MULTIPLY  P_END

Compiling each function with Numba instead would take a fraction of a second for each new shape, and
subscribing takes microseconds.

`run_program` computes bit for bit what `language/expressions.py` computes; its tests compare the
two. Whatever is undefined there is NaN here, and NaN satisfies no comparison.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, Int
from tidegate.matching.rows.kernels.jit import inlined, lean

# The machine relies on this order: from P_ABS on, operations take one argument.
(
    P_END, P_CONSTANT, P_ELAPSED, P_VARIABLE, P_NEGATE, P_ADD, P_SUBTRACT, P_MULTIPLY, P_DIVIDE,
    P_REMAINDER, P_MIN, P_MAX, P_ABS, P_FLOOR, P_CEIL, P_SQRT, P_EXP, P_LN, P_SIN, P_COS,
) = range(20)  # fmt: skip
"""Operations."""

STACK_MAX = 80
"""How many values a program may have on its stack; what needs more is left to `semantics.py`."""

C_EQUAL, C_NOT_EQUAL, C_LESS, C_LESS_EQUAL, C_GREATER, C_GREATER_EQUAL = range(6)
"""Comparisons of a value with a bound."""


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

    The program begins at ``at``, its constants at ``constant_at``. The values of variables are in
    one row of ``variables``, NaN for those without a value. ``stack`` is scratch space of STACK_MAX
    floats: a machine that allocated its own would have to count references.
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
            # The conditions are those under which Python's math functions raise, which the
            # language calls undefined; NumPy would return infinity for some of them.
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
                # truncated, with the sign of the dividend, as in SQL; not Python's `%`
                x = np.fmod(a, b) if b != 0.0 and np.isfinite(a) else np.nan
            elif operation == P_MIN:
                # minimum and maximum hand NaN on, which `min` would not do for either argument
                x = np.minimum(a, b)
            else:
                x = np.maximum(a, b)
            stack[depth - 1] = x


@inlined
def compare(operator: Int, value: float, bound: float) -> bool:
    """Whether a value compares with a bound as one of `= != < <= > >=` says."""
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
