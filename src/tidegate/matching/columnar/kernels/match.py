"""Matching events with a part of the index: the loops that touch every event.

A part is a set of entries, each a conjunction of constraints on channels. A channel is one
attribute seen as one kind, and an event is a row of floats, one for each channel, NaN where the
event has no such value.

Entries are laid out in segments. All entries of a segment ask for the same values in the channels
of their group, so that one hash probe finds the segment or rules it out (lookup.py). In a segment,
bitmaps or a short trial of the first constraints leave few entries (scanning.py), and these are
checked (checking.py). All of it is compiled by Numba and runs without the GIL.

A call from Python costs time for every argument, so a part comes packed (see parts.py).
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.jit import kernel
from tidegate.matching.columnar.kernels.lookup import find_by_values, find_in_sets
from tidegate.matching.columnar.kernels.part import GROUP_CHANNEL, GROUP_FIRST, MAP_FIRST, SET
from tidegate.matching.columnar.kernels.scan import match_segment, match_small

CACHED_VALUES = 32_768
"""So many values of events are matched with a group before the next group comes."""


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
    set_first: I32,
    set_value: F64,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match events with a packed part: finds pairs of an event and an entry, ordered by event.

    Gives how many there are, -1 if there is no room for them, and all flags seen. Those that are
    UNSURE are still to be evaluated (evaluating.py).
    """
    groups = at[2 * GROUP_FIRST + 1] - at[2 * GROUP_FIRST] - 1
    count, seen = np.int64(0), np.int64(0)
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
            at, i32, f32, f64, events, set_first, set_value, pair_event, pair_segment, small,
            count, out_event, out_subscription, out_flags,
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
            at, i32, i64, f64, u64, u8, events, set_first, set_value, segment,
            large_event[order[begin:stop]], count, out_event, out_subscription, out_flags,
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
