"""Writing the envelopes of moving bounds into the constraints of entries."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Int
from tidegate.matching.rows.kernels.envelopes import WindowArrays, envelope, margin_of
from tidegate.matching.rows.kernels.flags import MOVING
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.rows.kernels.motion import M_PIN, MOTION_WORDS, R_HEAD, channel_of, length_of
from tidegate.matching.tree.kernels.changing import change_bounds
from tidegate.matching.tree.kernels.layout import (
    BOUND_WORDS,
    E_FLAGS,
    E_MOTION,
    E_MOTION_END,
    E_PATHS,
    NONE,
    TreeArrays,
    entry_at,
    margin_at,
)
from tidegate.matching.tree.kernels.placing import place_entry
from tidegate.matching.tree.kernels.records import test_on


@lean
def enclose_entries(
    tree: TreeArrays, program: I32, entries: I64, window: WindowArrays, stack: F64
) -> Int:
    """Write the envelopes of entries for a time window, and place those that are not in the tree.

    Returns how many were enclosed and placed before there was no room.
    """
    for index in range(len(entries)):
        entry = entries[index]
        enclose(tree, entry, program, window, stack)
        if tree.entry[entry_at(entry, E_PATHS)] == NONE and not place_entry(tree, entry):
            return index
    return len(entries)


@lean
def enclose(tree: TreeArrays, entry: Int, program: I32, window: WindowArrays, stack: F64) -> None:
    """Write the envelopes of an entry; it is taken out of the tree if its way changes."""
    words, margins = tree.motion.view(np.int64), tree.bound.view(np.float32)
    begin = np.int64(tree.entry[entry_at(entry, E_MOTION)])
    end = np.int64(tree.entry[entry_at(entry, E_MOTION_END)])
    place, before = begin + MOTION_WORDS, np.int64(-1)
    while place < end:
        channel = channel_of(words[place + R_HEAD])
        place += length_of(words[place + R_HEAD])
        if channel == before:
            continue  # the two bounds of a range: one envelope encloses both
        before = channel
        test = test_on(tree, entry, channel)
        low, high, sure_low, sure_high = envelope(
            tree.motion, begin, end, program, 0, channel, window, stack
        )
        change_bounds(tree, entry, test, low, high)
        margins[margin_at(BOUND_WORDS * test)] = margin_of(low, high, sure_low, sure_high)


@lean
def pin_entries(tree: TreeArrays, entries: I64, pin: Int) -> None:
    """Have the functions of entries evaluated as of another time (M_PIN in motion.py)."""
    words = tree.motion.view(np.int64)
    for index in range(len(entries)):
        if tree.entry[entry_at(entries[index], E_FLAGS)] & MOVING:
            words[tree.entry[entry_at(entries[index], E_MOTION)] + M_PIN] = pin
