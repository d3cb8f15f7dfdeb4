"""A part of the index with what the index knows about it, and the open part, which grows in place.

The open part is flat: one cluster without bitmaps. It has room behind its arrays
(kernels/appending.py), so a few new entries are written behind the others and cost the same however
many there are. Once they do not fit, the part is made anew, with twice the room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tidegate.matching.arrays import I32, I64
from tidegate.matching.columnar.kernels.appending import Room, append_entries
from tidegate.matching.columnar.kernels.layout import flat
from tidegate.matching.columnar.kernels.link_bits import LinkBits
from tidegate.matching.columnar.kernels.part import (
    BEGIN,
    BOUND_WORDS,
    E_FLAGS,
    END,
    ENTRY_WORDS,
    PackedPart,
    Part,
    pack,
    unpack,
)
from tidegate.matching.columnar.kernels.rewrite import enclose_entries
from tidegate.matching.rows.kernels.entry_lists import Entries, no_entries
from tidegate.matching.rows.kernels.envelopes import WindowArrays
from tidegate.matching.rows.kernels.flags import GONE, MOVING, ORDINAL_SHIFT, SET
from tidegate.matching.rows.kernels.plan_values import SCRATCH_FLOATS
from tidegate.matching.rows.time_window import EventTimes

SPARE_CONSTRAINTS, SPARE_MOTION = 4, 512
"""The room of a growing part is at least so many constraints for each entry, and words of motion;
and twice what it has."""


class IndexPart:
    """A part, packed for the kernels and as its fields; both are views of the same memory.

    ``columns`` is that of a loaded part, which need not be read to find it out.
    """

    def __init__(
        self, packed: PackedPart, lifetime: int | None = None, columns: int | None = None
    ) -> None:
        self.packed: PackedPart = packed
        self._part: Part | None = unpack(packed)
        self._length = self.part.entries
        self._room = Room(0, 0, 0)
        self._program = packed.i32[:0]
        """The code that motions which are appended may refer to."""
        self._flags_at = packed.at.item(BEGIN.entry) + E_FLAGS
        self.cluster_entries_max = int(np.diff(self.part.cluster_first).max(initial=0))
        self.has_motion = len(self.part.motion) > 0
        self.needs_lookup = self.part.needs_lookup
        self.removed = 0
        self.columns = _columns_of(self.part) if columns is None else columns
        """How many columns of events kernels may look at in this part, or more."""
        self.enclosed = 0
        """How many entries, from the first on, are enclosed for the coming time window."""
        self.is_flat = False
        """Whether it was too large to be laid out at once; the open part does not count."""
        self.windows = 0
        """Time windows since the part was laid out."""
        self.changed: list[int] | None = None
        """Entries that have changed since the part is copied to another one; None if it is not."""
        self.link_bits: LinkBits | None = None
        # All lifetimes of the part lie in this interval. Rewriting changes no lifetime, and removed
        # entries only make it wider than needed, so it is right until the part is laid out again.
        self._lifetimes = (-np.inf, np.inf)
        if lifetime is not None:
            mine = self.part.channel == lifetime
            low, high = self.part.low[mine], self.part.high[mine]
            self._lifetimes = low.min(initial=np.inf), high.max(initial=-np.inf)

    @classmethod
    def growing(cls, entries: Entries, program: I32, entries_max: int) -> IndexPart:
        """A flat part of some entries, with room for so many in all."""
        room = Room(
            max(entries_max, len(entries)),
            max(SPARE_CONSTRAINTS * entries_max, 2 * len(entries.channel)),
            2 * len(entries.motion) + SPARE_MOTION,
        )
        part = flat(entries, program)
        made = cls(room.packed(part))
        made._room, made._program = room, program
        return made

    @classmethod
    def empty(cls) -> IndexPart:
        """A part without entries or room."""
        return cls(pack(flat(no_entries(), np.zeros(1, np.int32))))

    def __len__(self) -> int:
        return self._length

    @property
    def part(self) -> Part:
        """Its fields, as views of the packed arrays."""
        if self._part is None:
            self._part = unpack(self.packed)
        return self._part

    def has_room_for(self, entries: Entries, program: I32) -> bool:
        """Whether entries can be appended; ``program`` is what their motions refer to."""
        if len(entries.motion) and program is not self._program:
            return False
        at = self.packed.at
        return self._room.has(
            self._length + len(entries),
            (at.item(END.bound) - at.item(BEGIN.bound)) // BOUND_WORDS + len(entries.channel),
            at.item(END.motion) - at.item(BEGIN.motion) + len(entries.motion),
        )

    def append(self, entries: Entries) -> None:
        """Append entries, for which there is room; their moving bounds are not enclosed."""
        at, i32, _, f32, f64, _, _ = self.packed
        columns = append_entries(
            at, i32, f32, f64, entries.subscription, entries.flags, entries.first, entries.channel,
            entries.low, entries.high, entries.motion_first, entries.motion,
        )  # fmt: skip
        self._part = None
        self._length += len(entries)
        self.cluster_entries_max = self._length
        self.has_motion |= len(entries.motion) > 0
        self.columns = max(self.columns, columns)

    def flag(self, entry: int) -> int:
        """The flags of an entry."""
        return self.packed.i32.item(self._flags_at + ENTRY_WORDS * entry)

    def flag_gone(self, entries: Iterable[int]) -> None:
        """Flag entries as removed."""
        for entry in entries:
            self.packed.i32[self._flags_at + ENTRY_WORDS * entry] |= GONE
            self.removed += 1

    def note_changed(self, entries: Iterable[int]) -> None:
        """Note entries that were written or removed, in case they are copied elsewhere."""
        if self.changed is not None:
            self.changed.extend(entries)

    def by_place(self, entries: list[int], plans: Mapping[int, I32]) -> dict[int, I32] | None:
        """Plans by place in place of by ordinal, for entries of a subscription.

        None if a plan has no entry, as after a snapshot that was written without ordinals.
        """
        if len(entries) == 1 == len(plans):
            return dict(zip(entries, plans.values(), strict=True))
        places = {self.flag(each) >> ORDINAL_SHIFT: each for each in entries}
        if not plans.keys() <= places.keys():
            return None
        return {places[ordinal]: plan for ordinal, plan in plans.items()}

    def enclose(self, begin: int, end: int, window: WindowArrays) -> None:
        """Write the envelopes of the entries from ``begin`` to before ``end``."""
        enclose_entries(
            *self.packed, begin, end, window.times, window.variables, np.empty(SCRATCH_FLOATS)
        )

    def may_match(self, times: EventTimes) -> bool:
        """Whether the part has entries that events of these times could match."""
        begin, end = self._lifetimes
        return len(self) > 0 and (begin == -np.inf or (times.begin <= end and begin <= times.end))


def _columns_of(part: Part) -> int:
    """One more than the largest channel that a part refers to."""
    return max(
        _columns_for(part.channel),
        _columns_for(part.group_channel),
        _columns_for(part.map_channel),
    )


def _columns_for(channels: I32 | I64) -> int:
    """One more than the largest of some channels."""
    return int((channels & ~SET).max(initial=-1)) + 1


def enclosed(entries: Entries, program: I32, window: WindowArrays) -> Entries:
    """Entries whose moving bounds are replaced by their envelopes.

    The kernel encloses the entries of a part, so a flat one is made of them for the moment.
    """
    if not np.any(entries.flags & MOVING):
        return entries
    flat_part = IndexPart(pack(flat(entries, program)))
    flat_part.enclose(0, len(entries), window)
    part = flat_part.part
    return replace(entries, low=part.low.copy(), high=part.high.copy())
