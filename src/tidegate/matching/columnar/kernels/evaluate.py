"""Evaluating functions of time, for the pairs that bounds alone cannot decide: the last step.

The kernels that find pairs mark those UNSURE whose value lies between what a function can be and
what it surely is during the time window. Here the functions of these pairs are evaluated, exactly
as the language says, and the pairs that do not match are dropped.

This is a pass of its own for two reasons. In the loops that find pairs, a call to the machine that
runs programs made every pair take three times as long (see check.py). And the motions of unsure
entries lie anywhere in memory: when many are needed, they can be fetched at the same time.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U8, Int
from tidegate.matching.columnar.kernels.part import (
    BEGIN,
    E_MOTION,
    E_SUBSCRIPTION,
    END,
    ENTRY_WORDS,
)
from tidegate.matching.rows.kernels.flags import GONE, UNSURE
from tidegate.matching.rows.kernels.functions import check_functions
from tidegate.matching.rows.kernels.jit import inlined, lean

BLOCK_PAIRS = 4096
"""How many pairs are handled at a time; the caller provides scratch space for their indexes."""

_LINE_WORDS = 8
"""Words of 64 bits in a cache line."""


@lean
def evaluate_unsure(
    at: I64,
    i32: I32,
    f64: F64,
    events: F64,
    times_us: I64,
    variables: F64,
    stack: F64,
    chosen: I32,
    pair_event: I32,
    pair_subscription: I32,
    pair_flags: U8,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Copy the pairs that match, in the same order; the pairs that are given are overwritten.

    UNSURE pairs are given with the number of the entry in ``pair_subscription``; all come out with
    that of the subscription. Returns how many there are, and all flags seen. ``stack`` and
    ``chosen`` are scratch space, of STACK_MAX floats and of BLOCK_PAIRS indexes. ``variables`` has
    a row for each event, or one for all.
    """
    entries = i32[at[BEGIN.entry] : at[END.entry]]
    motion = f64[at[BEGIN.motion] : at[END.motion]]
    program = i32[at[BEGIN.program] : at[END.program]]
    words = motion.view(np.int64)
    # Pairs are copied, with those that do not match left out, and not moved to the front of the
    # buffers: the result has to be copied out of the buffers anyway.
    kept, seen = np.int64(0), np.int64(0)
    for block in range(0, len(out_flags), BLOCK_PAIRS):
        stop = min(block + BLOCK_PAIRS, len(out_flags))
        # collect the unsure ones without a branch, as in scan.py
        count = np.int64(0)
        for pair in range(block, stop):
            chosen[count] = pair
            count += np.int64((pair_flags[pair] & UNSURE) != 0)
        # the sum is stored only so that the compiler cannot leave out the reads
        stack[0] = _read_ahead(chosen, count, pair_subscription, entries, motion)
        for index in range(count):
            pair = chosen[index]
            entry, event = ENTRY_WORDS * np.int64(pair_subscription[pair]), pair_event[pair]
            flags = check_functions(
                np.int64(pair_flags[pair]) ^ UNSURE, np.int64(entries[entry + E_MOTION]),
                np.int64(entries[entry + ENTRY_WORDS + E_MOTION]), motion, words, program,
                events, event, times_us[event], variables, stack,
            )  # fmt: skip
            pair_subscription[pair] = entries[entry + E_SUBSCRIPTION]
            # GONE, which no pair that was found has, marks those that do not match
            pair_flags[pair] = flags if flags >= 0 else GONE
        # each pair is written, and the next one over it if it does not match: no branch
        for pair in range(block, stop):
            flags = np.int64(pair_flags[pair])
            out_event[kept] = pair_event[pair]
            out_subscription[kept] = pair_subscription[pair]
            out_flags[kept] = flags
            matches = np.int64((flags & GONE) == 0)
            seen |= flags * matches
            kept += matches
    return kept, seen


@inlined
def _read_ahead(chosen: I32, count: Int, entry_of_pair: I32, entries: I32, motion: F64) -> float:
    """Read from all motions that are needed, so that memory fetches them at the same time.

    They lie anywhere. In the loop that evaluates them, each read would be waited for, because what
    is read next depends on it; here none depends on another. Two lines hold most motions whole.
    """
    read = 0.0
    for index in range(count):
        entry = ENTRY_WORDS * np.int64(entry_of_pair[chosen[index]])
        begin = np.int64(entries[entry + E_MOTION])
        last = np.int64(entries[entry + ENTRY_WORDS + E_MOTION]) - 1
        read += motion[begin] + motion[min(begin + _LINE_WORDS, last)]
    return read
