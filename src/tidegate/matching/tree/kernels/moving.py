"""Writing the envelopes of moving bounds into the constraints of entries."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Int
from tidegate.matching.rows.kernels.envelopes import WindowArrays, envelope, margin_of
from tidegate.matching.rows.kernels.jit import lean
from tidegate.matching.rows.kernels.motion import M_PIN, MOTION_WORDS, R_HEAD, channel_of, length_of
from tidegate.matching.tree.kernels.layout import (
    B_HIGH,
    B_LOW,
    BOUND_WORDS,
    E_MOTION,
    E_MOTION_END,
    TreeArrays,
    bound_at,
    entry_at,
    margin_at,
)
from tidegate.matching.tree.kernels.records import test_on


@lean
def enclose_entries(
    tree: TreeArrays,
    motion: F64,
    program: I32,
    entries: I64,
    times: I64,
    variables: F64,
    stack: F64,
) -> None:
    """Write the envelopes of entries for a time window; none of them may be in the tree."""
    window = WindowArrays(times, variables)
    words, margins = motion.view(np.int64), tree.bound.view(np.float32)
    for index in range(len(entries)):
        entry = entries[index]
        begin = np.int64(tree.entry[entry_at(entry, E_MOTION)])
        end = np.int64(tree.entry[entry_at(entry, E_MOTION_END)])
        place, before = begin + MOTION_WORDS, np.int64(-1)
        while place < end:
            channel = channel_of(words[place + R_HEAD])
            place += length_of(words[place + R_HEAD])
            if channel == before:
                continue  # the two bounds of a range: one envelope encloses both
            before = channel
            constraint = test_on(tree, entry, channel)
            low, high, sure_low, sure_high = envelope(
                motion, begin, end, program, 0, channel, window, stack
            )
            tree.bound[bound_at(constraint, B_LOW)] = low
            tree.bound[bound_at(constraint, B_HIGH)] = high
            margins[margin_at(BOUND_WORDS * constraint)] = margin_of(low, high, sure_low, sure_high)


@lean
def pin_entries(tree: TreeArrays, motion: F64, entries: I64, pin: Int) -> None:
    """Have the functions of entries evaluated as of another time (M_PIN in motion.py)."""
    for index in range(len(entries)):
        begin = tree.entry[entry_at(entries[index], E_MOTION)]
        motion.view(np.int64)[begin + M_PIN] = pin
