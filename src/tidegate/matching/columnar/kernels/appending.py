"""Appending entries to the open part in place.

The open part is one cluster without bitmaps and has room behind each field that grows: a new entry
is written behind the last one, and the ends of the fields move. So an addition costs the same
however many entries the part has. Readers are kept out meanwhile, as from every change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, Int
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BEGIN,
    BOUND_WORDS,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    E_SUBSCRIPTION,
    END,
    ENTRY_WORDS,
    PROBES,
    PackedPart,
    Part,
    pack,
)
from tidegate.matching.rows.kernels.constraints import as_probe
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.kernels.jit import lean


class Room(NamedTuple):
    """How many entries, constraints and words of motion a part has room for in all."""

    entries: int
    constraints: int
    motion: int

    def packed(self, part: Part) -> PackedPart:
        """A part packed with this room behind its fields; what it has must fit."""
        return pack(
            part,
            {
                "entry": ENTRY_WORDS * (self.entries - part.entries),
                "probe_channel": PROBES * (self.entries - part.entries),
                "probe": 2 * PROBES * (self.entries - part.entries),
                "bound": BOUND_WORDS * self.constraints - len(part.bound),
                "motion": self.motion - len(part.motion),
            },
        )

    def has(self, entries: int, constraints: int, motion: int) -> bool:
        """Whether so many in all have room."""
        return entries <= self.entries and constraints <= self.constraints and motion <= self.motion


@lean
def append_entries(
    at: I64,
    i32: I32,
    f32: F32,
    f64: F64,
    subscription: I32,
    flags: I32,
    first: I32,
    channel: I32,
    low: F64,
    high: F64,
    motion_first: I32,
    motion: F64,
) -> Int:
    """Append entries to a part that is one cluster without bitmaps and has room for them.

    They are given as in `Entries`, and are searched as soon as this returns. Returns one more than
    the largest of their channels, 0 if they have none.
    """
    columns = np.int64(0)
    entry = (at[END.entry] - at[BEGIN.entry]) // ENTRY_WORDS - 1
    last = at[BEGIN.entry] + ENTRY_WORDS * entry  # the one more entry, of which only ends count
    constraint, moved = np.int64(i32[last + E_FIRST]), np.int64(i32[last + E_MOTION])
    bits = f64.view(np.int64)
    for index in range(len(subscription)):
        word = at[BEGIN.entry] + ENTRY_WORDS * entry
        i32[word + E_SUBSCRIPTION] = subscription[index]
        i32[word + E_FLAGS] = flags[index]
        for probe in range(PROBES):
            place = PROBES * entry + probe
            i32[at[BEGIN.probe_channel] + place] = 0
            short = at[BEGIN.probe] + 2 * place
            f32[short], f32[short + 1] = np.nan, np.nan
            source = first[index] + probe
            if (
                source < first[index + 1]
                and channel[source] < SET
                and not low[source] > high[source]
            ):
                i32[at[BEGIN.probe_channel] + place] = channel[source]
                f32[short], f32[short + 1] = as_probe(low[source], high[source])
        for source in range(first[index], first[index + 1]):
            bound = at[BEGIN.bound] + BOUND_WORDS * constraint
            f64[bound + B_LOW], f64[bound + B_HIGH] = low[source], high[source]
            bits[bound + B_CHANNEL] = channel[source]
            columns = max(columns, np.int64(channel[source] & ~SET) + 1)
            constraint += 1
        for source in range(motion_first[index], motion_first[index + 1]):
            # as integers, which keeps all bits of a NaN
            bits[at[BEGIN.motion] + moved] = motion.view(np.int64)[source]
            moved += 1
        entry += 1
        word += ENTRY_WORDS
        i32[word + E_FIRST], i32[word + E_MOTION] = constraint, moved
        i32[word + E_SUBSCRIPTION] = i32[word + E_FLAGS] = 0
    at[END.entry] = at[BEGIN.entry] + ENTRY_WORDS * (entry + 1)
    at[END.probe_channel] = at[BEGIN.probe_channel] + PROBES * entry
    at[END.probe] = at[BEGIN.probe] + 2 * PROBES * entry
    at[END.bound] = at[BEGIN.bound] + BOUND_WORDS * constraint
    at[END.motion] = at[BEGIN.motion] + moved
    i32[at[BEGIN.cluster_first] + 1] = entry
    return columns
