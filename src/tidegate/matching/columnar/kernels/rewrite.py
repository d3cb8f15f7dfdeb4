"""Changing entries in place: for an update, for a new time window, and for a new pin.

An update carries out a plan (rewrite_plan.py): it computes new bounds from the cells of the row and
writes new constants into the motion. A new time window needs new envelopes of the bounds that move
(envelopes.py). Both end in `write_bounds`.

The kernels here get a part packed, as those that match do, and have it for themselves: the matcher
holds its lock alone. All of them are ``lean``, and what they call for every entry is inlined, so
that handing on a part as a tuple costs nothing (see PackedPart).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.part import (
    BEGIN,
    BOUND_WORDS,
    E_FLAGS,
    E_MOTION,
    END,
    PackedPart,
    margin_at,
)
from tidegate.matching.columnar.kernels.rewrite_plan import (
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
from tidegate.matching.columnar.kernels.write_bounds import (
    cluster_of,
    constraint_on,
    entry_word,
    write_bounds,
)
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER
from tidegate.matching.rows.kernels.envelopes import WindowArrays, envelope, margin_of
from tidegate.matching.rows.kernels.flags import DEAD, EXACT_MAX, GONE, MOVING
from tidegate.matching.rows.kernels.jit import inlined, lean, lean_inlined
from tidegate.matching.rows.kernels.motion import (
    M_PIN,
    MOTION_WORDS,
    R_HEAD,
    channel_of,
    length_of,
)
from tidegate.matching.rows.kernels.program_intervals import INTERVAL_STACK
from tidegate.matching.rows.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    STACK_MAX,
    run_program,
)

DONE, OTHER_KINDS, NOT_IN_PLACE = range(3)
"""Outcomes of a plan: carried out; made for cells of other kinds; not possible in place."""

SCRATCH_FLOATS = INTERVAL_STACK + STACK_MAX
"""Scratch space, in floats, that these kernels need: a stack, and behind it constants of a plan."""


class CellArrays(NamedTuple):
    """The cells of all rows: the kind of each, and its 64 bits (cell_kinds.py)."""

    kinds: U8
    bits: I64


@lean
def rewrite_entry(
    plan: I32,
    kinds: U8,
    cells: I64,
    row: Int,
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    entry: Int,
    times: I64,
    variables: F64,
    scratch: F64,
) -> Int:
    """Write new bounds and a new motion of an entry, as a plan says (rewrite_plan.py).

    ``row`` is where the cells of its subscription begin, which have their new values already.
    Returns OTHER_KINDS, before anything is written, if the plan was made for cells of other kinds.
    After NOT_IN_PLACE some bounds may have been written; the caller replaces the entry then.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    return _rewrite(plan, CellArrays(kinds, cells), row, part, entry, window, scratch)


@lean
def rewrite_entries(
    plans: I32,
    plan_first: I64,
    plan_of: I64,
    kinds: U8,
    cells: I64,
    rows: I64,
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    entries: I32,
    times: I64,
    variables: F64,
    scratch: F64,
    outcomes: U8,
) -> None:
    """As ``rewrite_entry`` for many entries of a part; writes the outcome of each.

    ``plans`` has plans one after the other, from ``plan_first`` on each; ``plan_of`` is the plan of
    each entry. A plan of no length fits no cells.
    """
    row_cells = CellArrays(kinds, cells)
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    for index in range(len(entries)):
        begin, end = plan_first[plan_of[index]], plan_first[plan_of[index] + 1]
        if begin == end:
            outcomes[index] = OTHER_KINDS
        else:
            plan = plans[begin:end]
            outcomes[index] = _rewrite(
                plan, row_cells, rows[index], part, entries[index], window, scratch
            )


