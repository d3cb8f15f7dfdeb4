from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.matching.arrays import F64, U64
from tidegate.matching.columnar.kernels import layout
from tidegate.matching.columnar.kernels.check import satisfied
from tidegate.matching.columnar.kernels.layout import (
    BITMAP_ENTRIES_MIN,
    GROUP_ENTRIES_MIN,
    Entries,
    concatenate,
    flat,
    lay_out,
    limited,
    offsets,
    take_out,
)
from tidegate.matching.columnar.kernels.match import match_events
from tidegate.matching.columnar.kernels.part import (
    DEAD,
    EMPTY_SLOT,
    GONE,
    SET,
    SHARED,
    VERIFY,
    Part,
    pack,
)
from tidegate.matching.columnar.kernels.scan import cell_of

NO_PROGRAM = np.zeros(1, np.int32)
NEVER = (math.nan, math.nan)
"""The bounds of a constraint that nothing satisfies."""
ANY = (-math.inf, math.inf)

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Entry:
    """An entry as a test writes it; its subscription is its place in the list."""

    constraints: dict[int, list[Bounds]]
    flags: int = 0
    motion: tuple[float, ...] = ()


def one(**constraints: Bounds | float) -> Entry:
    """An entry with constraints on channels `c0`, `c1` and so on; a number is an equality."""
    return Entry(
        {
            int(name[1:]): [bounds if isinstance(bounds, tuple) else (bounds, bounds)]
            for name, bounds in constraints.items()
        }
    )


def entries_of(listed: list[Entry]) -> Entries:
    rows = [
        [(channel, *bounds) for channel in sorted(asked) for bounds in asked[channel]]
        for asked in (each.constraints for each in listed)
    ]
    flat_rows = np.array([row for entry in rows for row in entry]).reshape(-1, 3)
    return Entries(
        subscription=np.arange(len(listed), dtype=np.int32),
        flags=np.array([each.flags for each in listed], np.uint8),
        first=offsets(np.array([len(row) for row in rows], np.int64)),
        channel=flat_rows[:, 0].astype(np.int32),
        low=flat_rows[:, 1].copy(),
        high=flat_rows[:, 2].copy(),
        motion_first=offsets(np.array([len(each.motion) for each in listed], np.int64)),
        motion=np.array([word for each in listed for word in each.motion]),
    )


def listed_of(entries: Entries) -> dict[int, str]:
    """Entries by subscription, as texts, because NaN is not equal to NaN."""
    found: dict[int, str] = {}
    for index, number in enumerate(entries.subscription.tolist()):
        part = slice(entries.first[index], entries.first[index + 1])
        rows = zip(
            entries.channel[part].tolist(),
            entries.low[part].tolist(),
            entries.high[part].tolist(),
            strict=True,
        )
        motion = entries.motion[entries.motion_first[index] : entries.motion_first[index + 1]]
        found[number] = repr((entries.flags[index].item(), sorted(rows, key=repr), motion.tolist()))
    return found


@contextmanager
def small_limits() -> Iterator[None]:
    """Let a few entries already make groups and have bitmaps."""
    with (
        mock.patch.object(layout, "GROUP_ENTRIES_MIN", 2),
        mock.patch.object(layout, "GROUPS_MAX", 3),
        mock.patch.object(layout, "BITMAP_ENTRIES_MIN", 2),
    ):
        yield


CHANNELS = 4
OF_SETS = CHANNELS | SET
"""A channel in which an event has one of these sets, by number."""
SETS = [[], [0.0], [2.0], [0.0, 1.0, 2.0]]
# some of which are no floats of 32 bits
VALUES = [-math.inf, -1e300, -2.0, -1.0, 0.0, 1e-300, 0.1, 1.0, 1.5, 2.0, 2.0**24 + 1, math.inf]

numbers = st.sampled_from(VALUES)
equalities = st.sampled_from([0.0, 1.0, 2.0]).map(lambda x: (x, x))
ranges = st.tuples(numbers, numbers)  # those that are the wrong way round are the outside
bounds = equalities | ranges | st.just(NEVER) | st.just(ANY)
members = st.sampled_from([0.0, 1.0, 2.0]).flatmap(
    lambda x: st.sampled_from([(x, x), (x + 1, x - 1)])
)


