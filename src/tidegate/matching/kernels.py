"""The loops that touch every event, compiled by Numba, without the GIL.

A part of the index is a set of entries, each a conjunction of constraints on channels. A channel is
one attribute seen as one kind, and an event is a row of floats, one for each channel, NaN where the
event has no such value. A constraint `(channel, low, high)` holds if `low <= x <= high`; where low
is greater than high it means the outside, `x >= low or x <= high`. NaN satisfies neither. In a
channel of sets the event has the number of a set, and the constraint holds if `low` is in it; where
low is greater than high, if the number between them is not.

Entries are laid out in segments. All entries of a segment ask for the same values in the channels
of their group, so that one hash probe finds the segment or rules it out. In a large segment, each
other channel has bitmaps: its range is cut into cells, and the bitmap of a cell has a bit for every
entry that some value of the cell could satisfy. ANDing the bitmaps of the cells that an event falls
into leaves few candidates, which are then checked exactly. In a small segment, the first
constraints of all entries are tried in short before any entry is read whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidegate.matching.compiling import inlined, kernel
from tidegate.matching.parts import (
    BOUND,
    DEAD,
    E_FIRST,
    E_FLAGS,
    E_MOTION,
    E_SUBSCRIPTION,
    EDGE,
    EMPTY_SLOT,
    ENTRY,
    ENTRY_NUMBERS,
    EXACT_MAX,
    F32,
    F64,
    GONE,
    GROUP_CHANNEL,
    GROUP_FIRST,
    GROUP_SALT,
    I32,
    I64,
    KEY_VALUE,
    MAP_CELLS,
    MAP_CHANNEL,
    MAP_EDGE,
    MAP_FIRST,
    MAP_WORD,
    MOTION,
    MOVING,
    NO_TIME,
    PROBE,
    PROBE_CHANNEL,
    PROBES,
    PROGRAM,
    SEGMENT_DENSE,
    SEGMENT_FIRST,
    SEGMENT_KEY,
    SET,
    SLOT_HASH,
    SLOT_SEGMENT,
    SPAN_FIRST,
    SPAN_LAST,
    SPAN_START,
    U8,
    U64,
    VERIFY,
    WORD,
    Int,
)
from tidegate.matching.programs import (
    HEAD_WORDS,
    LINEAR,
    M_SINCE,
    M_SURE_HIGH,
    M_SURE_LOW,
    MOTION_WORDS,
    STACK_MAX,
    channel_of,
    compare,
    comparison_of,
    length_of,
    run_program,
)

CACHED_VALUES = 32_768
"""So many values of events are matched with a group before the next group comes."""
BLOCK_ENTRIES = 256
"""So many entries of a small segment are probed before those that pass are checked."""
TILE_WORDS = 32
"""A tile of a large segment, in words of 64 entries: as much as the cache holds easily."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _trailing_zeros(context: Any, word: Any) -> Any:  # noqa: ARG001 - the compiler's signature
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)
"""How many zero bits a 64-bit word ends with; the word is not zero."""


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Scatter the bits of a word (the finalizer of SplitMix64)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@inlined
def satisfied(x: float, low: float, high: float) -> bool:
    """Whether a value satisfies a constraint."""
    if low <= high:
        return x >= low and x <= high
    return x >= low or x <= high


@inlined
def as_probe(low: float, high: float) -> tuple[np.float32, np.float32]:
    """Bounds as floats of 32 bits, rounded away from each other; none pass if none did."""
    if not low <= high:
        return np.float32(np.inf), np.float32(-np.inf)
    below, above = np.float32(low), np.float32(high)
    if below > low:
        below = np.nextafter(below, np.float32(-np.inf))
    if above < high:
        above = np.nextafter(above, np.float32(np.inf))
    return below, above


@inlined
def in_set(x: float, low: float, high: float, set_first: I32, set_value: F64) -> bool:
    """Whether a set satisfies a constraint."""
    if np.isnan(x):
        return False
    wanted = low if low <= high else low - 1.0
    begin, end = np.int64(set_first[np.int64(x)]), np.int64(set_first[np.int64(x) + 1])
    while begin < end:
        middle = (begin + end) >> 1
        if set_value[middle] < wanted:
            begin = middle + 1
        else:
            end = middle
    found = begin < set_first[np.int64(x) + 1] and set_value[begin] == wanted
    return bool(found == (low <= high))


