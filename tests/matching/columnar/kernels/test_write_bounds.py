"""After any writes, probes, bits and spans are such that no match is missed."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tidegate.matching.columnar.kernels.layout import LayoutSizes, lay_out
from tidegate.matching.columnar.kernels.part import PROBES, PackedPart, pack, unpack
from tidegate.matching.columnar.kernels.scan import bin_of
from tidegate.matching.columnar.kernels.write_bounds import (
    cluster_of,
    constraint_on,
    write_bounds,
)
from tidegate.matching.rows.kernels.constraints import as_probe, satisfied
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets

COUNT = 130
CHANNELS = 3
Bounds = tuple[float, float]


def packed() -> PackedPart:
    """Entries with a range in each of three channels, in one cluster with bitmaps."""
    numbers = np.arange(COUNT, dtype=np.float64)
    low = np.stack([numbers, -numbers, numbers % 7], 1)
    entries = Entries(
        subscription=np.arange(COUNT, dtype=np.int32),
        flags=np.zeros(COUNT, np.int32),
        first=offsets(np.full(COUNT, CHANNELS)),
        channel=np.tile(np.arange(CHANNELS, dtype=np.int32), COUNT),
        low=low.ravel(),
        high=(low + np.array([3.0, 60.0, 1.0])).ravel(),
        motion_first=np.zeros(COUNT + 1, np.int32),
        motion=np.zeros(0),
    )
    return pack(lay_out(entries, np.zeros(1, np.int32), LayoutSizes(bitmap_entries_min=2)))


ends = st.integers(-150, 150).map(float) | st.sampled_from([math.inf, -math.inf, 0.5])
bounds = st.tuples(ends, ends).map(lambda two: (min(two), max(two))) | st.just((math.nan, math.nan))
writes = st.lists(
    st.tuples(st.integers(0, COUNT - 1), st.integers(0, CHANNELS - 1), bounds), max_size=8
)


@given(writes)
@example([(5, 0, (math.nan, math.nan)), (5, 0, (1.0, 2.0)), (64, 1, (-math.inf, math.inf))])
def test_what_is_written_is_found(writes: list[tuple[int, int, Bounds]]) -> None:
    part = packed()
    fields = unpack(part)
    written: dict[tuple[int, int], Bounds] = {}
    for entry, channel, (low, high) in writes:
        constraint = constraint_on(part, entry, channel)
        write_bounds(part, entry, cluster_of(part, entry), constraint, channel, low, high)
        assert (fields.low[constraint], fields.high[constraint]) == (low, high) or math.isnan(low)
        written[entry, channel] = low, high
    for (entry, channel), (low, high) in written.items():
        which = constraint_on(part, entry, channel) - fields.first[entry]
        if which < PROBES:
            at = 2 * (PROBES * entry + which)
            assert tuple(fields.probe[at : at + 2]) == as_probe(low, high)
        check_bits(part, entry, channel, (low, high))


def check_bits(part: PackedPart, entry: int, channel: int, bounds: Bounds) -> None:
    """Values that satisfy the bounds find the bit of the entry, and its word in a span."""
    fields = unpack(part)
    index = fields.map_channel.tolist().index(channel)
    bins, width = int(fields.map_bins[index]), (COUNT + 63) // 64
    for x in [*range(-160, 160, 3), *bounds]:
        if not satisfied(x, *bounds):
            continue
        bin_index = int(bin_of(fields.edge, int(fields.map_edge[index]), bins, x))
        word = int(fields.word[fields.map_word[index] + bin_index * width + (entry >> 6)])
        assert word >> (entry & 63) & 1
        if index == 0:
            assert fields.span_first[bin_index] <= entry >> 6 < fields.span_last[bin_index]


def test_bits_of_other_bins_are_cleared() -> None:
    part = packed()
    fields = unpack(part)
    before = [bin(int(word)).count("1") for word in fields.word]
    constraint = constraint_on(part, 7, 0)
    write_bounds(part, 7, 0, constraint, 0, -math.inf, math.inf)
    assert sum(bin(int(word)).count("1") for word in fields.word) > sum(before)
    low, high = 1e6, 1e6 + 1
    write_bounds(part, 7, 0, constraint, 0, low, high)
    index = fields.map_channel.tolist().index(0)
    bins, width = int(fields.map_bins[index]), (COUNT + 63) // 64
    words = fields.word[fields.map_word[index] :][: bins * width : width]
    assert [int(word) >> 7 & 1 for word in words] == [0] * (bins - 1) + [1]


def test_a_constraint_is_found_by_its_channel() -> None:
    part = packed()
    fields = unpack(part)
    for channel in range(CHANNELS):
        constraint = constraint_on(part, 20, channel)
        assert fields.first[20] <= constraint < fields.first[21]
        assert fields.channel[constraint] == channel
    assert constraint_on(part, 20, CHANNELS) == -1