def some(bounds: st.SearchStrategy[Bounds]) -> st.SearchStrategy[list[Bounds]]:
    """One constraint, or two on one channel."""
    return bounds.map(lambda each: [each]) | st.tuples(bounds, bounds).map(list)


constraints = st.fixed_dictionaries(
    {}, optional={**dict.fromkeys(range(CHANNELS), some(bounds)), OF_SETS: some(members)}
)
flags = st.sampled_from([0, 0, 0, VERIFY, SHARED, DEAD, DEAD | VERIFY, GONE])
motions = st.just(()) | st.lists(numbers | st.just(math.nan), max_size=4).map(tuple)
entry_lists = st.lists(st.builds(Entry, constraints, flags, motions), max_size=15)


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
    with small_limits():
        once = take_out(lay_out(entries, NO_PROGRAM))
        twice = take_out(lay_out(once, NO_PROGRAM))
    assert listed_of(once) == listed_of(twice) == expected


def test_constraints_are_taken_out_by_ascending_channel() -> None:
    listed = [one(c0=(0.0, 1.0), c1=5.0, c2=(2.0, 1.0), c3=3.0)]
    entries = take_out(lay_out(entries_of(listed), NO_PROGRAM))
    assert entries.channel.tolist() == [0, 1, 2, 3]


def test_lists_are_joined() -> None:
    first = entries_of([one(c0=1.0, c1=NEVER), one(), Entry({}, VERIFY, (1.0, 2.0))])
    second = entries_of([Entry({2: [(0.0, 1.0)]}, 0, (3.0,)), one(c0=2.0)])
    second.subscription += np.int32(3)
    assert listed_of(concatenate([first, second])) == listed_of(first) | listed_of(second)
    assert listed_of(concatenate([first])) == listed_of(first)


@given(entry_lists, st.sampled_from([0, 2, CHANNELS - 1, CHANNELS + 5]), st.data())
def test_entries_get_one_more_constraint(
    listed: list[Entry], channel: int, data: st.DataObject
) -> None:
    without = [
        replace(each, constraints={c: b for c, b in each.constraints.items() if c != channel})
        for each in listed
    ]
    added = [data.draw(ranges) for _ in listed]
    wanted = [
        replace(each, constraints=each.constraints | {channel: [bounds]})
        for each, bounds in zip(without, added, strict=True)
    ]
    lows, highs = (np.array([each[side] for each in added], np.float64) for side in (0, 1))
    found = limited(entries_of(without), channel, lows, highs)
    assert listed_of(found) == listed_of(entries_of(wanted))
    for index in range(len(found)):
        channels = found.channel[found.first[index] : found.first[index + 1]].tolist()
        assert channels == sorted(channels)


# -- groups and segments --------------------------------------------------------------------------


def keys_of(part: Part) -> dict[int, dict[int, float]]:
    """What the segment of each subscription asks for, by channel."""
    found: dict[int, dict[int, float]] = {}
    for segment in range(len(part.segment_group)):
        group = part.segment_group[segment]
        channels = part.group_channel[part.group_first[group] : part.group_first[group + 1]]
        at = part.segment_key[segment]
        values = part.key_value[at : at + len(channels)]
        key = dict(zip(channels.tolist(), values.tolist(), strict=True))
        members = slice(part.segment_first[segment], part.segment_first[segment + 1])
        found |= dict.fromkeys(part.subscription[members].tolist(), key)
    return found


@given(entry_lists)
def test_the_key_of_a_segment_is_what_its_entries_ask(listed: list[Entry]) -> None:
    with small_limits():
        keys = keys_of(lay_out(entries_of(listed), NO_PROGRAM))
    assert keys.keys() == set(range(len(listed)))
    for number, each in enumerate(listed):
        equal = {
            (channel, low)
            for channel, all_bounds in each.constraints.items()
            for low, high in all_bounds
            if low == high
        }
        assert keys[number].items() <= equal
        assert bool(keys[number]) == bool(equal)


@given(entry_lists)
def test_each_key_of_a_group_has_one_segment(listed: list[Entry]) -> None:
    with small_limits():
        part = lay_out(entries_of(listed), NO_PROGRAM)
    ends = np.append(part.segment_key, len(part.key_value))
    keys = [
        (group, *part.key_value[ends[segment] : ends[segment + 1]].tolist())
        for segment, group in enumerate(part.segment_group.tolist())
    ]
    assert len(keys) == len(set(keys))
    assert sorted(part.slot_segment[part.slot_segment != EMPTY_SLOT]) == list(range(len(keys)))