@inlined
def check_motion(
    entry: Int,
    numbers: I32,
    motion: F64,
    words: I64,
    program: I32,
    events: F64,
    event: Int,
    micros: np.int64,
    variables: F64,
    stack: F64,
) -> Int:
    """Check the constraints of an entry whose bounds move: -1 if one fails, else 0 or VERIFY."""
    flags, t = np.int64(0), 0.0
    begin = np.int64(numbers[ENTRY_NUMBERS * entry + E_MOTION])
    end = np.int64(numbers[ENTRY_NUMBERS * entry + ENTRY_NUMBERS + E_MOTION])
    if micros != NO_TIME and words[begin + M_SINCE] != NO_TIME:
        t = np.float64(micros - words[begin + M_SINCE]) / 1e6
    place = begin + MOTION_WORDS
    value = events[event, channel_of(words[place])]
    if value >= motion[begin + M_SURE_LOW] and value <= motion[begin + M_SURE_HIGH]:
        place = end
    while place < end and flags >= 0:
        head = words[place]
        value = events[event, channel_of(head)]
        constants = place + HEAD_WORDS
        if words[place + 1] == LINEAR:
            bound = motion[constants] + motion[constants + 1] * t
        else:
            bound = run_program(program, words[place + 1], motion, constants, t, variables, stack)
        if np.isnan(bound) or np.isnan(value):
            flags = np.int64(-1)
        elif abs(value) >= EXACT_MAX:
            flags = np.int64(VERIFY)
        elif not compare(comparison_of(head), value, bound):
            flags = np.int64(-1)
        place += length_of(head)
    return flags


@inlined
def cell_of(edges: F64, begin: Int, cells: Int, x: float) -> Int:
    """The cell that a value falls into; the last one but all for NaN."""
    if np.isnan(x):
        return cells
    low, high = begin, begin + cells - 1
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - begin


# Numba counts references whenever it hands on a tuple of arrays or a view, which in the innermost
# loops would cost more than the work, and a call from Python costs time for every argument. So the
# functions below get a part packed, and take it apart before they begin.


@inlined
def check_entry(
    entry: Int,
    numbers: I32,
    bound: F64,
    bound_channel: I64,
    events: F64,
    event: Int,
    set_first: I32,
    set_value: F64,
) -> Int:
    """The flags of an entry whose constraints an event satisfies; -1 if it does not."""
    at = ENTRY_NUMBERS * np.int64(entry)
    flags = np.int64(numbers[at + E_FLAGS])
    if flags & (DEAD | GONE):
        return -1
    place = 3 * np.int64(numbers[at + E_FIRST])
    last = 3 * np.int64(numbers[at + ENTRY_NUMBERS + E_FIRST])
    while place < last:
        channel = bound_channel[place + 2]
        if channel & SET:
            x = events[event, channel ^ SET]
            if not in_set(x, bound[place], bound[place + 1], set_first, set_value):
                return -1
        elif not satisfied(events[event, channel], bound[place], bound[place + 1]):
            return -1
        place += 3
    return flags


