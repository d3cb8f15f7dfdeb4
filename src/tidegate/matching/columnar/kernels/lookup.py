"""Looking up the segments that events fall into, by hash: the first step of a match.

All entries of a segment ask for the same values in the channels of their group. A hash of the group
and of an event's values in these channels finds the one segment that asks for them, if there is
one. Where the channel holds a set, each number of the set may find a segment.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U64, Int
from tidegate.matching.columnar.kernels.jit import inlined, kernel
from tidegate.matching.columnar.kernels.part import (
    EMPTY_SLOT,
    GROUP_CHANNEL,
    GROUP_FIRST,
    GROUP_SALT,
    KEY_VALUE,
    SEGMENT_KEY,
    SET,
    SLOT_HASH,
    SLOT_SEGMENT,
)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Scatter the bits of a word (the finalizer of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def find_by_values(
    at: I64,
    i32: I32,
    f64: F64,
    u64: U64,
    events: F64,
    begin: Int,
    end: Int,
    group: Int,
    pair_event: I32,
    pair_segment: I32,
    count: Int,
) -> Int:
    """The segments of a group that events fall into, by the values of its channels."""
    group_channel = i32[at[2 * GROUP_CHANNEL] : at[2 * GROUP_CHANNEL + 1]]
    slot_hash = u64[at[2 * SLOT_HASH] : at[2 * SLOT_HASH + 1]]
    slot_segment = i32[at[2 * SLOT_SEGMENT] : at[2 * SLOT_SEGMENT + 1]]
    segment_key = i32[at[2 * SEGMENT_KEY] : at[2 * SEGMENT_KEY + 1]]
    key_value = f64[at[2 * KEY_VALUE] : at[2 * KEY_VALUE + 1]]
    salt = u64[at[2 * GROUP_SALT] + group]
    key_begin = i32[at[2 * GROUP_FIRST] + group]
    key_end = i32[at[2 * GROUP_FIRST] + group + 1]
    bits = events.view(np.uint64)
    mask = np.uint64(len(slot_hash) - 1)
    for event in range(begin, end):
        absent = False
        hashed = salt
        for index in range(key_begin, key_end):
            absent |= np.isnan(events[event, group_channel[index]])
            hashed = mix(hashed ^ bits[event, group_channel[index]]) + GOLDEN
        if absent:
            continue
        slot = hashed & mask
        while slot_segment[slot] != EMPTY_SLOT and slot_hash[slot] != hashed:
            slot = (slot + np.uint64(1)) & mask
        segment = slot_segment[slot]
        if segment == EMPTY_SLOT:
            continue
        key = segment_key[segment]
        differs = False
        for index in range(key_begin, key_end):
            differs |= key_value[key + index - key_begin] != events[event, group_channel[index]]
        if not differs:
            pair_event[count] = event
            pair_segment[count] = segment
            count += 1
    return count


@kernel
def find_in_sets(
    at: I64,
    i32: I32,
    f64: F64,
    u64: U64,
    events: F64,
    begin: Int,
    end: Int,
    group: Int,
    set_first: I32,
    set_value: F64,
    pair_event: I32,
    pair_segment: I32,
    count: Int,
) -> Int:
    """The segments of a group that events fall into, by each number in their sets; -1 for no room.

    A group with a channel of sets has no other channel.
    """
    slot_hash = u64[at[2 * SLOT_HASH] : at[2 * SLOT_HASH + 1]]
    slot_segment = i32[at[2 * SLOT_SEGMENT] : at[2 * SLOT_SEGMENT + 1]]
    salt = u64[at[2 * GROUP_SALT] + group]
    channel = i32[at[2 * GROUP_CHANNEL] + i32[at[2 * GROUP_FIRST] + group]] ^ SET
    set_bits = set_value.view(np.uint64)
    mask = np.uint64(len(slot_hash) - 1)
    for event in range(begin, end):
        x = events[event, channel]
        if np.isnan(x):
            continue
        for member in range(set_first[np.int64(x)], set_first[np.int64(x) + 1]):
            hashed = mix(salt ^ set_bits[member]) + GOLDEN
            slot = hashed & mask
            while slot_segment[slot] != EMPTY_SLOT and slot_hash[slot] != hashed:
                slot = (slot + np.uint64(1)) & mask
            segment = slot_segment[slot]
            if segment == EMPTY_SLOT:
                continue
            key = i32[at[2 * SEGMENT_KEY] + segment]
            if f64[at[2 * KEY_VALUE] + key] != set_value[member]:
                continue
            if count == len(pair_event):
                return -1
            pair_event[count] = event
            pair_segment[count] = segment
            count += 1
    return count
