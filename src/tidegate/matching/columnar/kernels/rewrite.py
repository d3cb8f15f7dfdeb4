"""Writing bounds where they stand, with their bits: what an update and the passing of time do.

Like the kernels that match, these get a part packed; whoever calls them has it for himself.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.cell_kinds import FLOAT, INTEGER
from tidegate.matching.columnar.kernels.check import as_probe
from tidegate.matching.columnar.kernels.envelopes import envelope, margin_of
from tidegate.matching.columnar.kernels.jit import inlined, lean
from tidegate.matching.columnar.kernels.part import (
    BOUND,
    CHANNEL_MASK,
    DEAD,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    EDGE,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    GONE,
    MAP_CELLS,
    MAP_CHANNEL,
    MAP_EDGE,
    MAP_FIRST,
    MAP_WORD,
    MOTION,
    MOVING,
    PROBE,
    PROBES,
    SEGMENT_FIRST,
    SPAN_FIRST,
    SPAN_LAST,
    SPAN_START,
    WORD,
)
from tidegate.matching.columnar.kernels.programs import (
    C_EQUAL,
    C_GREATER,
    C_GREATER_EQUAL,
    C_LESS,
    C_LESS_EQUAL,
    M_HOLD,
    MOTION_WORDS,
    STACK_MAX,
    channel_of,
    length_of,
    run_program,
)
from tidegate.matching.columnar.kernels.scan import cell_of

DONE, OTHER_KINDS, NOT_IN_PLACE = range(3)
"""What came of a plan."""
ROOM = 3 * STACK_MAX
"""So many floats need those that write as room to compute in; what is in them does not matter."""


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
    entry: Int,
    times: I64,
    variables: F64,
    room: F64,
) -> Int:
    """Change the bounds and the motion of an entry as a plan says (see rewriting.py).

    A plan that was made for cells of other kinds is not carried out.
    """
    width = plan[0]
    for slot in range(width):
        kind = kinds[row + slot]
        if plan[1 + slot] != (FLOAT if kind == INTEGER else kind):
            return OTHER_KINDS
    if i32[_number(at, entry, E_FLAGS)] & DEAD:
        return NOT_IN_PLACE
    numbers = cells.view(np.float64)
    constants = room[2 * STACK_MAX :]
    segment = _segment_of(at, i32, entry)
    place = width + 2
    for _ in range(plan[width + 1]):
        channel, whole, comparisons = plan[place], plan[place + 1], plan[place + 2]
        place += 3
        low, high = -np.inf, np.inf
        for _ in range(comparisons):
            comparison, count = plan[place], plan[place + 1]
            place += 2
            for index in range(count):
                constants[index] = _as_number(kinds, cells, numbers, row + plan[place + index])
            place += count
            value = run_program(plan, place + 1, constants, 0, np.nan, variables, 0, room)
            place += 1 + plan[place]
            if not abs(value) < EXACT_MAX:
                return NOT_IN_PLACE
            low, high = _narrowed(low, high, comparison, value, whole)
        if low > high:
            low, high = np.nan, np.nan  # which nothing satisfies
        constraint = _constraint_on(at, i32, f64, entry, channel)
        if constraint < 0:
            return NOT_IN_PLACE
        _write(at, i32, i64, f32, f64, u64, entry, segment, constraint, channel, low, high)
    words = plan[place]
    motion = at[2 * MOTION] + i32[_number(at, entry, E_MOTION)]
    for index in range(words):
        word, cell = plan[place + 1 + 2 * index], row + plan[place + 2 + 2 * index]
        f64[motion + word] = _as_number(kinds, cells, numbers, cell)
    if words and len(times):
        _enclose(at, i32, i64, f32, f64, u64, entry, segment, times, variables, room)
    return DONE


@lean
def rewrite_entries(
    plans: I32,
    plan_first: I64,
    which: I64,
    kinds: U8,
    cells: I64,
    rows: I64,
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    entries: I32,
    times: I64,
    variables: F64,
    room: F64,
    done: U8,
) -> None:
    """Change many entries of a part, each as one of several plans says; notes what came of each.

    A plan of no length fits no cells.
    """
    for index in range(len(entries)):
        begin, end = plan_first[which[index]], plan_first[which[index] + 1]
        if begin == end:
            done[index] = OTHER_KINDS
        else:
            done[index] = rewrite_entry(
                plans[begin:end], kinds, cells, rows[index], at, i32, i64, f32, f64, u64,
                entries[index], times, variables, room,
            )  # fmt: skip


@inlined
def _as_number(kinds: U8, cells: I64, numbers: F64, cell: Int) -> float:
    """A cell as the float of a channel; ``numbers`` are the cells taken as floats."""
    if kinds[cell] == FLOAT:
        return float(numbers[cell])
    return float(cells[cell])


@inlined
def _narrowed(
    low: float, high: float, comparison: Int, value: float, whole: Int
) -> tuple[float, float]:
    """Bounds that also satisfy a comparison; strict ones step to the next value."""
    if comparison == C_LESS:
        high = min(high, value - 1.0 if whole else np.nextafter(value, -np.inf))
    elif comparison == C_GREATER:
        low = max(low, value + 1.0 if whole else np.nextafter(value, np.inf))
    if comparison in (C_LESS_EQUAL, C_EQUAL):
        high = min(high, value)
    if comparison in (C_GREATER_EQUAL, C_EQUAL):
        low = max(low, value)
    return low, high


@lean
def enclose_part(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    times: I64,
    variables: F64,
    room: F64,
) -> None:
    """Write the envelopes of all entries whose bounds move."""
    segments = at[2 * SEGMENT_FIRST + 1] - at[2 * SEGMENT_FIRST] - 1
    for segment in range(segments):
        begin = i32[at[2 * SEGMENT_FIRST] + segment]
        for entry in range(begin, i32[at[2 * SEGMENT_FIRST] + segment + 1]):
            if i32[_number(at, entry, E_FLAGS)] & (MOVING | GONE) == MOVING:
                _enclose(at, i32, i64, f32, f64, u64, entry, segment, times, variables, room)


@lean
def hold_entries(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    entries: I64,
    hold: Int,
    times: I64,
    variables: F64,
    room: F64,
) -> None:
    """Have the functions of some entries evaluated for another time (see programs.py)."""
    words = f64.view(np.int64)
    for entry in entries:
        if i32[_number(at, entry, E_FLAGS)] & MOVING:
            words[at[2 * MOTION] + i32[_number(at, entry, E_MOTION)] + M_HOLD] = hold
            if len(times):
                segment = _segment_of(at, i32, entry)
                _enclose(at, i32, i64, f32, f64, u64, entry, segment, times, variables, room)


@lean
def _enclose(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    entry: Int,
    segment: Int,
    times: I64,
    variables: F64,
    stack: F64,
) -> None:
    words, margins = f64.view(np.int64), f64.view(np.float32)
    begin = at[2 * MOTION] + i32[_number(at, entry, E_MOTION)]
    end = at[2 * MOTION] + i32[_number(at, entry + 1, E_MOTION)]
    place, before = begin + MOTION_WORDS, np.int64(-1)
    while place < end:
        channel = channel_of(words[place])
        place += length_of(words[place])
        if channel == before:
            continue
        constraint = _constraint_on(at, i32, f64, entry, channel)
        low, high, sure_low, sure_high = envelope(
            at, i32, f64, entry, channel, times, variables, stack
        )
        _write(at, i32, i64, f32, f64, u64, entry, segment, constraint, channel, low, high)
        margins[2 * (at[2 * BOUND] + 3 * constraint) + 5] = margin_of(
            low, high, sure_low, sure_high
        )
        before = channel


@inlined
def _number(at: I64, entry: Int, which: Int) -> Int:
    """Where one of the numbers of an entry stands."""
    return at[2 * ENTRY] + ENTRY_NUMBERS * np.int64(entry) + which


@inlined
def _constraint_on(at: I64, i32: I32, f64: F64, entry: Int, channel: Int) -> Int:
    """The only constraint of an entry on a channel; -1 if there is none, or more than one."""
    found = np.int64(-1)
    bits = f64.view(np.int64)
    for index in range(i32[_number(at, entry, E_FIRST)], i32[_number(at, entry + 1, E_FIRST)]):
        if bits[at[2 * BOUND] + 3 * index + 2] & CHANNEL_MASK == channel:
            if found >= 0:
                return np.int64(-1)
            found = np.int64(index)
    return found


@inlined
def _segment_of(at: I64, i32: I32, entry: Int) -> Int:
    segment_first = i32[at[2 * SEGMENT_FIRST] : at[2 * SEGMENT_FIRST + 1]]
    return np.searchsorted(segment_first, entry, side="right") - 1


@inlined
def _write(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    entry: Int,
    segment: Int,
    constraint: Int,
    channel: Int,
    low: float,
    high: float,
) -> None:
    """Write the bounds of a constraint, and its bits if the channel has bitmaps in the segment."""
    bound = at[2 * BOUND] + 3 * constraint
    old_low, old_high = f64[bound], f64[bound + 1]
    f64[bound], f64[bound + 1] = low, high
    which = constraint - i32[_number(at, entry, E_FIRST)]
    probe = at[2 * PROBE] + 2 * (PROBES * np.int64(entry) + which)
    if which < PROBES and not np.isnan(f32[probe]):
        f32[probe], f32[probe + 1] = as_probe(low, high)
    begin = i32[at[2 * MAP_FIRST] + segment]
    for index in range(begin, i32[at[2 * MAP_FIRST] + segment + 1]):
        if i32[at[2 * MAP_CHANNEL] + index] == channel:
            first = i32[at[2 * SEGMENT_FIRST] + segment]
            width = (i32[at[2 * SEGMENT_FIRST] + segment + 1] - first + 63) >> 6
            span = np.int64(i32[at[2 * SPAN_START] + segment]) if index == begin else np.int64(-1)
            _write_bits(
                at, i32, i64, f64, u64, index, span, entry - first, width,
                old_low, old_high, low, high,
            )  # fmt: skip


@lean
def _write_bits(
    at: I64,
    i32: I32,
    i64: I64,
    f64: F64,
    u64: U64,
    index: Int,
    span: Int,
    place: Int,
    width: Int,
    old_low: float,
    old_high: float,
    low: float,
    high: float,
) -> None:
    """Write the bits of an entry in the bitmaps of a channel, and widen the spans of its cells.

    Only bits that change are touched: each stands in another line of memory.
    """
    edge = f64[at[2 * EDGE] : at[2 * EDGE + 1]]
    edge_at = i32[at[2 * MAP_EDGE] + index]
    cells = i32[at[2 * MAP_CELLS] + index]
    words_at = at[2 * WORD] + i64[at[2 * MAP_WORD] + index]
    word_at, bit = place >> 6, np.uint64(1) << np.uint64(place & 63)
    old_first, old_last = _cells_between(edge, edge_at, cells, old_low, old_high)
    if (
        low <= high
        and _is_in_cell(edge, edge_at, cells, old_first, low)
        and _is_in_cell(edge, edge_at, cells, old_last, high)
    ):
        first, last = old_first, old_last
    else:
        first, last = _cells_between(edge, edge_at, cells, low, high)
    for cell in range(old_first, old_last + 1):
        if not first <= cell <= last:
            u64[words_at + np.int64(cell) * width + word_at] &= ~bit
    for cell in range(first, last + 1):
        if old_first <= cell <= old_last:
            continue
        u64[words_at + np.int64(cell) * width + word_at] |= bit
        if span >= 0:
            span_first, span_last = (
                at[2 * SPAN_FIRST] + span + cell,
                at[2 * SPAN_LAST] + span + cell,
            )
            i32[span_first] = min(i32[span_first], word_at)
            i32[span_last] = max(i32[span_last], word_at + 1)


@inlined
def _is_in_cell(edge: F64, edge_at: Int, cells: Int, cell: Int, x: float) -> bool:
    is_above = cell == 0 or edge[edge_at + cell - 1] <= x
    return bool(is_above and (cell == cells - 1 or x < edge[edge_at + cell]))


@inlined
def _cells_between(edge: F64, edge_at: Int, cells: Int, low: float, high: float) -> tuple[Int, Int]:
    """The first and the last cell that a constraint reaches; all if it is the outside of bounds."""
    if low <= high:
        return cell_of(edge, edge_at, cells, low), cell_of(edge, edge_at, cells, high)
    return np.int64(0), np.int64(cells - 1)
