"""Parts are laid out so that they match what their entries require, and can be taken out again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_entries import (
    CHANNELS,
    NEVER,
    NO_PROGRAM,
    OF_SETS,
    SETS,
    SMALL_SIZES,
    Bounds,
    Entry,
    entries_of,
    entry_lists,
    keys_of,
    listed_of,
    numbers,
    one,
)
from tidegate.matching.arrays import F64, U64
from tidegate.matching.columnar.kernels.layout import DEFAULT_SIZES, flat, lay_out, take_out
from tidegate.matching.columnar.kernels.match import match_events
from tidegate.matching.columnar.kernels.part import EMPTY_SLOT, Part, pack
from tidegate.matching.columnar.kernels.scan import bin_of
from tidegate.matching.rows.kernels.constraints import satisfied
from tidegate.matching.rows.kernels.entry_lists import concatenate
from tidegate.matching.rows.kernels.flags import DEAD, GONE

# -- there and back -------------------------------------------------------------------------------


@given(entry_lists)
def test_what_is_laid_out_can_be_taken_out(listed: list[Entry]) -> None:
    entries = entries_of(listed)
    expected = {
        number: text
        for number, text in listed_of(entries).items()
        if not listed[number].flags & GONE
    }
    assert listed_of(take_out(flat(entries, NO_PROGRAM))) == expected
    once = take_out(lay_out(entries, NO_PROGRAM, SMALL_SIZES))
    twice = take_out(lay_out(once, NO_PROGRAM, SMALL_SIZES))
    assert listed_of(once) == listed_of(twice) == expected


@given(entry_lists, st.integers(1, 4))
def test_what_is_laid_out_can_be_taken_out_piece_by_piece(listed: list[Entry], step: int) -> None:
    part = lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES)
    pieces = [take_out(part, begin, begin + step) for begin in range(0, part.entries + 1, step)]
    assert listed_of(concatenate(pieces)) == listed_of(take_out(part))


def test_constraints_are_taken_out_by_ascending_channel() -> None:
    listed = [one(c0=(0.0, 1.0), c1=5.0, c2=(2.0, 1.0), c3=3.0)]
    entries = take_out(lay_out(entries_of(listed), NO_PROGRAM))
    assert entries.channel.tolist() == [0, 1, 2, 3]


# -- clusters -------------------------------------------------------------------------------------


@given(entry_lists)
def test_each_key_of_a_group_has_one_cluster(listed: list[Entry]) -> None:
    part = lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES)
    ends = np.append(part.cluster_key, len(part.key_value))
    keys = [
        (group, *part.key_value[ends[cluster] : ends[cluster + 1]].tolist())
        for cluster, group in enumerate(part.cluster_group.tolist())
    ]
    assert len(keys) == len(set(keys))
    assert sorted(part.slot_cluster[part.slot_cluster != EMPTY_SLOT]) == list(range(len(keys)))


# -- bitmaps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """The bitmaps of a channel in a cluster."""

    channel: int
    edges: F64
    bits: U64

    def bin(self, x: float) -> int:
        return int(bin_of(self.edges, 0, len(self.edges) + 1, x))

    def has(self, bin_index: int, place: int) -> bool:
        return bool(int(self.bits[bin_index, place >> 6]) >> (place & 63) & 1)


def maps_of(part: Part, cluster: int) -> list[Map]:
    length = int(part.cluster_first[cluster + 1] - part.cluster_first[cluster])
    width = (length + 63) // 64
    found = []
    for index in range(part.map_first[cluster], part.map_first[cluster + 1]):
        bins, edge, word = part.map_bins[index], part.map_edge[index], part.map_word[index]
        bits = part.word[word : word + (bins + 1) * width].reshape(bins + 1, width)
        edges = part.edge[edge : edge + bins - 1]
        found.append(Map(int(part.map_channel[index]), edges, bits))
    return found


def bounds_of(part: Part, entry: int, channel: int) -> list[Bounds]:
    rows = slice(part.first[entry], part.first[entry + 1])
    bounds = zip(part.channel[rows], part.low[rows], part.high[rows], strict=True)
    return [(float(low), float(high)) for each, low, high in bounds if each == channel]


@given(entry_lists, st.lists(numbers | st.floats(-4, 4) | st.just(math.nan), min_size=1))
def test_the_bit_is_set_of_each_entry_that_a_value_satisfies(
    listed: list[Entry], values: list[float]
) -> None:
    part = lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES)
    for cluster in range(len(part.cluster_group)):
        begin, end = part.cluster_first[cluster : cluster + 2].tolist()
        for each in maps_of(part, cluster):
            for entry in range(begin, end):
                asked = bounds_of(part, entry, each.channel)
                for x in values:
                    if all(satisfied(x, *bounds) for bounds in asked):
                        assert each.has(each.bin(x), entry - begin)


@given(entry_lists)
def test_spans_cover_all_bits(listed: list[Entry]) -> None:
    part = lay_out(entries_of(listed * 8), NO_PROGRAM, SMALL_SIZES)
    for cluster in range(len(part.cluster_group)):
        for each in maps_of(part, cluster)[:1]:
            at = part.span_start[cluster]
            for bin_index, words in enumerate(each.bits):
                with_bits = np.flatnonzero(words)
                first, last = part.span_first[at + bin_index], part.span_last[at + bin_index]
                assert set(with_bits) <= set(range(first, last))


def test_only_large_clusters_have_bitmaps() -> None:
    some = [one(c0=(float(i), i + 5.0)) for i in range(DEFAULT_SIZES.bitmap_entries_min)]
    assert len(maps_of(lay_out(entries_of(some), NO_PROGRAM), 0)) == 1
    assert not maps_of(lay_out(entries_of(some[1:]), NO_PROGRAM), 0)


def test_a_channel_that_few_entries_constrain_has_no_bitmaps() -> None:
    some = [one(c0=(float(i), i + 5.0)) for i in range(199)]
    part = lay_out(entries_of([*some, one(c0=(0.0, 1.0), c1=(0.0, 1.0))]), NO_PROGRAM)
    assert [each.channel for each in maps_of(part, 0)] == [0]


def test_the_channel_that_leaves_the_fewest_comes_first() -> None:
    some = [one(c0=(-math.inf, float(i)), c1=(float(i), i + 1.0)) for i in range(200)]
    part = lay_out(entries_of(some), NO_PROGRAM)
    assert [each.channel for each in maps_of(part, 0)] == [1, 0]


def test_bounds_that_nothing_satisfies_are_no_equalities_and_have_no_edges() -> None:
    some = [one(c0=NEVER) for _ in range(DEFAULT_SIZES.bitmap_entries_min)]
    part = lay_out(entries_of(some), NO_PROGRAM)
    assert keys_of(part)[0] == {}
    (only,) = maps_of(part, 0)
    assert not len(only.edges)


# -- matching -------------------------------------------------------------------------------------


def found_in(part: Part, events: list[list[float]]) -> list[tuple[int, int, int]]:
    """What the kernel finds: events, subscriptions and flags."""
    matrix = np.array(events, np.float64)
    room = 4096 * len(events)
    out = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.uint8)
    sets = np.array([0, *np.cumsum([len(each) for each in SETS])], np.int32)
    members = np.array([number for each in SETS for number in each])
    count, _ = match_events(*pack(part), matrix, sets, members, *out)
    assert count >= 0
    found = list(zip(*(each[:count].tolist() for each in out), strict=True))
    assert [event for event, *_ in found] == sorted(event for event, *_ in found)
    return sorted(found)


def expected_of(listed: list[Entry], events: list[list[float]]) -> list[tuple[int, int, int]]:
    return [
        (event, number, each.flags)
        for event, row in enumerate(events)
        for number, each in enumerate(listed)
        if not each.flags & (DEAD | GONE)
        and all(
            passes(row, channel, *bounds)
            for channel, asked in each.constraints.items()
            for bounds in asked
        )
    ]


def passes(row: list[float], channel: int, low: float, high: float) -> bool:
    if channel != OF_SETS:
        return satisfied(row[channel], low, high)
    number = row[CHANNELS]
    if math.isnan(number):
        return False
    return low in SETS[int(number)] if low == high else low - 1 not in SETS[int(number)]


absent = st.just(math.nan)
sets = st.integers(0, len(SETS) - 1).map(float) | absent
event_lists = st.lists(
    st.tuples(*[numbers | absent] * CHANNELS, sets).map(list), min_size=1, max_size=5
)


@given(entry_lists, event_lists)
def test_a_part_matches_what_its_entries_ask(
    listed: list[Entry], events: list[list[float]]
) -> None:
    expected = expected_of(listed, events)
    assert found_in(flat(entries_of(listed), NO_PROGRAM), events) == expected
    laid_out = lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES)
    assert found_in(laid_out, events) == expected


@pytest.mark.parametrize("copies", [95, 96, 130, 600])
def test_large_clusters_match_what_their_entries_ask(copies: int) -> None:
    kinds = [one(c0=(0.0, 1.0)), one(c0=1.0, c1=(2.0, 1.0)), one(c0=NEVER), one(c0=1.0), one()]
    listed = kinds * copies
    events = [
        [x, y, math.nan, math.nan, math.nan] for x in (0.0, 0.5, 1.0, math.nan) for y in (1.0, 1.5)
    ]
    part = lay_out(entries_of(listed), NO_PROGRAM)
    assert found_in(part, events) == expected_of(listed, events)


def test_minus_zero_is_a_key_like_zero() -> None:
    listed = [one(c0=-0.0), one(c0=0.0)]
    part = lay_out(entries_of(listed), NO_PROGRAM)
    assert found_in(part, [[0.0]]) == expected_of(listed, [[0.0]])
