"""Scanning a segment for the entries that an event satisfies: the second step of a match.

In a large segment, each channel has bitmaps: its range is cut into cells, and the bitmap of a cell
has a bit for every entry that some value of the cell could satisfy. ANDing the bitmaps of the cells
that an event falls into leaves few candidates, which are then checked exactly. In a small segment,
the first constraints of all entries are tried in short before any entry is read whole.

A pair that is UNSURE has the number of its entry in place of that of its subscription.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.check import check_bounds, take_apart
from tidegate.matching.columnar.kernels.jit import inlined, kernel
from tidegate.matching.columnar.kernels.part import (
    E_SUBSCRIPTION,
    EDGE,
    ENTRY_NUMBERS,
    MAP_CELLS,
    MAP_CHANNEL,
    MAP_EDGE,
    MAP_FIRST,
    MAP_WORD,
    PROBE,
    PROBE_CHANNEL,
    PROBES,
    SEGMENT_DENSE,
    SEGMENT_FIRST,
    SPAN_FIRST,
    SPAN_LAST,
    SPAN_START,
    UNSURE,
    WORD,
)

BLOCK_ENTRIES = 256
"""So many entries of a small segment are probed before those that pass are checked."""
TILE_WORDS = 32
"""A tile of a large segment, in words of 64 entries: as much as the cache holds easily."""


def _trailing_zeros(context: Any, word: Any) -> Any:  # noqa: ARG001 - the compiler's signature
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)
"""How many zero bits a 64-bit word ends with; the word is not zero."""


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


@inlined
def find_bitmaps(
    at: I64, i32: I32, i64: I64, f64: F64, events: F64, segment: Int, chosen: I32
) -> tuple[U64, I64]:
    """Where the bitmaps stand of the cells that events fall into, and which of their words count.

    The bitmaps of an event are a row, one for each channel of the segment that has any.
    """
    edge = f64[at[2 * EDGE] : at[2 * EDGE + 1]]
    entries = i32[at[2 * SEGMENT_FIRST] + segment + 1] - i32[at[2 * SEGMENT_FIRST] + segment]
    width = (np.int64(entries) + 63) >> 6
    map_begin = i32[at[2 * MAP_FIRST] + segment]
    channels = i32[at[2 * MAP_FIRST] + segment + 1] - map_begin
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
    return maps, spans


@kernel
def match_segment(
    at: I64,
    i32: I32,
    i64: I64,
    f64: F64,
    u64: U64,
    u8: U8,
    events: F64,
    set_first: I32,
    set_value: F64,
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
    numbers, bound, bound_channel, margins = take_apart(at, i32, f64)
    words = u64[at[2 * WORD] : at[2 * WORD + 1]]
    start = np.int64(i32[at[2 * SEGMENT_FIRST] + segment])
    end = np.int64(i32[at[2 * SEGMENT_FIRST] + segment + 1])
    width = (end - start + 63) >> 6
    dense = u8[at[2 * SEGMENT_DENSE] + segment]
    maps, spans = find_bitmaps(at, i32, i64, f64, events, segment, chosen)
    channels = maps.shape[1]
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
                    flags = check_bounds(
                        entry, numbers, bound, bound_channel, margins, events, event, set_first,
                        set_value,
                    )  # fmt: skip
                    if flags >= 0:
                        number = numbers[ENTRY_NUMBERS * entry + E_SUBSCRIPTION]
                        out_event[count] = event
                        out_subscription[count] = entry if flags & UNSURE else number
                        out_flags[count] = flags
                        seen |= flags
                        count += 1
    return count, seen


@kernel
def match_small(
    at: I64,
    i32: I32,
    f32: F32,
    f64: F64,
    events: F64,
    set_first: I32,
    set_value: F64,
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
    numbers, bound, bound_channel, margins = take_apart(at, i32, f64)
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
                flags = check_bounds(
                    entry, numbers, bound, bound_channel, margins, events, event, set_first,
                    set_value,
                )  # fmt: skip
                if flags >= 0:
                    number = numbers[ENTRY_NUMBERS * entry + E_SUBSCRIPTION]
                    out_event[count] = event
                    out_subscription[count] = entry if flags & UNSURE else number
                    out_flags[count] = flags
                    seen |= flags
                    count += 1
    return count, seen
