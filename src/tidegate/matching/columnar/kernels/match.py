"""Matching events with a part of the index: the entry point of the kernels, and their first loops.

Theory of operation. A part is a set of entries, each a conjunction of constraints on channels. A
channel is one attribute seen as one kind of value, and an event is a row of floats, one for each
channel, NaN where the event has no such value.

Entries are laid out in clusters. All entries of a cluster require the same values in the key
channels of their group, so that one hash probe finds the cluster or rules it out (lookup.py). In a
cluster, bitmaps or probes of the first constraints leave few candidates (scan.py), and these are
checked exactly (check.py). All of it is compiled by Numba and runs without the GIL.

The order of the loops follows the caches:

    for each chunk of events                      the values of a chunk stay in the cache
        for each group
            for each event: look up its cluster   only the slots of the hash table are read
        for each pair with a small cluster        probes and entries of one cluster at a time
            scan the cluster
    for each large cluster
        for each tile of its bitmaps              a tile stays in the cache for all events
            for each event that fell into the cluster
                AND the bitmaps, check candidates

Looking up and scanning are loops of their own, which keeps the loop over groups small: there may be
a hundred groups and more, and every event has to be looked up in each.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.lookup import find_by_values, find_in_sets
from tidegate.matching.columnar.kernels.part import BEGIN, END, PackedPart
from tidegate.matching.columnar.kernels.scan import match_cluster, match_small
from tidegate.matching.rows.kernels.flags import SET
from tidegate.matching.rows.kernels.jit import kernel

CHUNK_VALUES = 32_768
"""How many values of events make a chunk: 256 KB, which the second-level cache holds."""
CHUNK_EVENTS_MIN = 16


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

    ``events`` is a matrix, a row for each event and a column for each channel. In a channel of sets
    the number is that of a set, whose members are ``set_value[set_first[n] : set_first[n + 1]]``,
    in ascending order. Pairs are written to the ``out_...`` buffers.

    Returns how many there are, -1 if the buffers have no room for them, and all flags seen. Pairs
    that are UNSURE are still to be evaluated (evaluate.py).
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    length = len(events)
    groups = at[END.group_first] - at[BEGIN.group_first] - 1
    count, seen = np.int64(0), np.int64(0)
    # a chunk has at least some events, else the loop over groups would be run for each of them
    step = min(length, max(CHUNK_EVENTS_MIN, CHUNK_VALUES // max(1, events.shape[1])))
    # pairs of an event and a cluster, of one chunk; only sets can make them more than this
    pair_event = np.empty(step * groups, np.int32)
    pair_cluster = np.empty(len(pair_event), np.int32)
    # those of all chunks whose cluster is large; most events fall into few of them
    large_event = np.empty(length * min(groups, 4), np.int32)
    large_cluster = np.empty(len(large_event), np.int32)
    large = np.int64(0)
    for begin in range(0, length, step):
        stop = min(begin + step, length)
        pairs, group = np.int64(0), np.int64(0)
        while group < groups:
            first = i32[at[BEGIN.group_first] + group]
            # by values an event has one pair at most, so room for all of them is enough
            if len(pair_event) - pairs < stop - begin:
                found = np.int64(-1)
            elif first == i32[at[BEGIN.group_first] + group + 1] or not (
                i32[at[BEGIN.group_channel] + first] & SET
            ):
                found = find_by_values(
                    part, events, begin, stop, group, pair_event, pair_cluster, pairs
                )
            else:
                found = find_in_sets(
                    part, events, begin, stop, group, set_first, set_value, pair_event,
                    pair_cluster, pairs,
                )  # fmt: skip
            if found < 0:
                # no room: the same group again, with buffers of twice the size
                pair_event, pair_cluster = _grown(pair_event), _grown(pair_cluster)
            else:
                pairs = found
                group += 1
        # clusters without bitmaps are small; their pairs move to the front
        small = np.int64(0)
        for pair in range(pairs):
            cluster = pair_cluster[pair]
            if i32[at[BEGIN.map_first] + cluster] == i32[at[BEGIN.map_first] + cluster + 1]:
                pair_event[small] = pair_event[pair]
                pair_cluster[small] = cluster
                small += 1
                continue
            if large == len(large_event):
                large_event, large_cluster = _grown(large_event), _grown(large_cluster)
            large_event[large] = pair_event[pair]
            large_cluster[large] = cluster
            large += 1
        count, more = match_small(
            at, i32, f32, f64, events, set_first, set_value, pair_event, pair_cluster, small,
            count, out_event, out_subscription, out_flags,
        )  # fmt: skip
        seen |= more
        if count < 0:
            return count, seen
    # bring the events of each large cluster together
    order = _stable_order(large_cluster, large)
    begin = 0
    while begin < large:
        stop = begin
        cluster = large_cluster[order[begin]]
        while stop < large and large_cluster[order[stop]] == cluster:
            stop += 1
        count, more = match_cluster(
            at, i32, i64, f64, u64, u8, events, set_first, set_value, cluster,
            large_event[order[begin:stop]], count, out_event, out_subscription, out_flags,
        )  # fmt: skip
        if count < 0:
            return count, seen
        seen |= more
        begin = stop
    # pairs of one group are in order, unless large clusters were matched apart, tile by tile
    if length > 1 and (groups > 1 or large > 0):
        order_by_event(count, length, out_event, out_subscription, out_flags)
    return count, seen


@kernel
def match_flat(
    at: I64,
    i32: I32,
    f32: F32,
    f64: F64,
    events: F64,
    set_first: I32,
    set_value: F64,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """As ``match_events`` for a part that is one cluster without a key and without bitmaps.

    Nothing has to be looked up. And as long as there are no other parts, nothing else has to be
    compiled either: this kernel takes two seconds, `match_events` seven.
    """
    pairs = len(events)
    pair_event, pair_cluster = np.empty(pairs, np.int32), np.zeros(pairs, np.int32)
    for event in range(pairs):
        pair_event[event] = event
    return match_small(
        at, i32, f32, f64, events, set_first, set_value, pair_event, pair_cluster, pairs,
        np.int64(0), out_event, out_subscription, out_flags,
    )  # fmt: skip


@kernel
def _stable_order(keys: I32, count: Int) -> I64:
    """The order that sorts the first ``count`` keys, equal ones as they are: a merge sort.

    Runs that are in order already are copied, and most are, as most events fall into one cluster.
    """
    order, other = np.empty(count, np.int64), np.empty(count, np.int64)
    for index in range(count):
        order[index] = index
    width = 1
    while width < count:
        for begin in range(0, count, 2 * width):
            middle, end = min(begin + width, count), min(begin + 2 * width, count)
            left, right = begin, middle
            for place in range(begin, end):
                if left < middle and (right == end or keys[order[left]] <= keys[order[right]]):
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def _grown(array: I32) -> I32:
    """An array of twice the length that begins alike; ``np.append`` takes a second to compile."""
    longer = np.empty(2 * len(array), np.int32)
    for index in range(len(array)):
        longer[index] = array[index]
    return longer


@kernel
def order_by_event(
    count: Int, events: Int, out_event: I32, out_subscription: I32, out_flags: U8
) -> None:
    """Order the first ``count`` pairs by event, in place: a counting sort, which is stable."""
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
