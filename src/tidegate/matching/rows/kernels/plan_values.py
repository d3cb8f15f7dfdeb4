"""What a plan writes: new bounds and new words of a motion, computed from the cells of a row.

Where they are written, and what else depends on them, is up to the index. Its kernel walks along
the plan (rewrite_plan.py) with the functions here, each of which takes the place of a section and
returns that of the next:

    if not fits(plan, cells, row): return OTHER_KINDS
    changes, place = first_change(plan)
    for each change: channel, low, high, is_exact, place = new_bounds(plan, place, ...)
    words = write_words(plan, place, ...)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U8, Int
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.kernels.jit import inlined, lean_inlined
from tidegate.matching.rows.kernels.program_intervals import INTERVAL_STACK
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    C_NOT_EQUAL,
    STACK_MAX,
    run_program,
)
from tidegate.matching.rows.kernels.rewrite_plan import (
    BC_CHANNEL,
    BC_COMPARISONS,
    BC_WHOLE,
    BOUND_CHANGE_WORDS,
    CO_CELLS,
    CO_OPERATOR,
    COMPARISON_WORDS,
    PLAN_KINDS,
    PLAN_WIDTH,
    WC_SLOT,
    WC_WORD,
    WORD_CHANGE_WORDS,
)

SCRATCH_FLOATS = INTERVAL_STACK + STACK_MAX
"""Scratch space, in floats, of a kernel that carries out plans: a stack, and behind it constants of
a plan. Envelopes need the stack of intervals."""


class CellArrays(NamedTuple):
    """The cells of all rows: the kind of each, and its 64 bits (cell_kinds.py)."""

    kinds: U8
    bits: I64


class PlannedRows(NamedTuple):
    """The plans of many rows: which plan each row has, and where its cells begin.

    ``plans`` has the plans one after the other, ``first`` where each begins, and the end of the
    last. A plan of no length is one still to be made, and fits no cells.
    """

    plans: I32
    first: I64
    plan_of: I64
    rows: I64


@lean_inlined
def fits(plan: I32, cells: CellArrays, row: Int) -> bool:
    """Whether a plan was made for cells of the kinds of a row's.

    All kinds are compared, also those of cells that the plan does not read: whether a predicate is
    a bound or a program may depend on the kind of any of its cells.
    """
    if len(plan) == 0:
        return False
    for slot in range(plan[PLAN_WIDTH]):
        kind = cells.kinds[row + slot]
        if plan[PLAN_KINDS + slot] != (FLOAT if kind == INTEGER else kind):
            return False
    return True


@inlined
def first_change(plan: I32) -> tuple[Int, Int]:
    """How many channels get new bounds, and the place of the first change."""
    place = PLAN_KINDS + plan[PLAN_WIDTH]
    return plan[place], place + 1


@lean_inlined
def new_bounds(
    plan: I32, place: Int, cells: CellArrays, row: Int, variables: F64, scratch: F64
) -> tuple[Int, float, float, bool, Int]:
    """The channel of a change, its new bounds, whether they are exact, and the place behind it.

    They are not exact if a value is undefined, or so large that bounds would have to be wide and
    verified. Both bounds are NaN, which nothing satisfies, if the comparisons exclude each other:
    the wrong way round they would be the outside.
    """
    constants, zero = scratch[INTERVAL_STACK:], np.int64(0)
    channel, whole = plan[place + BC_CHANNEL], plan[place + BC_WHOLE]
    comparisons = plan[place + BC_COMPARISONS]
    place += BOUND_CHANGE_WORDS
    low, high, is_exact = -np.inf, np.inf, True
    comparison = np.int32(C_EQUAL)
    for _ in range(comparisons):
        comparison, count = plan[place + CO_OPERATOR], plan[place + CO_CELLS]
        place += COMPARISON_WORDS
        for index in range(count):
            constants[index] = _as_number(cells, row + plan[place + index])
        place += count
        # the length of the program comes first; it uses neither `t` nor variables
        value = run_program(plan, place + 1, constants, zero, np.nan, variables, zero, scratch)
        place += 1 + plan[place]
        is_exact &= abs(value) < EXACT_MAX
        low, high = _narrowed(low, high, comparison, value, whole)
    if comparisons == 1 and comparison == C_NOT_EQUAL:
        low, high = _outside(value, whole)
    elif low > high:
        low, high = np.nan, np.nan
    return channel, low, high, is_exact, place


@lean_inlined
def write_words(plan: I32, place: Int, cells: CellArrays, row: Int, motion: F64, begin: Int) -> Int:
    """Write new constants into the motion that begins at ``begin``; returns how many.

    The envelopes of the entry follow from all of them together.
    """
    words = plan[place]
    place += 1
    for index in range(words):
        change = place + WORD_CHANGE_WORDS * index
        cell = row + plan[change + WC_SLOT]
        motion[begin + plan[change + WC_WORD]] = _as_number(cells, cell)
    return words


@inlined
def _as_number(cells: CellArrays, cell: Int) -> float:
    """A cell as the float of a channel."""
    if cells.kinds[cell] == FLOAT:
        return float(cells.bits.view(np.float64)[cell])
    return float(cells.bits[cell])


@inlined
def _outside(value: float, whole: Int) -> tuple[float, float]:
    """The bounds of `x != value`, as in bounds.py; the value is finite, because others are not
    exact."""
    if whole:
        return value + 1.0, value - 1.0
    return np.nextafter(value, np.inf), np.nextafter(value, -np.inf)


@inlined
def _narrowed(
    low: float, high: float, comparison: Int, value: float, whole: Int
) -> tuple[float, float]:
    """Bounds narrowed by a comparison; strict ones step to the next value, as in bounds.py."""
    if comparison == C_LESS:
        high = min(high, value - 1.0 if whole else np.nextafter(value, -np.inf))
    elif comparison == C_GREATER:
        low = max(low, value + 1.0 if whole else np.nextafter(value, np.inf))
    if comparison in (C_LESS_EQUAL, C_EQUAL):
        high = min(high, value)
    if comparison in (C_GREATER_EQUAL, C_EQUAL):
        low = max(low, value)
    return low, high
