"""Writing the bounds of a constraint in place, with everything that depends on them.

A bound of an entry is held up to three times, and `write_bounds` keeps them in step:

- in its constraint, exactly;
- in the entry's probes, in short, if it is one of the first constraints (part.py);
- as bits in the bitmaps of its channel, if the cluster has any (bitmaps.py).

Nothing else has to change, because nothing else depends on a bound that is not the key of a
cluster; and a key is never written in place. So a write costs the same at ten subscriptions and at
a million. What gets worse with many writes are the spans of bitmaps, which are only ever widened,
and the bins, which were cut for other bounds. A later layout makes both good again.
"""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import F64, Int
from tidegate.matching.columnar.kernels.part import (
    B_CHANNEL,
    B_HIGH,
    B_LOW,
    BEGIN,
    BOUND_WORDS,
    CHANNEL_MASK,
    E_FIRST,
    END,
    ENTRY_WORDS,
    PROBES,
    PackedPart,
)
from tidegate.matching.columnar.kernels.scan import bin_of
from tidegate.matching.rows.kernels.constraints import as_probe
from tidegate.matching.rows.kernels.jit import inlined, lean_inlined


@inlined
def entry_word(part: PackedPart, entry: Int, word: Int) -> Int:
    """The index of a word of an entry."""
    return part.at[BEGIN.entry] + ENTRY_WORDS * np.int64(entry) + word


@inlined
def constraint_on(part: PackedPart, entry: Int, channel: Int) -> Int:
    """The only constraint of an entry on a channel; -1 if there is none, or more than one."""
    found = np.int64(-1)
    bits = part.f64.view(np.int64)
    begin = part.i32[entry_word(part, entry, E_FIRST)]
    for index in range(begin, part.i32[entry_word(part, entry + 1, E_FIRST)]):
        word = part.at[BEGIN.bound] + BOUND_WORDS * index + B_CHANNEL
        if bits[word] & CHANNEL_MASK == channel:
            if found >= 0:
                return np.int64(-1)
            found = np.int64(index)
    return found


@inlined
def cluster_of(part: PackedPart, entry: Int) -> Int:
    """The cluster of an entry, by bisection."""
    cluster_first = part.i32[part.at[BEGIN.cluster_first] : part.at[END.cluster_first]]
    return np.searchsorted(cluster_first, entry, side="right") - 1


@lean_inlined
def write_bounds(
    part: PackedPart,
    entry: Int,
    cluster: Int,
    constraint: Int,
    channel: Int,
    low: float,
    high: float,
) -> None:
    """Write the bounds of a constraint, its probe, and its bits if the channel has bitmaps."""
    at, i32, f32, f64 = part.at, part.i32, part.f32, part.f64
    bound = at[BEGIN.bound] + BOUND_WORDS * constraint
    old_low, old_high = f64[bound + B_LOW], f64[bound + B_HIGH]
    f64[bound + B_LOW], f64[bound + B_HIGH] = low, high
    # the short form, which has to let pass at least what the new bounds do
    which = constraint - i32[entry_word(part, entry, E_FIRST)]
    probe = at[BEGIN.probe] + 2 * (PROBES * np.int64(entry) + which)
    # NaN: the constraint had no short form when it was laid out, and goes on without one
    if which < PROBES and not np.isnan(f32[probe]):
        if low > high:
            f32[probe], f32[probe + 1] = np.nan, np.nan  # the outside of bounds has none
        else:
            f32[probe], f32[probe + 1] = as_probe(low, high)
    # the bits, from the old bounds and the new ones; small clusters have no bitmap channels
    begin = i32[at[BEGIN.map_first] + cluster]
    for index in range(begin, i32[at[BEGIN.map_first] + cluster + 1]):
        if i32[at[BEGIN.map_channel] + index] == channel:
            first = i32[at[BEGIN.cluster_first] + cluster]
            width = (i32[at[BEGIN.cluster_first] + cluster + 1] - first + 63) >> 6
            # only the first bitmap channel of a cluster has spans
            span = np.int64(i32[at[BEGIN.span_start] + cluster]) if index == begin else np.int64(-1)
            _write_bits(part, index, span, entry - first, width, old_low, old_high, low, high)


@lean_inlined
def _write_bits(
    part: PackedPart,
    index: Int,
    span: Int,
    place: Int,
    width: Int,
    old_low: float,
    old_high: float,
    low: float,
    high: float,
) -> None:
    """Write the bits of an entry in the bitmaps of a channel, and widen the spans of its bins.

    ``index`` is the number of the bitmap channel, ``place`` that of the entry in its cluster, and
    ``width`` the words of a bitmap. Only bits that change are touched: each is in another cache
    line. Most updates and most windows move a bound within its bin, and then touch none.
    """
    at, i32, u64 = part.at, part.i32, part.u64
    edge = part.f64[at[BEGIN.edge] : at[END.edge]]
    edge_at = i32[at[BEGIN.map_edge] + index]
    bins = i32[at[BEGIN.map_bins] + index]
    words_at = at[BEGIN.word] + part.i64[at[BEGIN.map_word] + index]
    # the same word and bit in the bitmap of every bin, ``width`` words apart
    word_at, bit = place >> 6, np.uint64(1) << np.uint64(place & 63)
    old_first, old_last = _bins_between(edge, edge_at, bins, old_low, old_high)
    # first the bins where the old bounds were, which spares two bisections
    if (
        low <= high
        and _is_in_bin(edge, edge_at, bins, old_first, low)
        and _is_in_bin(edge, edge_at, bins, old_last, high)
    ):
        first, last = old_first, old_last
    else:
        first, last = _bins_between(edge, edge_at, bins, low, high)
    # clear the bits that only the old bounds need, and set those that only the new ones need
    for bin_index in range(old_first, old_last + 1):
        if not first <= bin_index <= last:
            u64[words_at + np.int64(bin_index) * width + word_at] &= ~bit
    for bin_index in range(first, last + 1):
        if old_first <= bin_index <= old_last:
            continue
        u64[words_at + np.int64(bin_index) * width + word_at] |= bit
        if span >= 0:
            # a span is never narrowed: that would need a look at all other entries
            span_first = at[BEGIN.span_first] + span + bin_index
            span_last = at[BEGIN.span_last] + span + bin_index
            i32[span_first] = min(i32[span_first], word_at)
            i32[span_last] = max(i32[span_last], word_at + 1)


@inlined
def _is_in_bin(edge: F64, edge_at: Int, bins: Int, bin_index: Int, x: float) -> bool:
    is_above = bin_index == 0 or edge[edge_at + bin_index - 1] <= x
    return bool(is_above and (bin_index == bins - 1 or x < edge[edge_at + bin_index]))


@inlined
def _bins_between(edge: F64, edge_at: Int, bins: Int, low: float, high: float) -> tuple[Int, Int]:
    """The first and the last bin that a constraint reaches; all if it is the outside of bounds.

    NaN, which nothing satisfies, also reaches all: its bits cost a check, and are rare.
    """
    if low <= high:
        return bin_of(edge, edge_at, bins, low), bin_of(edge, edge_at, bins, high)
    return np.int64(0), np.int64(bins - 1)
