"""Carrying out the plans of updates (rows/kernels/rewrite_plan.py) on entries of the tree.

An update writes new bounds over the old ones and new constants into the motion, whose envelopes
follow from them for the present time window. An entry that has to take other branches is taken out
of the tree before (changing.py), and placed again at the end. If there is no room for that, it
stays out and the kernel returns; called again after the arrays have grown, it finds nothing to
change but an entry to place.
"""

from __future__ import annotations

from tidegate.matching.arrays import F64, I32, I64, U8, U64, Int
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.flags import ANEW, DEAD
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.rows.kernels.plan_values import (
    CellArrays,
    PlannedRows,
    first_change,
    fits,
    new_bounds,
    write_words,
)
from tidegate.matching.rows.kernels.rewrite_plan import DONE, NOT_IN_PLACE, OTHER_KINDS
from tidegate.matching.tree.kernels.changing import change_bounds
from tidegate.matching.tree.kernels.descending import NO_ROOM
from tidegate.matching.tree.kernels.layout import (
    E_FLAGS,
    E_MOTION,
    E_PATHS,
    NONE,
    TreeArrays,
    entry_at,
)
from tidegate.matching.tree.kernels.moving import enclose
from tidegate.matching.tree.kernels.placing import place_entry
from tidegate.matching.tree.kernels.records import test_on

# A single update takes the arrays of a tree one by one. With named tuples as arguments, whose types
# Numba looks up at each call, the call alone took 3.5 µs in place of 1.1. Where one call serves
# many entries, that does not matter.


@lean
def rewrite_entry(
    head: I64,
    node: F64,
    tie: I32,
    path: I32,
    slot: I64,
    level_of: I32,
    channel_at: I32,
    extent: F64,
    tests: I64,
    entry: I32,
    bound: F64,
    motion: F64,
    links: U64,
    sure: U64,
    may: U64,
    number: Int,
    plan: I32,
    kinds: U8,
    cells: I64,
    row: Int,
    program: I32,
    times: I64,
    variables: F64,
    scratch: F64,
) -> Int:
    """Write new bounds and a new motion of an entry, as a plan says; returns an outcome of plans.

    The tree is given as its arrays, the entry by its ``number``. ``row`` is where the cells of its
    subscription begin, which have their new values already.
    Returns OTHER_KINDS, before anything is written, if the plan was made for cells of other kinds.
    After NOT_IN_PLACE some bounds may have been written; the caller replaces the entry then. After
    NO_ROOM it has the arrays grow and calls again.
    """
    tree = TreeArrays(
        head, node, tie, path, slot, level_of, channel_at, extent, tests, entry, bound, motion,
        links, sure, may,
    )  # fmt: skip
    window = WindowArrays(times, variables)
    return _rewrite(tree, number, plan, CellArrays(kinds, cells), row, program, window, scratch)


@lean
def _rewrite(
    tree: TreeArrays,
    entry: Int,
    plan: I32,
    cells: CellArrays,
    row: Int,
    program: I32,
    window: WindowArrays,
    scratch: F64,
) -> Int:
    """See ``rewrite_entry``."""
    if not fits(plan, cells, row):
        return OTHER_KINDS
    if tree.entry[entry_at(entry, E_FLAGS)] & (DEAD | ANEW):
        return NOT_IN_PLACE  # its bounds may be anything, or are on other channels as well
    changes, place = first_change(plan)
    for _ in range(changes):
        channel, low, high, is_exact, place = new_bounds(
            plan, place, cells, row, window.variables, scratch
        )
        test = test_on(tree, entry, channel)
        if not is_exact or test == NONE:
            return NOT_IN_PLACE
        change_bounds(tree, entry, test, low, high)
    motion = tree.entry[entry_at(entry, E_MOTION)]
    words = write_words(plan, place, cells, row, tree.motion, motion)
    if words and len(window.times):
        enclose(tree, entry, program, window, scratch)
    if tree.entry[entry_at(entry, E_PATHS)] == NONE and not place_entry(tree, entry):
        return NO_ROOM
    return DONE


@lean
def rewrite_entries(
    tree: TreeArrays,
    planned: PlannedRows,
    cells: CellArrays,
    entries: I64,
    begin: Int,
    program: I32,
    window: WindowArrays,
    scratch: F64,
    outcomes: U8,
) -> Int:
    """As ``rewrite_entry`` for many entries, from one of them on; writes the outcome of each.

    NONE in place of an entry is skipped. Returns for which entry there was no room, or the end.
    """
    for index in range(begin, len(entries)):
        if entries[index] == NONE:
            continue
        which = planned.plan_of[index]
        plan = planned.plans[planned.first[which] : planned.first[which + 1]]
        outcome = _rewrite(
            tree, entries[index], plan, cells, planned.rows[index], program, window, scratch
        )
        if outcome == NO_ROOM:
            return index
        outcomes[index] = outcome
    return len(entries)
