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
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BEGIN,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
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
from tidegate.matching.rows.kernels.flags import (
    ANEW,
    DEAD,
    GONE,
    MOVING,
    ORDINAL_SHIFT,
    SHARED,
)
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
    if part.i32[entry_word(part, entry, E_FLAGS)] & (DEAD | ANEW):
        return NOT_IN_PLACE  # its bounds may be anything, or are on other channels as well
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


@lean
def copy_rewritten(
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
    channel: I32,
    low: F64,
    high: F64,
    variables: F64,
    scratch: F64,
) -> Int:
    """Write the constraints of an entry, its key among them, with the new bounds of a plan.

    For an entry whose key changes, which belongs to another cluster then, and for the others of
    its subscription, which are to be in the same part: they have no plan, one of no length. A copy
    is many times quicker than making the entry anew from its row. Constraints are written to
    ``channel``, ``low`` and ``high``, by ascending channel. Returns how many there are, -1 if the
    entry cannot be copied.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    rows = CellArrays(kinds, cells)
    if len(plan) and not fits(plan, rows, row):
        return -1
    if i32[entry_word(part, entry, E_FLAGS)] & (DEAD | MOVING | GONE | ANEW):
        return -1  # these flags, or the motion, may have to change with the cells
    count = _copy_constraints(part, entry, channel, low, high)
    if count < 0 or not len(plan):
        return count
    changes, change = first_change(plan)
    for _ in range(changes):
        which, new_low, new_high, is_exact, change = new_bounds(
            plan, change, rows, row, variables, scratch
        )
        found = np.searchsorted(channel[:count], which)
        if found == count or channel[found] != which:
            return -1
        twice = found + 1 < count and channel[found + 1] == which
        if not is_exact or new_low != new_low or twice:
            return -1
        low[found], high[found] = new_low + 0.0, new_high + 0.0  # -0.0 is not hashed as 0.0
    return count


@lean_inlined
def _copy_constraints(part: PackedPart, entry: Int, channel: I32, low: F64, high: F64) -> Int:
    """Write the constraints of an entry, by ascending channel; -1 if they have no room there."""
    at, i32, f64 = part.at, part.i32, part.f64
    cluster = cluster_of(part, entry)
    group = i32[at[BEGIN.cluster_group] + cluster]
    key_first = np.int64(i32[at[BEGIN.group_first] + group])
    keys = i32[at[BEGIN.group_first] + group + 1] - key_first
    first = np.int64(i32[entry_word(part, entry, E_FIRST)])
    rest = i32[entry_word(part, entry + 1, E_FIRST)] - first
    if keys + rest > len(channel):
        return np.int64(-1)
    bits = f64.view(np.int64)
    key_value = at[BEGIN.key_value] + i32[at[BEGIN.cluster_key] + cluster]
    for index in range(keys + rest):
        bound = at[BEGIN.bound] + BOUND_WORDS * (first + index - keys)
        if index < keys:
            new = np.int64(i32[at[BEGIN.group_channel] + key_first + index])
            new_low = f64[key_value + index]
            new_high = new_low
        else:
            new = bits[bound + B_CHANNEL] & CHANNEL_MASK
            new_low, new_high = f64[bound + B_LOW], f64[bound + B_HIGH]
        place = index
        while place > 0 and channel[place - 1] > new:
            channel[place], low[place], high[place] = (
                channel[place - 1], low[place - 1], high[place - 1],
            )  # fmt: skip
            place -= 1
        channel[place], low[place], high[place] = new, new_low, new_high
    return keys + rest


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
def enclose_entries(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    begin: Int,
    end: Int,
    times: I64,
    variables: F64,
    scratch: F64,
) -> None:
    """Write the envelopes of the entries from ``begin`` to before ``end`` whose bounds move.

    Cluster by cluster, because bits are found by cluster, and looking it up for each entry would
    cost a bisection.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    window = WindowArrays(times, variables)
    entry = begin
    while entry < end:
        cluster = cluster_of(part, entry)
        stop = min(end, np.int64(part.i32[part.at[BEGIN.cluster_first] + cluster + 1]))
        while entry < stop:
            # those that are gone are never matched, so their envelopes may be out of date
            if part.i32[entry_word(part, entry, E_FLAGS)] & (MOVING | GONE) == MOVING:
                _enclose(part, entry, cluster, window, scratch)
            entry += 1


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


