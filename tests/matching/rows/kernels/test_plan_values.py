"""New bounds and words that plans compute from cells, for each comparison and each kind of cell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidegate.matching.arrays import I32
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, FLOAT, INTEGER, STRING, TIME
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.kernels.plan_values import (
    SCRATCH_FLOATS,
    CellArrays,
    first_change,
    fits,
    new_bounds,
    write_words,
)
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    P_CONSTANT,
    P_DIVIDE,
    P_END,
)
from tidegate.matching.rows.kernels.rewrite_plan import (
    NO_PLAN,
    BoundChange,
    Comparison,
    WordChange,
    encode_plan,
)

VALUE, QUOTIENT = [P_CONSTANT, P_END], [P_CONSTANT, P_CONSTANT, P_DIVIDE, P_END]
ROW = 2
"""Where the row of a test begins; other cells come before it."""


def cells(*row: tuple[int, float]) -> CellArrays:
    """A row of cells, each given as its kind and its value."""
    bits = [
        np.float64(value).view(np.int64) if kind == FLOAT else np.int64(value)
        for kind, value in row
    ]
    return CellArrays(
        np.array([STRING] * ROW + [kind for kind, _ in row], np.uint8),
        np.array([7] * ROW + bits, np.int64),
    )


def changed(plan: I32, row: CellArrays) -> list[tuple[int, float, float, bool]]:
    """The channels that get new bounds, the bounds, and whether they are exact."""
    changes, place = first_change(plan)
    found = []
    for _ in range(changes):
        channel, low, high, is_exact, place = new_bounds(
            plan, place, row, ROW, np.zeros((1, 1)), np.empty(SCRATCH_FLOATS)
        )
        found.append((int(channel), float(low), float(high), bool(is_exact)))
    return found


def bounds(row: CellArrays, *comparisons: Comparison, is_whole: bool = False) -> list[float]:
    """The exact bounds of a channel that is compared with cells."""
    kinds = [FLOAT] * (len(row.kinds) - ROW)
    plan = encode_plan(kinds, [BoundChange(3, is_whole, comparisons)], [])
    ((channel, low, high, is_exact),) = changed(plan, row)
    assert (channel, is_exact) == (3, True)
    return [low, high]


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (C_EQUAL, [5, 5]),
        (C_LESS, [-math.inf, math.nextafter(5, 0)]),
        (C_LESS_EQUAL, [-math.inf, 5]),
        (C_GREATER, [math.nextafter(5, 9), math.inf]),
        (C_GREATER_EQUAL, [5, math.inf]),
    ],
)
@pytest.mark.parametrize("kind", [INTEGER, FLOAT])
def test_bounds_of_each_comparison(comparison: int, expected: list[float], kind: int) -> None:
    assert bounds(cells((kind, 5)), Comparison(comparison, [0], VALUE)) == expected


def test_strict_bounds_of_whole_numbers_are_the_next_ones() -> None:
    row = cells((TIME, 5), (BOOLEAN, 1))
    above, below = Comparison(C_GREATER, [0], VALUE), Comparison(C_LESS, [1], VALUE)
    assert bounds(row, above, is_whole=True) == [6, math.inf]
    assert bounds(row, below, is_whole=True) == [-math.inf, 0]


def test_several_comparisons_are_intersected_and_may_leave_nothing() -> None:
    row = cells((INTEGER, 2), (FLOAT, 4.5))
    above, below = Comparison(C_GREATER_EQUAL, [0], VALUE), Comparison(C_LESS_EQUAL, [1], VALUE)
    assert bounds(row, above, below) == [2, 4.5]
    swapped = Comparison(C_GREATER_EQUAL, [1], VALUE), Comparison(C_LESS_EQUAL, [0], VALUE)
    assert np.isnan(bounds(row, *swapped)).all()


@pytest.mark.parametrize("divisor", [0, math.inf, 1 / EXACT_MAX])
def test_undefined_and_large_values_are_not_exact(divisor: float) -> None:
    row = cells((FLOAT, divisor), (FLOAT, math.inf if divisor == math.inf else 1))
    plan = encode_plan(
        [FLOAT, FLOAT],
        [BoundChange(1, False, [Comparison(C_LESS, [1, 0], QUOTIENT)]),
         BoundChange(2, False, [Comparison(C_LESS, [0], VALUE)])],
        [],
    )  # fmt: skip
    (first, *_, is_exact), (second, *_) = changed(plan, row)
    assert (first, second, is_exact) == (1, 2, False)


def test_a_plan_fits_rows_of_its_kinds_and_any_numbers() -> None:
    plan = encode_plan([FLOAT, STRING], [], [])
    assert fits(plan, cells((FLOAT, 1), (STRING, 0)), ROW)
    assert fits(plan, cells((INTEGER, 1), (STRING, 9)), ROW)
    assert not fits(plan, cells((TIME, 1), (STRING, 0)), ROW)
    assert not fits(plan, cells((FLOAT, 1), (FLOAT, 0)), ROW)
    assert not fits(NO_PLAN, cells((FLOAT, 1)), ROW)


def test_words_are_written_behind_the_begin_of_the_motion() -> None:
    change = BoundChange(0, False, [Comparison(C_LESS, [0], VALUE)])
    plan = encode_plan([FLOAT, FLOAT], [change], [WordChange(4, 1), WordChange(2, 0)])
    row, motion = cells((INTEGER, 3), (FLOAT, 0.5)), np.zeros(8)
    _, place = first_change(plan)
    *_, place = new_bounds(plan, place, row, ROW, np.zeros((1, 1)), np.empty(SCRATCH_FLOATS))
    assert write_words(plan, place, row, ROW, motion, 1) == 2
    assert motion.tolist() == [0, 0, 0, 3, 0, 0.5, 0, 0]