@lean_inlined
def _rewrite(
    plan: I32,
    cells: CellArrays,
    row: Int,
    part: PackedPart,
    entry: Int,
    window: WindowArrays,
    scratch: F64,
) -> Int:
    """See ``rewrite_entry``."""
    # All kinds are compared, also those of cells that the plan does not read: whether a predicate
    # is a bound or a program may depend on the kind of any of its cells.
    width = plan[PLAN_WIDTH]
    for slot in range(width):
        kind = cells.kinds[row + slot]
        if plan[PLAN_KINDS + slot] != (FLOAT if kind == INTEGER else kind):
            return OTHER_KINDS
    if part.i32[entry_word(part, entry, E_FLAGS)] & DEAD:
        return NOT_IN_PLACE  # its bounds may be anything
    constants = scratch[INTERVAL_STACK:]
    cluster = cluster_of(part, entry)
    # ``place`` walks along the plan, as rewrite_plan.py lays it out
    place = PLAN_KINDS + width
    changes = plan[place]
    place += 1
    for _ in range(changes):
        channel, whole = plan[place + BC_CHANNEL], plan[place + BC_WHOLE]
        comparisons = plan[place + BC_COMPARISONS]
        place += BOUND_CHANGE_WORDS
        low, high = -np.inf, np.inf
        for _ in range(comparisons):
            comparison, count = plan[place + CO_OPERATOR], plan[place + CO_CELLS]
            place += COMPARISON_WORDS
            for index in range(count):
                constants[index] = _as_number(cells, row + plan[place + index])
            place += count
            # the length of the program comes first; it uses neither `t` nor variables
            value = run_program(plan, place + 1, constants, 0, np.nan, window.variables, 0, scratch)
            place += 1 + plan[place]
            if not abs(value) < EXACT_MAX:
                return NOT_IN_PLACE  # undefined, or wide bounds and a check are needed
            low, high = _narrowed(low, high, comparison, value, whole)
        if low > high:
            # nothing satisfies NaN; left the wrong way round, the bounds would be the outside
            low, high = np.nan, np.nan
        constraint = constraint_on(part, entry, channel)
        if constraint < 0:
            return NOT_IN_PLACE  # it is in the key of the cluster, or there are two
        write_bounds(part, entry, cluster, constraint, channel, low, high)
    # constants of functions; their envelopes follow from all of them together
    words = plan[place]
    place += 1
    motion = part.at[BEGIN.motion] + part.i32[entry_word(part, entry, E_MOTION)]
    for index in range(words):
        change = place + WORD_CHANGE_WORDS * index
        cell = row + plan[change + WC_SLOT]
        part.f64[motion + plan[change + WC_WORD]] = _as_number(cells, cell)
    if words and len(window.times):
        _enclose(part, entry, cluster, window, scratch)
    return DONE


@inlined
def _as_number(cells: CellArrays, cell: Int) -> float:
    """A cell as the float of a channel."""
    if cells.kinds[cell] == FLOAT:
        return float(cells.bits.view(np.float64)[cell])
    return float(cells.bits[cell])


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


# -- envelopes ------------------------------------------------------------------------------------


@lean
def enclose_part(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    times: I64,
    variables: F64,
    scratch: F64,
) -> None:
    """Write the envelopes of all entries whose bounds move.

    Cluster by cluster, because bits are found by cluster, and looking it up for each entry would
    cost a bisection.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    clusters = part.at[END.cluster_first] - part.at[BEGIN.cluster_first] - 1
    for cluster in range(clusters):
        begin = part.i32[part.at[BEGIN.cluster_first] + cluster]
        for entry in range(begin, part.i32[part.at[BEGIN.cluster_first] + cluster + 1]):
            # those that are gone are never matched, so their envelopes may be out of date
            if part.i32[entry_word(part, entry, E_FLAGS)] & (MOVING | GONE) == MOVING:
                _enclose(part, entry, cluster, window, scratch)


@lean
def pin_entries(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    entries: I64,
    pin: Int,
    times: I64,
    variables: F64,
    scratch: F64,
) -> None:
    """Have the functions of entries evaluated as of another time (M_PIN in motion.py)."""
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    words = part.f64.view(np.int64)
    for entry in entries:
        if part.i32[entry_word(part, entry, E_FLAGS)] & MOVING:
            motion = part.at[BEGIN.motion] + part.i32[entry_word(part, entry, E_MOTION)]
            words[motion + M_PIN] = pin
            if len(window.times):
                _enclose(part, entry, cluster_of(part, entry), window, scratch)


@lean_inlined
def _enclose(part: PackedPart, entry: Int, cluster: Int, window: WindowArrays, stack: F64) -> None:
    """Write the envelopes of an entry, one for each channel whose bounds move."""
    words, margins = part.f64.view(np.int64), part.f64.view(np.float32)
    begin = part.at[BEGIN.motion] + part.i32[entry_word(part, entry, E_MOTION)]
    end = part.at[BEGIN.motion] + part.i32[entry_word(part, entry + 1, E_MOTION)]
    # ``before`` is the channel of the record before, -1 for none
    place, before = begin + MOTION_WORDS, np.int64(-1)
    while place < end:
        channel = channel_of(words[place + R_HEAD])
        place += length_of(words[place + R_HEAD])
        if channel == before:
            continue  # the two bounds of a range: one envelope encloses both
        constraint = constraint_on(part, entry, channel)
        low, high, sure_low, sure_high = envelope(
            part.f64, begin, end, part.i32, part.at[BEGIN.program], channel, window, stack
        )
        write_bounds(part, entry, cluster, constraint, channel, low, high)
        margins[margin_at(part.at[BEGIN.bound] + BOUND_WORDS * constraint)] = margin_of(
            low, high, sure_low, sure_high
        )
        before = channel