# -- entries of a part that is built beside -------------------------------------------------------


@lean
def copy_changes(
    old: PackedPart,
    new: PackedPart,
    old_entries: I64,
    new_entries: I64,
    window: WindowArrays,
    scratch: F64,
    outcomes: U8,
) -> None:
    """Bring entries of a new part up to date with those of an old one that they are copies of.

    The envelopes of moving bounds are written for the window of the new part. An outcome is
    NOT_IN_PLACE if a bound that was a single value, and a key in the new part, is another one now.
    """
    for index in range(len(old_entries)):
        outcomes[index] = _copy_entry(
            old, new, old_entries[index], new_entries[index], window, scratch
        )


@lean_inlined
def _copy_entry(
    old: PackedPart, new: PackedPart, source: Int, entry: Int, window: WindowArrays, stack: F64
) -> Int:
    flags = old.i32[entry_word(old, source, E_FLAGS)]
    if flags & GONE:
        new.i32[entry_word(new, entry, E_FLAGS)] |= GONE
        return DONE
    cluster = cluster_of(new, entry)
    # Of entries that share a subscription and have no ordinals it is not known which of them is a
    # copy of which. They are never rewritten, only pinned, all of them alike.
    is_known = not flags & SHARED or flags >> ORDINAL_SHIFT != 0
    if is_known:
        words = old.f64.view(np.int64)
        begin = old.i32[entry_word(old, source, E_FIRST)]
        for index in range(begin, old.i32[entry_word(old, source + 1, E_FIRST)]):
            bound = old.at[BEGIN.bound] + BOUND_WORDS * np.int64(index)
            channel = words[bound + B_CHANNEL] & CHANNEL_MASK
            if constraint_on(old, source, channel) < 0:
                continue  # two on one channel: such bounds are not written in place
            low, high = old.f64[bound + B_LOW], old.f64[bound + B_HIGH]
            constraint = constraint_on(new, entry, channel)
            if constraint >= 0:
                write_bounds(new, entry, cluster, constraint, channel, low, high)
            elif not _agrees_with_key(new, cluster, channel, low, high):
                return NOT_IN_PLACE
    if flags & MOVING and new.i32[entry_word(new, entry, E_FLAGS)] & MOVING:
        _copy_motion(old, new, source, entry, not is_known)
        if len(window.times):
            _enclose(new, entry, cluster, window, stack)
    return DONE


@lean_inlined
def _agrees_with_key(part: PackedPart, cluster: Int, channel: Int, low: float, high: float) -> bool:
    """Whether bounds are the value that the key of a cluster has on a channel, if it has one."""
    group = part.i32[part.at[BEGIN.cluster_group] + cluster]
    first = part.i32[part.at[BEGIN.group_first] + group]
    key = part.at[BEGIN.key_value] + part.i32[part.at[BEGIN.cluster_key] + cluster]
    for index in range(first, part.i32[part.at[BEGIN.group_first] + group + 1]):
        if part.i32[part.at[BEGIN.group_channel] + index] == channel:
            value = part.f64[key + index - first]
            return bool(low == value and high == value)
    return True


@lean_inlined
def _copy_motion(old: PackedPart, new: PackedPart, source: Int, entry: Int, only_pin: bool) -> None:
    """Copy the motion of an entry, or its pin only; as integers, which keeps all bits of a NaN."""
    words, new_words = old.f64.view(np.int64), new.f64.view(np.int64)
    begin = old.at[BEGIN.motion] + old.i32[entry_word(old, source, E_MOTION)]
    end = old.at[BEGIN.motion] + old.i32[entry_word(old, source + 1, E_MOTION)]
    target = new.at[BEGIN.motion] + new.i32[entry_word(new, entry, E_MOTION)]
    if only_pin:
        new_words[target + M_PIN] = words[begin + M_PIN]
        return
    for word in range(end - begin):
        new_words[target + word] = words[begin + word]


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
