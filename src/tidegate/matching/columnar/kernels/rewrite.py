"""Changing entries in place: for an update, for a new time window, and for a new pin.

An update carries out a plan (rewrite_plan.py): it computes new bounds from the cells of the row and
writes new constants into the motion. A new time window needs new envelopes of the bounds that move
(envelopes.py). Both end in `write_bounds`.

The kernels here get a part packed, as those that match do, and have it for themselves: the matcher
holds its lock alone. All of them are ``lean``, and what they call for every entry is inlined, so
that handing on a part as a tuple costs nothing (see PackedPart).
"""

from __future__ import annotations

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
from tidegate.matching.columnar.kernels.write_bounds import (
    cluster_of,
    constraint_on,
    entry_word,
    write_bounds,
)
from tidegate.matching.rows.kernels.envelopes import WindowArrays, envelope, margin_of
from tidegate.matching.rows.kernels.flags import DEAD, GONE, MOVING
from tidegate.matching.rows.kernels.jit import lean, lean_inlined
from tidegate.matching.rows.kernels.motion import (
    M_PIN,
    MOTION_WORDS,
    R_HEAD,
    channel_of,
    length_of,
)
from tidegate.matching.rows.kernels.plan_values import (
    CellArrays,
    PlannedRows,
    first_change,
    fits,
    new_bounds,
    write_words,
)
from tidegate.matching.rows.kernels.rewrite_plan import DONE, MOVED, NOT_IN_PLACE, OTHER_KINDS


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
    variables: F64,
    scratch: F64,
) -> Int:
    """Write new bounds and a new motion of an entry, as a plan says (rewrite_plan.py).

    ``row`` is where the cells of its subscription begin, which have their new values already.
    Returns OTHER_KINDS, before anything is written, if the plan was made for cells of other kinds.
    After NOT_IN_PLACE some bounds may have been written; the caller replaces the entry then. After
    MOVED the caller encloses it, with a kernel that is not compiled where nothing moves.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    return _rewrite(plan, CellArrays(kinds, cells), row, part, entry, variables, scratch)


@lean
def rewrite_entries(
    planned: PlannedRows,
    cells: CellArrays,
    part: PackedPart,
    entries: I32,
    variables: F64,
    scratch: F64,
    outcomes: U8,
) -> None:
    """As ``rewrite_entry`` for many entries of a part; writes the outcome of each.

    Takes tuples of arrays: what they cost at the call (see PackedPart) is shared by all entries.
    """
    for index in range(len(entries)):
        which = planned.plan_of[index]
        plan = planned.plans[planned.first[which] : planned.first[which + 1]]
        outcomes[index] = _rewrite(
            plan, cells, planned.rows[index], part, np.int64(entries[index]), variables, scratch
        )


@lean_inlined
def _rewrite(
    plan: I32,
    cells: CellArrays,
    row: Int,
    part: PackedPart,
    entry: Int,
    variables: F64,
    scratch: F64,
) -> Int:
    """See ``rewrite_entry``."""
    if not fits(plan, cells, row):
        return OTHER_KINDS
    if part.i32[entry_word(part, entry, E_FLAGS)] & DEAD:
        return NOT_IN_PLACE  # its bounds may be anything
    cluster = cluster_of(part, entry)
    changes, place = first_change(plan)
    for _ in range(changes):
        channel, low, high, is_exact, place = new_bounds(
            plan, place, cells, row, variables, scratch
        )
        if not is_exact:
            return NOT_IN_PLACE
        constraint = constraint_on(part, entry, channel)
        if constraint < 0:
            return NOT_IN_PLACE  # it is in the key of the cluster, or there are two
        write_bounds(part, entry, cluster, constraint, np.int64(channel), low, high)
    motion = part.at[BEGIN.motion] + part.i32[entry_word(part, entry, E_MOTION)]
    return MOVED if write_words(plan, place, cells, row, part.f64, motion) else DONE


# -- envelopes ------------------------------------------------------------------------------------


@lean
def enclose_moved(
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
) -> None:
    """Write the envelopes of some entries, whose motions have new constants."""
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    for entry in entries:
        _enclose(part, np.int64(entry), cluster_of(part, entry), window, scratch)


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
                _enclose(part, np.int64(entry), np.int64(cluster), window, scratch)


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