def test_many_entries_of_a_kind_are_keyed_by_all_their_equalities() -> None:
    count = GROUP_ENTRIES_MIN
    common = [one(c0=float(i % 3), c1=float(i % 2), c2=(0.0, 1.0)) for i in range(count)]
    keys = keys_of(lay_out(entries_of(common), NO_PROGRAM))
    assert keys[5] == {0: 2.0, 1: 1.0}
    keys = keys_of(lay_out(entries_of(common[1:]), NO_PROGRAM))
    assert all(len(key) == 1 for key in keys.values())


def test_a_rare_entry_is_keyed_by_its_rarest_equality() -> None:
    listed = [one(c0=1.0) for _ in range(5)] + [one(c0=1.0, c1=7.0), one(c0=2.0, c1=7.0)]
    keys = keys_of(lay_out(entries_of(listed), NO_PROGRAM))
    assert keys[5] == {1: 7.0}
    assert keys[6] == {0: 2.0}


# -- bitmaps --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Map:
    """The bitmaps of a channel in a segment."""

    channel: int
    edges: F64
    bits: U64

    def cell(self, x: float) -> int:
        return int(cell_of(self.edges, 0, len(self.edges) + 1, x))

    def has(self, cell: int, place: int) -> bool:
        return bool(int(self.bits[cell, place >> 6]) >> (place & 63) & 1)


def maps_of(part: Part, segment: int) -> list[Map]:
    length = int(part.segment_first[segment + 1] - part.segment_first[segment])
    width = (length + 63) // 64
    found = []
    for index in range(part.map_first[segment], part.map_first[segment + 1]):
        cells, edge, word = part.map_cells[index], part.map_edge[index], part.map_word[index]
        bits = part.word[word : word + (cells + 1) * width].reshape(cells + 1, width)
        edges = part.edge[edge : edge + cells - 1]
        found.append(Map(int(part.map_channel[index]), edges, bits))
    return found


def bounds_of(part: Part, entry: int, channel: int) -> list[Bounds]:
    rows = part.bound.reshape(-1, 3)[part.first[entry] : part.first[entry + 1]]
    channels = rows.copy().view(np.int64)[:, 2]
    return [(float(low), float(high)) for low, high, _ in rows[channels == channel]]


@given(entry_lists, st.lists(numbers | st.floats(-4, 4) | st.just(math.nan), min_size=1))
def test_the_bit_is_set_of_each_entry_that_a_value_satisfies(
    listed: list[Entry], values: list[float]
) -> None:
    with small_limits():
        part = lay_out(entries_of(listed), NO_PROGRAM)
    for segment in range(len(part.segment_group)):
        begin, end = part.segment_first[segment : segment + 2].tolist()
        for each in maps_of(part, segment):
            for entry in range(begin, end):
                asked = bounds_of(part, entry, each.channel)
                for x in values:
                    if all(satisfied(x, *bounds) for bounds in asked):
                        assert each.has(each.cell(x), entry - begin)


@given(entry_lists)
def test_spans_cover_all_bits(listed: list[Entry]) -> None:
    with small_limits():
        part = lay_out(entries_of(listed * 8), NO_PROGRAM)
    for segment in range(len(part.segment_group)):
        for each in maps_of(part, segment)[:1]:
            at = part.span_start[segment]
            for cell, words in enumerate(each.bits):
                with_bits = np.flatnonzero(words)
                first, last = part.span_first[at + cell], part.span_last[at + cell]
                assert set(with_bits) <= set(range(first, last))


def test_only_large_segments_have_bitmaps() -> None:
    some = [one(c0=(float(i), i + 5.0)) for i in range(BITMAP_ENTRIES_MIN)]
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
    some = [one(c0=NEVER) for _ in range(BITMAP_ENTRIES_MIN)]
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
    with small_limits():
        assert found_in(lay_out(entries_of(listed), NO_PROGRAM), events) == expected


@pytest.mark.parametrize("copies", [95, 96, 130, 600])
def test_large_segments_match_what_their_entries_ask(copies: int) -> None:
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