@kernel
def match_segment(
    at: I64,
    i32: I32,
    i64: I64,
    f64: F64,
    u64: U64,
    u8: U8,
    events: F64,
    micros: I64,
    variables: F64,
    set_first: I32,
    set_value: F64,
    stack: F64,
    segment: Int,
    chosen: I32,
    count: Int,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match some events with a large segment, tile by tile, so that a tile stays in the cache.

    Gives how many pairs there are now, -1 if there is no room for them, and all flags seen.
    """
    numbers = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    bound = f64[at[2 * BOUND] : at[2 * BOUND + 1]]
    bound_channel = bound.view(np.int64)
    motion = f64[at[2 * MOTION] : at[2 * MOTION + 1]]
    motion_words = motion.view(np.int64)
    program = i32[at[2 * PROGRAM] : at[2 * PROGRAM + 1]]
    words = u64[at[2 * WORD] : at[2 * WORD + 1]]
    edge = f64[at[2 * EDGE] : at[2 * EDGE + 1]]
    start = np.int64(i32[at[2 * SEGMENT_FIRST] + segment])
    end = np.int64(i32[at[2 * SEGMENT_FIRST] + segment + 1])
    width = (end - start + 63) >> 6
    map_begin = i32[at[2 * MAP_FIRST] + segment]
    channels = i32[at[2 * MAP_FIRST] + segment + 1] - map_begin
    dense = u8[at[2 * SEGMENT_DENSE] + segment]
    span = i32[at[2 * SPAN_START] + segment]
    maps = np.empty((len(chosen), channels), np.uint64)
    spans = np.empty((len(chosen), 2), np.int64)
    for index in range(len(chosen)):
        for channel in range(channels):
            place = map_begin + channel
            x = events[chosen[index], i32[at[2 * MAP_CHANNEL] + place]]
            cells, edge_at = i32[at[2 * MAP_CELLS] + place], i32[at[2 * MAP_EDGE] + place]
            cell = cell_of(edge, edge_at, cells, x)
            words_at = i64[at[2 * MAP_WORD] + place] + np.int64(cell) * width
            maps[index, channel] = np.uint64(words_at)
            if channel == 0:
                spans[index, 0] = i32[at[2 * SPAN_FIRST] + span + cell]
                spans[index, 1] = i32[at[2 * SPAN_LAST] + span + cell]
    common = np.empty(TILE_WORDS, np.uint64)
    seen = np.int64(0)
    for tile in range(0, width, TILE_WORDS):
        for index in range(len(chosen)):
            begin, stop = max(spans[index, 0], tile), min(spans[index, 1], tile + TILE_WORDS)
            if begin >= stop:
                continue
            if len(out_event) - count < 64 * TILE_WORDS:
                return -1, seen
            event = chosen[index]
            if dense:
                # unsigned indexes, which need no check for negative ones, let this be vectorized
                base = maps[index, 0] + np.uint64(begin)
                for step in range(stop - begin):
                    common[np.uint64(step)] = words[base + np.uint64(step)]
                for channel in range(1, channels):
                    base = maps[index, channel] + np.uint64(begin)
                    for step in range(stop - begin):
                        common[np.uint64(step)] &= words[base + np.uint64(step)]
            for word_at in range(begin, stop):
                if dense:
                    word = common[word_at - begin]
                else:
                    word = words[maps[index, 0] + np.uint64(word_at)]
                    channel = 1
                    while word != 0 and channel < channels:
                        word &= words[maps[index, channel] + np.uint64(word_at)]
                        channel += 1
                while word != 0:
                    entry = start + (word_at << 6) + np.int64(trailing_zeros(word))
                    word &= word - np.uint64(1)
                    flags = check_entry(
                        entry, numbers, bound, bound_channel, events, event, set_first, set_value
                    )
                    if flags >= 0 and flags & MOVING:
                        moved = check_motion(
                            entry, numbers, motion, motion_words, program, events, event,
                            micros[event], variables, stack,
                        )  # fmt: skip
                        flags = flags | moved if moved >= 0 else np.int64(-1)
                    if flags >= 0:
                        out_event[count] = event
                        out_subscription[count] = numbers[ENTRY_NUMBERS * entry + E_SUBSCRIPTION]
                        out_flags[count] = flags
                        seen |= flags
                        count += 1
    return count, seen


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


@kernel
def match_small(
    at: I64,
    i32: I32,
    f32: F32,
    f64: F64,
    events: F64,
    micros: I64,
    variables: F64,
    set_first: I32,
    set_value: F64,
    stack: F64,
    pair_event: I32,
    pair_segment: I32,
    pairs: Int,
    count: Int,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match events with the small segments that they fall into.

    Gives how many pairs there are now, -1 if there is no room for them, and all flags seen.
    """
    numbers = i32[at[2 * ENTRY] : at[2 * ENTRY + 1]]
    bound = f64[at[2 * BOUND] : at[2 * BOUND + 1]]
    bound_channel = bound.view(np.int64)
    motion = f64[at[2 * MOTION] : at[2 * MOTION + 1]]
    motion_words = motion.view(np.int64)
    program = i32[at[2 * PROGRAM] : at[2 * PROGRAM + 1]]
    probe_channel = i32[at[2 * PROBE_CHANNEL] : at[2 * PROBE_CHANNEL + 1]]
    probes = f32[at[2 * PROBE] : at[2 * PROBE + 1]]
    selected = np.empty(BLOCK_ENTRIES, np.int64)
    seen = np.int64(0)
    for pair in range(pairs):
        event, segment = pair_event[pair], pair_segment[pair]
        start = i32[at[2 * SEGMENT_FIRST] + segment]
        end = i32[at[2 * SEGMENT_FIRST] + segment + 1]
        if len(out_event) - count < end - start:
            return -1, seen
        for block in range(start, end, BLOCK_ENTRIES):
            # without branches, because which entries pass cannot be predicted
            chosen = np.int64(0)
            for entry in range(block, min(block + BLOCK_ENTRIES, end)):
                at_probe = PROBES * np.int64(entry)
                passes = True
                for index in range(at_probe, at_probe + PROBES):
                    x = events[event, probe_channel[index]]
                    low, high = probes[2 * index], probes[2 * index + 1]
                    passes &= (low != low) | ((x >= low) & (x <= high))
                selected[chosen] = entry
                chosen += np.int64(passes)
            for index in range(chosen):
                entry = selected[index]
                flags = check_entry(
                    entry, numbers, bound, bound_channel, events, event, set_first, set_value
                )
                if flags >= 0 and flags & MOVING:
                    moved = check_motion(
                        entry, numbers, motion, motion_words, program, events, event,
                        micros[event], variables, stack,
                    )  # fmt: skip
                    flags = flags | moved if moved >= 0 else np.int64(-1)
                if flags >= 0:
                    out_event[count] = event
                    out_subscription[count] = numbers[ENTRY_NUMBERS * entry + E_SUBSCRIPTION]
                    out_flags[count] = flags
                    seen |= flags
                    count += 1
    return count, seen


@kernel
def match_events(
    at: I64,
    i32: I32,
    i64: I64,
    f32: F32,
    f64: F64,
    u64: U64,
    u8: U8,
    events: F64,
    micros: I64,
    variables: F64,
    set_first: I32,
    set_value: F64,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match events with a packed part: finds pairs of an event and an entry, ordered by event.

    Gives how many there are, -1 if there is no room for them, and all flags seen.
    """
    groups = at[2 * GROUP_FIRST + 1] - at[2 * GROUP_FIRST] - 1
    count, seen = np.int64(0), np.int64(0)
    stack = np.empty(STACK_MAX, np.float64)
    # Some events at a time, and for those one group after the other, so that both the events and
    # the segments of a group stay in the cache.
    step = min(len(events), max(16, CACHED_VALUES // max(1, events.shape[1])))
    pair_event = np.empty(step * groups, np.int32)
    pair_segment = np.empty(len(pair_event), np.int32)
    # events and the large segments that they fall into
    large_event = np.empty(len(events) * min(groups, 4), np.int32)
    large_segment = np.empty(len(large_event), np.int32)
    large = 0
    for begin in range(0, len(events), step):
        stop = min(begin + step, len(events))
        pairs, group = np.int64(0), 0
        while group < groups:
            first = i32[at[2 * GROUP_FIRST] + group]
            if len(pair_event) - pairs < stop - begin:
                found = np.int64(-1)
            elif first == i32[at[2 * GROUP_FIRST] + group + 1] or not (
                i32[at[2 * GROUP_CHANNEL] + first] & SET
            ):
                found = find_by_values(
                    at, i32, f64, u64, events, begin, stop, group, pair_event, pair_segment, pairs
                )
            else:
                found = find_in_sets(
                    at, i32, f64, u64, events, begin, stop, group, set_first, set_value,
                    pair_event, pair_segment, pairs,
                )  # fmt: skip
            if found < 0:
                pair_event = np.append(pair_event, np.empty_like(pair_event))
                pair_segment = np.append(pair_segment, np.empty_like(pair_segment))
            else:
                pairs = found
                group += 1
        small = 0
        for pair in range(pairs):
            segment = pair_segment[pair]
            if i32[at[2 * MAP_FIRST] + segment] == i32[at[2 * MAP_FIRST] + segment + 1]:
                pair_event[small] = pair_event[pair]
                pair_segment[small] = segment
                small += 1
                continue
            if large == len(large_event):
                large_event = np.append(large_event, np.empty_like(large_event))
                large_segment = np.append(large_segment, np.empty_like(large_segment))
            large_event[large] = pair_event[pair]
            large_segment[large] = segment
            large += 1
        count, more = match_small(
            at, i32, f32, f64, events, micros, variables, set_first, set_value, stack,
            pair_event, pair_segment, small, count, out_event, out_subscription, out_flags,
        )  # fmt: skip
        seen |= more
        if count < 0:
            return count, seen
    order = np.argsort(large_segment[:large], kind="mergesort")
    begin = 0
    while begin < large:
        stop = begin
        segment = large_segment[order[begin]]
        while stop < large and large_segment[order[stop]] == segment:
            stop += 1
        count, more = match_segment(
            at, i32, i64, f64, u64, u8, events, micros, variables, set_first, set_value, stack,
            segment, large_event[order[begin:stop]], count, out_event, out_subscription, out_flags,
        )  # fmt: skip
        if count < 0:
            return count, seen
        seen |= more
        begin = stop
    if len(events) > 1 and groups > 1:
        order_by_event(count, len(events), out_event, out_subscription, out_flags)
    return count, seen


@kernel
def order_by_event(
    count: Int, events: Int, out_event: I32, out_subscription: I32, out_flags: U8
) -> None:
    """Put pairs in the order of their events."""
    place = np.zeros(events + 1, np.int64)
    for index in range(count):
        place[out_event[index] + 1] += 1
    for event in range(events):
        place[event + 1] += place[event]
    subscription = out_subscription[:count].copy()
    flags = out_flags[:count].copy()
    event_of = out_event[:count].copy()
    for index in range(count):
        target = place[event_of[index]]
        place[event_of[index]] += 1
        out_event[target] = event_of[index]
        out_subscription[target] = subscription[index]
        out_flags[target] = flags[index]
