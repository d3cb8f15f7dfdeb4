"""Finding the links of one event in a part of the index, as `match.py` finds its entries.

Theory of operation. Link matching (Gryphon, 3.3) carries a mask of undecided links, and looks at
nothing that could decide none of them. Here the mask is a list of the undecided links, and what
could decide one of them is found by link bits (link_bits.py), 64 groups or entries at a time:

    for each group that has an undecided link     others are not looked up
        look up the cluster of the event
        for each 64 of its entries
            leave those with an undecided link, and in a large cluster with bits in its bitmaps
            check the bounds of each entry that is left
                of one that is satisfied, all links are decided

A search ends as soon as no link is undecided. It differs from `match.py` in the order of its loops:
a cluster is scanned as soon as it is found, because what is found there may spare all other groups.

The link COLLECTED is never decided: each entry that has it is written, as its subscription is
wanted itself. Entries that are not sure (VERIFY, UNSURE) decide nothing, and are written as well,
for the caller to decide.

The bits say Maybe or No. There is no Yes as in the annotations of a search tree, which decides a
link without a check: an event that falls into a cluster surely satisfies only those of its entries
that have no constraints besides the key, and to check one of these costs as little.

What was tried: to leave out entries by their links before the bitmaps are read. It took no less
time when few links were undecided, and more when many were.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import F32, F64, I32, I64, U8, U64, Int
from tidegate.matching.columnar.kernels.bitmaps import MAP_CHANNELS_MAX
from tidegate.matching.columnar.kernels.check import check_bounds, take_apart
from tidegate.matching.columnar.kernels.link_bits import (
    ONE,
    joined,
    wanted_entries,
    wanted_groups,
)
from tidegate.matching.columnar.kernels.lookup import find_by_values, find_in_sets
from tidegate.matching.columnar.kernels.part import (
    BEGIN,
    E_SUBSCRIPTION,
    END,
    ENTRY_WORDS,
    PROBES,
    PackedPart,
)
from tidegate.matching.columnar.kernels.scan import TILE_WORDS, bin_of, trailing_zeros
from tidegate.matching.rows.kernels.flags import SET, UNSURE, VERIFY
from tidegate.matching.rows.kernels.jit import lean, lean_inlined

COLLECTED_LINK = 0
"""The number of the link COLLECTED."""

S_LEFT, S_COUNT, S_FLAGS, S_STEPS, STATE_WORDS = range(5)
"""The state of a search: how many links are undecided, how many entries are written, all flags of
these, and matching steps.

