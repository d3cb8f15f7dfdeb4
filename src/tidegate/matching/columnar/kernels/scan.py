"""Scanning a cluster for the entries that an event satisfies: the second step of a match.

In a large cluster, each bitmap channel is cut into bins, and the bitmap of a bin has a bit for
every entry that some value of the bin could satisfy. ANDing the bitmaps of the bins that an event
falls into leaves few candidates, which check.py then checks exactly. A bitmap may have bits too
many, never too few.

In a small cluster, ANDing would not pay. There the short forms of all entries' first constraints
(probes) are tried before any entry is read whole.

A pair that is UNSURE has the number of its entry in place of that of its subscription, because its
motion has still to be read (evaluate.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.check import check_bounds, take_apart
from tidegate.matching.columnar.kernels.part import BEGIN, E_SUBSCRIPTION, END, ENTRY_WORDS, PROBES
from tidegate.matching.rows.kernels.flags import UNSURE
from tidegate.matching.rows.kernels.jit import inlined, kernel

BLOCK_ENTRIES = 256
"""How many entries of a small cluster are probed before those that pass are checked."""

TILE_WORDS = 32
"""Width of a tile of a large cluster, in words of 64 entries.

All events of a chunk are matched with one tile before the next one. A tile of 2,048 entries has
256 bytes in each bin of each channel; those of ten channels with 64 bins are 160 KB, which stay in
the second-level cache, while the bitmaps of 100,000 entries in full would not.
"""


def _trailing_zeros(context: Any, word: Any) -> Any:  # noqa: ARG001 - the compiler's signature
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        # the second argument says that zero is undefined, which spares a branch
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


trailing_zeros: Any = intrinsic(_trailing_zeros)
"""How many zero bits a 64-bit word ends with; the word must not be zero. One instruction, which
Numba has no function for."""


@inlined
def bin_of(edges: F64, begin: Int, bins: Int, x: float) -> Int:
    """The bin that a value falls into, by bisection; NaN has the row after the last bin.

    The `bins - 1` edges of the channel begin at ``begin``. A bin includes its lower edge.
    """
    if np.isnan(x):
        return bins
    low, high = begin, begin + bins - 1
    while low < high:
        middle = (low + high) >> 1
        if edges[middle] <= x:
            low = middle + 1
        else:
            high = middle
    return low - begin


@inlined
def find_bitmaps(
    at: I64, i32: I32, i64: I64, f64: F64, events: F64, cluster: Int, chosen: I32
) -> tuple[U64, I64]:
    """The places of the bitmaps that chosen events need, and the spans of their words to look at.

    The places of an event are a row, a column for each bitmap channel of the cluster. Its span is
    that of its bin in the first channel: entries are in the order of this channel (bitmaps.py), so
    the bits of one of its bins lie close together, and all other words are zero.
    """
    edge = f64[at[BEGIN.edge] : at[END.edge]]
    first = at[BEGIN.cluster_first] + cluster
    width = (np.int64(i32[first + 1] - i32[first]) + 63) >> 6
    map_begin = i32[at[BEGIN.map_first] + cluster]
    channels = i32[at[BEGIN.map_first] + cluster + 1] - map_begin
    span = i32[at[BEGIN.span_start] + cluster]
    maps = np.empty((len(chosen), channels), np.uint64)
    spans = np.empty((len(chosen), 2), np.int64)
    # bins are found once for an event, before the tiles, which all use them
    for index in range(len(chosen)):
        for channel in range(channels):
            place = map_begin + channel
            x = events[chosen[index], i32[at[BEGIN.map_channel] + place]]
            bins, edge_at = i32[at[BEGIN.map_bins] + place], i32[at[BEGIN.map_edge] + place]
            bin_index = bin_of(edge, edge_at, bins, x)
            # 64 bits, because bins times words of a large cluster may exceed 32; unsigned for the
            # loops that read them, see below
            words_at = i64[at[BEGIN.map_word] + place] + np.int64(bin_index) * width
            maps[index, channel] = np.uint64(words_at)
            if channel == 0:
                spans[index, 0] = i32[at[BEGIN.span_first] + span + bin_index]
                spans[index, 1] = i32[at[BEGIN.span_last] + span + bin_index]
    return maps, spans


@kernel
def match_cluster(
    at: I64,
    i32: I32,
    i64: I64,
    f64: F64,
    u64: U64,
    u8: U8,
    events: F64,
    set_first: I32,
    set_value: F64,
    cluster: Int,
    chosen: I32,
    count: Int,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match chosen events with a large cluster, tile by tile, so that a tile stays in the cache.

    Writes pairs from ``count`` on. Returns how many there are then, -1 if there is no room, and all
    flags seen.
    """
    entries, bound, bound_bits, margins = take_apart(at, i32, f64)
    words = u64[at[BEGIN.word] : at[END.word]]
    start = np.int64(i32[at[BEGIN.cluster_first] + cluster])
    end = np.int64(i32[at[BEGIN.cluster_first] + cluster + 1])
    width = (end - start + 63) >> 6
    dense = u8[at[BEGIN.cluster_dense] + cluster]
    maps, spans = find_bitmaps(at, i32, i64, f64, events, cluster, chosen)
    channels = maps.shape[1]
    common = np.empty(TILE_WORDS, np.uint64)
    seen = np.int64(0)
    for tile in range(0, width, TILE_WORDS):
        for index in range(len(chosen)):
            # the words of the tile that are in the span of the event
            begin, stop = max(spans[index, 0], tile), min(spans[index, 1], tile + TILE_WORDS)
            if begin >= stop:
                continue
            # room is checked once for a tile, for all that it could match
            if len(out_event) - count < 64 * TILE_WORDS:
                return -1, seen
            event = chosen[index]
            # Dense: most words stay different from zero to the last channel, so whole tiles are
            # ANDed, channel by channel, in loops that LLVM vectorizes. Sparse: most words are zero
            # after a channel or two, so each word is ANDed by itself and left as soon as it is.
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
                # each bit that is left is a candidate
                while word != 0:
                    entry = start + (word_at << 6) + np.int64(trailing_zeros(word))
                    word &= word - np.uint64(1)  # clears the lowest bit that is set
                    flags = check_bounds(
                        entry, entries, bound, bound_bits, margins, events, event, set_first,
                        set_value,
                    )  # fmt: skip
                    if flags >= 0:
                        number = entries[ENTRY_WORDS * entry + E_SUBSCRIPTION]
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
    pair_cluster: I32,
    pairs: Int,
    count: Int,
    out_event: I32,
    out_subscription: I32,
    out_flags: U8,
) -> tuple[Int, Int]:
    """Match events with the small clusters that they fall into, given as pairs.

    Writes pairs from ``count`` on. Returns how many there are then, -1 if there is no room, and all
    flags seen.
    """
    entries, bound, bound_bits, margins = take_apart(at, i32, f64)
    probe_channel = i32[at[BEGIN.probe_channel] : at[END.probe_channel]]
    probes = f32[at[BEGIN.probe] : at[END.probe]]
    selected = np.empty(BLOCK_ENTRIES, np.int64)
    seen = np.int64(0)
    for pair in range(pairs):
        event, cluster = pair_event[pair], pair_cluster[pair]
        start = i32[at[BEGIN.cluster_first] + cluster]
        end = i32[at[BEGIN.cluster_first] + cluster + 1]
        # for all that the cluster could match; the caller makes the buffers at least that large
        if len(out_event) - count < end - start:
            return -1, seen
        # in blocks, so that the list of selected entries has a fixed size and stays in the cache
        for block in range(start, end, BLOCK_ENTRIES):
            # Without branches, because which entries pass cannot be predicted: each entry is
            # written behind those selected so far, and stays there only if the count goes up.
            chosen = np.int64(0)
            for entry in range(block, min(block + BLOCK_ENTRIES, end)):
                at_probe = PROBES * np.int64(entry)
                passes = True
                for index in range(at_probe, at_probe + PROBES):
                    x = events[event, probe_channel[index]]
                    low, high = probes[2 * index], probes[2 * index + 1]
                    # NaN, which differs from itself: nothing to check here
                    passes &= (low != low) | ((x >= low) & (x <= high))
                selected[chosen] = entry
                chosen += np.int64(passes)
            # only the few that passed are read whole
            for index in range(chosen):
                entry = selected[index]
                flags = check_bounds(
                    entry, entries, bound, bound_bits, margins, events, event, set_first,
                    set_value,
                )  # fmt: skip
                if flags >= 0:
                    number = entries[ENTRY_WORDS * entry + E_SUBSCRIPTION]
                    out_event[count] = event
                    out_subscription[count] = entry if flags & UNSURE else number
                    out_flags[count] = flags
                    seen |= flags
                    count += 1
    return count, seen
