"""A part of the index: its arrays, and how they are handed to a kernel.

Entries, groups and segments are explained in kernels.py, which reads them, and in layout.py, which
makes them; bitmaps in scanning.py and bitmaps.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64

DEAD, VERIFY, SHARED, MOVING, GONE, UNSURE = 1, 2, 4, 8, 16, 32
"""Flags of an entry: matches nothing with its present values; to be checked again by the meaning of
the language; one of several entries of its subscription; with bounds that are functions of time;
its subscription was removed or stands elsewhere now. And of a pair that was found: its functions of
time are still to be evaluated."""

CHANNEL_MASK = 0xFFFFFFFF
"""The lower half of a constraint's third word is its channel, as an integer. The upper half is a
float, the margin: by so much must a value lie inside of bounds that move to be surely within."""

SET = 1 << 30
"""Channels with this bit hold a set of numbers; a constraint asks that one is in it, or not."""

EMPTY_SLOT = np.int32(-1)
EXACT_MAX = 2.0**53
"""Floats of this size or more may stand for several integers."""


PROBES = 2
"""So many constraints of an entry are also kept in short, to be checked before all else is read."""

E_SUBSCRIPTION, E_FLAGS, E_FIRST, E_MOTION, ENTRY_NUMBERS = range(5)
"""What is known of an entry, together in memory: its subscription, its flags, where its constraints
begin, where its motion begins; and how many numbers these are."""


class Part(NamedTuple):
    """A part of the index, as arrays. Numbers of segments, words and so on are 32 bits wide."""

    # entries, in the order of their segments
    entry: I32  # four numbers for each, below; one more entry at the end
    probe_channel: (
        I32  # the channels of an entry's first constraints; -1 where that is no plain one
    )
    probe: F32  # their bounds, two for each, rounded away from each other
    bound: F64  # three words for each constraint: low, high, and a third, see CHANNEL_MASK
    # groups: the channels whose values together choose a segment
    group_first: I32  # where the channels of a group begin; one more at the end
    group_channel: I32
    group_salt: U64
    slot_hash: U64  # an open hash table from (group, values) to a segment
    slot_segment: I32
    # segments
    segment_first: I32  # where the entries of a segment begin; one more at the end
    segment_group: I32
    segment_key: I32  # where the values of a segment's key stand
    segment_dense: U8  # whether its bitmaps have so many bits that all are ANDed at once
    key_value: F64
    # bitmaps: channels of a segment, the most selective first
    map_first: I32  # where the bitmap channels of a segment begin; one more at the end
    map_channel: I32
    map_cells: I32  # how many cells; one more bitmap, the last, is for events without a value
    map_edge: I32  # where the borders between cells stand
    map_word: I64  # where the bitmaps stand
    edge: F64
    word: U64
    span_first: I32  # words with bits, by cell of a segment's first bitmap channel
    span_last: I32
    span_start: I32  # where the spans of a segment begin
    # constraints whose bounds move: see programs.py
    motion: F64
    program: I32

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return len(self.entry) // ENTRY_NUMBERS - 1

    @property
    def subscription(self) -> I32:
        """Which subscription each entry belongs to."""
        return self._of_entries(E_SUBSCRIPTION)[:-1]

    @property
    def flags(self) -> I32:
        """The flags of each entry."""
        return self._of_entries(E_FLAGS)[:-1]

    @property
    def first(self) -> I32:
        """Where the constraints of each entry begin, and where the last ends."""
        return self._of_entries(E_FIRST)

    @property
    def motion_first(self) -> I32:
        """Where the motion of each entry begins, and where the last ends."""
        return self._of_entries(E_MOTION)

    def _of_entries(self, which: int) -> I32:
        return self.entry.reshape(-1, ENTRY_NUMBERS)[:, which]


(
    ENTRY, PROBE_CHANNEL, PROBE, BOUND, GROUP_FIRST, GROUP_CHANNEL,
    GROUP_SALT, SLOT_HASH, SLOT_SEGMENT, SEGMENT_FIRST, SEGMENT_GROUP, SEGMENT_KEY,
    SEGMENT_DENSE, KEY_VALUE, MAP_FIRST, MAP_CHANNEL, MAP_CELLS, MAP_EDGE,
    MAP_WORD, EDGE, WORD, SPAN_FIRST, SPAN_LAST, SPAN_START,
    MOTION, PROGRAM,
) = range(26)  # fmt: skip
"""The fields of a part, by number."""


class PackedPart(NamedTuple):
    """A part as few arrays, which is quick to hand to a kernel.

    ``at`` says where each field begins and ends in the array of its type.
    """

    at: I64
    i32: I32
    i64: I64
    f32: F32
    f64: F64
    u64: U64
    u8: U8


_TYPES = ("i32", "i64", "f32", "f64", "u64", "u8")
_DTYPES = (np.int32, np.int64, np.float32, np.float64, np.uint64, np.uint8)


def pack(part: Part) -> PackedPart:
    """Put the fields of a part together, those of one type in one array."""
    at = np.zeros(2 * len(part), np.int64)
    arrays: dict[str, Any] = {}
    for name, dtype in zip(_TYPES, _DTYPES, strict=True):
        chosen = [index for index, kind in enumerate(_TYPE_OF_FIELD) if kind == name]
        ends = np.cumsum([0, *(len(part[index]) for index in chosen)])
        for place, index in enumerate(chosen):
            at[2 * index], at[2 * index + 1] = ends[place], ends[place + 1]
        arrays[name] = np.concatenate([part[index] for index in chosen]).astype(dtype)
    return PackedPart(at, **arrays)


def entry_numbers(subscription: I32, flags: U8, first: I32, motion_first: I32) -> I32:
    """What is known of entries, as a part has it."""
    numbers = np.zeros((len(first), ENTRY_NUMBERS), np.int32)
    numbers[:-1, E_SUBSCRIPTION] = subscription
    numbers[:-1, E_FLAGS] = flags
    numbers[:, E_FIRST] = first
    numbers[:, E_MOTION] = motion_first
    return numbers.ravel()


def unpack(packed: PackedPart) -> Part:
    """The fields of a packed part, as views of its arrays."""
    return Part(
        *(
            getattr(packed, name)[packed.at[2 * index] : packed.at[2 * index + 1]]
            for index, name in enumerate(_TYPE_OF_FIELD)
        )
    )


_TYPE_OF_FIELD = (
    "i32", "i32", "f32", "f64", "i32", "i32", "u64", "u64", "i32", "i32", "i32", "i32", "u8", "f64",
    "i32", "i32", "i32", "i32", "i64", "f64", "u64", "i32", "i32", "i32",
    "f64", "i32",
)  # fmt: skip