A step is a group that is looked up or an entry that is checked. Reading bitmaps is no step.
"""

SCRATCH_WORDS = MAP_CHANNELS_MAX + 2 * TILE_WORDS + 1
"""Scratch space, in words of 64 bits, that a search for links needs."""


class EncodedEvent(NamedTuple):
    """The event, as a matrix of one row, and its sets (match.py)."""

    values: F64
    set_first: I32
    set_value: F64


class SearchArrays(NamedTuple):
    """What a search for links reads and writes besides the part and the event."""

    groups: U64
    entries: U64
    undecided: I64  # the first S_LEFT are the links that are undecided
    state: I64
    maps: U64  # scratch space: the places of the bitmaps of a cluster,
    tile: U64  # candidates of a tile of words,
    wanted: U64  # and words of link bits, one more than a tile has
    out_subscription: I32  # of an entry that is UNSURE, the number of the entry
    out_flags: U8


@lean
def match_links(
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
    groups: U64,
    entries: U64,
    undecided: I64,
    state: I64,
    pair_event: I32,
    pair_cluster: I32,
    scratch: U64,
    out_subscription: I32,
    out_flags: U8,
) -> bool:
    """Decide links of one event with the entries of a packed part; see SearchArrays.

    ``pair_event`` and ``pair_cluster`` are scratch space, for as many clusters as the event has
    members of sets, and one. Returns whether there was room for all that is to be written.
    """
    part = PackedPart(at, i32, i64, f32, f64, u64, u8)
    event = EncodedEvent(events, set_first, set_value)
    tile, wanted_words = scratch[MAP_CHANNELS_MAX:], scratch[MAP_CHANNELS_MAX + TILE_WORDS :]
    search = SearchArrays(
        groups, entries, undecided, state, scratch, tile, wanted_words, out_subscription, out_flags
    )
    count = at[END.group_first] - at[BEGIN.group_first] - 1
    for word_at in range((count + 63) >> 6):
        wanted = wanted_groups(groups, word_at, undecided, state[S_LEFT])
        while wanted != 0:
            group = 64 * word_at + np.int64(trailing_zeros(wanted))
            wanted &= wanted - ONE
            state[S_STEPS] += 1
            before = state[S_LEFT]
            first = i32[at[BEGIN.group_first] + group]
            if first == i32[at[BEGIN.group_first] + group + 1] or not (
                i32[at[BEGIN.group_channel] + first] & SET
            ):
                pairs = find_by_values(part, events, 0, 1, group, pair_event, pair_cluster, 0)
            else:
                pairs = find_in_sets(
                    part, events, 0, 1, group, set_first, set_value, pair_event, pair_cluster, 0
                )
            for pair in range(pairs):
                if not _scan_cluster(part, event, search, np.int64(pair_cluster[pair])):
                    return False
            if state[S_LEFT] != before:
                wanted &= wanted_groups(groups, word_at, undecided, state[S_LEFT])
    return True


@lean_inlined
def _scan_cluster(
    part: PackedPart, event: EncodedEvent, search: SearchArrays, cluster: Int
) -> bool:
    """Check the entries of a cluster that have undecided links; returns whether there was room."""
    state = search.state
    start = np.int64(part.i32[part.at[BEGIN.cluster_first] + cluster])
    channels, begin, stop = _find_bitmaps(part, event, search, cluster)
    for tile in range(begin, stop, TILE_WORDS):
        count = min(TILE_WORDS, stop - tile)
        left = state[S_LEFT]
        if channels > 0:
            _read_bitmaps(part, search, cluster, channels, tile, count)
        else:
            _take_all(part, search, cluster, tile, count)
        _keep_wanted(search, start + (tile << 6), count)
        for step in range(count):
            word = search.tile[step]
            if word == 0:
                continue
            first = start + ((tile + step) << 6)
            if state[S_LEFT] != left:  # since the tile was read
                word &= wanted_entries(search.entries, first, search.undecided, state[S_LEFT])
            if not _check_entries(part, event, search, first, word, channels == 0):
                return False
        if state[S_LEFT] == 0:
            return True
    return True


@lean_inlined
def _find_bitmaps(
    part: PackedPart, event: EncodedEvent, search: SearchArrays, cluster: Int
) -> tuple[Int, Int, Int]:
    """Find the bitmaps of the bins that the event falls into; their places are written.

    Returns how many there are, none in a small cluster, and the span of words to look at: that of
    the event's bin in the first channel, as in scan.py.
    """
    at, i32 = part.at, part.i32
    edge = part.f64[at[BEGIN.edge] : at[END.edge]]
    first = at[BEGIN.cluster_first] + cluster
    width = (np.int64(i32[first + 1]) - np.int64(i32[first]) + 63) >> 6
    map_begin = np.int64(i32[at[BEGIN.map_first] + cluster])
    channels = np.int64(i32[at[BEGIN.map_first] + cluster + 1]) - map_begin
    begin, stop = np.int64(0), width
    for channel in range(channels):
        place = map_begin + channel
        x = event.values[0, i32[at[BEGIN.map_channel] + place]]
        # as in find_bitmaps of scan.py, which took 5 % longer when it shared a function with this
        edge_at, bins = i32[at[BEGIN.map_edge] + place], i32[at[BEGIN.map_bins] + place]
        bin_index = np.int64(bin_of(edge, edge_at, bins, x))
        search.maps[channel] = np.uint64(part.i64[at[BEGIN.map_word] + place] + bin_index * width)
        if channel == 0:
            span = i32[at[BEGIN.span_start] + cluster] + bin_index
            begin = np.int64(i32[at[BEGIN.span_first] + span])
            stop = np.int64(i32[at[BEGIN.span_last] + span])
    return channels, begin, stop


@lean_inlined
def _read_bitmaps(
    part: PackedPart, search: SearchArrays, cluster: Int, channels: Int, tile: Int, count: Int
) -> None:
    """Write the AND of the bitmaps for the words of a tile; dense or sparse as in scan.py."""
    words = part.u64[part.at[BEGIN.word] : part.at[END.word]]
    maps, common = search.maps, search.tile
    base = maps[0] + np.uint64(tile)
    for step in range(count):
        common[np.uint64(step)] = words[base + np.uint64(step)]
    if part.u8[part.at[BEGIN.cluster_dense] + cluster]:
        for channel in range(1, channels):
            base = maps[channel] + np.uint64(tile)
            for step in range(count):
                common[np.uint64(step)] &= words[base + np.uint64(step)]
        return
    for step in range(count):
        word, channel = common[step], 1
        while word != 0 and channel < channels:
            word &= words[maps[channel] + np.uint64(tile + step)]
            channel += 1
        common[step] = word


@lean_inlined
def _take_all(part: PackedPart, search: SearchArrays, cluster: Int, tile: Int, count: Int) -> None:
    """Set the bits of all entries of a tile of a small cluster."""
    first = part.at[BEGIN.cluster_first] + cluster
    entries = np.int64(part.i32[first + 1]) - np.int64(part.i32[first]) - (tile << 6)
    for step in range(count):
        search.tile[step] = ~np.uint64(0)
    if entries < count << 6:
        search.tile[count - 1] = (ONE << np.uint64(entries & 63)) - ONE


@lean_inlined
def _keep_wanted(search: SearchArrays, first: Int, count: Int) -> None:
    """Clear the bits of a tile, from the entry ``first`` on, that have no undecided link."""
    rows, wanted = search.entries, search.wanted
    word_at = np.uint64(first >> 6)
    for step in range(count + 1):
        wanted[np.uint64(step)] = np.uint64(0)
    for index in range(search.state[S_LEFT]):
        link = search.undecided[index]
        for step in range(count + 1):
            wanted[np.uint64(step)] |= rows[link, word_at + np.uint64(step)]
    for step in range(count):
        search.tile[step] &= joined(wanted[step], wanted[step + 1], first)


@lean_inlined
def _check_entries(
    part: PackedPart, event: EncodedEvent, search: SearchArrays, first: Int, word: Int, probed: bool
) -> bool:
    """Check the entries whose bits are set, counted from ``first``, until none is wanted.

    ``probed``: their probes are tried before, as in small clusters.
    """
    entries, bound, bound_bits, margins = take_apart(part.at, part.i32, part.f64)
    state = search.state
    while word != 0:
        entry = first + np.int64(trailing_zeros(word))
        word &= word - ONE
        state[S_STEPS] += 1
        if probed and not _passes_probes(part, event, entry):
            continue
        flags = check_bounds(
            entry, entries, bound, bound_bits, margins, event.values, 0, event.set_first,
            event.set_value,
        )  # fmt: skip
        if flags < 0:
            continue
        before = state[S_LEFT]
        if _decide(search, entry, flags):
            count = state[S_COUNT]
            if count == len(search.out_flags):
                return False
            number = entries[ENTRY_WORDS * entry + E_SUBSCRIPTION]
            search.out_subscription[count] = entry if flags & UNSURE else number
            search.out_flags[count] = flags
            state[S_COUNT] += 1
            state[S_FLAGS] |= flags
        if state[S_LEFT] != before:
            word &= wanted_entries(search.entries, first, search.undecided, state[S_LEFT])
    return True


@lean_inlined
def _passes_probes(part: PackedPart, event: EncodedEvent, entry: Int) -> bool:
    """Whether the event satisfies the short forms of an entry's first constraints."""
    passes = True
    for index in range(PROBES * entry, PROBES * entry + PROBES):
        x = event.values[0, part.i32[part.at[BEGIN.probe_channel] + index]]
        low = part.f32[part.at[BEGIN.probe] + 2 * index]
        high = part.f32[part.at[BEGIN.probe] + 2 * index + 1]
        passes &= (low != low) | ((x >= low) & (x <= high))  # NaN: nothing to check here
    return passes


@lean_inlined
def _decide(search: SearchArrays, entry: Int, flags: Int) -> bool:
    """Decide the links of an entry that is satisfied, if that is sure.

    Returns whether the entry is to be written.
    """
    undecided, state = search.undecided, search.state
    sure = flags & (VERIFY | UNSURE) == 0
    written = not sure
    index = 0
    while index < state[S_LEFT]:
        link = undecided[index]
        has = search.entries[link, entry >> 6] >> np.uint64(entry & 63) & ONE != 0
        if has and link == COLLECTED_LINK:
            written = True
        elif has and sure:
            state[S_LEFT] -= 1
            undecided[index] = undecided[state[S_LEFT]]
            continue
        index += 1
    return written
