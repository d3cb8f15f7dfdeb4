"""The links that a part decides, against the pairs that a match of the same part finds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_entries import (
    CHANNELS,
    NO_PROGRAM,
    SETS,
    SMALL_SIZES,
    Entry,
    entries_of,
    entry_lists,
    numbers,
    one,
)
from tidegate.matching.columnar.kernels.layout import LayoutSizes, flat, lay_out
from tidegate.matching.columnar.kernels.link_bits import link_bits
from tidegate.matching.columnar.kernels.match import match_events
from tidegate.matching.columnar.kernels.match_links import (
    S_COUNT,
    S_FLAGS,
    S_LEFT,
    S_STEPS,
    SCRATCH_WORDS,
    STATE_WORDS,
    match_links,
)
from tidegate.matching.columnar.kernels.part import Part, pack
from tidegate.matching.rows.kernels.entry_lists import offsets
from tidegate.matching.rows.kernels.flags import VERIFY
from tidegate.matching.rows.link_words import as_words

WIDTH = 70
SET_FIRST = offsets(np.array([len(each) for each in SETS], np.int64))
SET_VALUE = np.array([member for each in SETS for member in each])
WITHOUT_BITMAPS = LayoutSizes(groups_max=3, group_entries_min=2, bitmap_entries_min=10**6)


@dataclass(frozen=True)
class Decided:
    """What a search found."""

    links: set[int]
    written: list[int]
    flags: int
    steps: int
    had_room: bool


def search(
    part: Part, links: list[int], event: list[float], mask: set[int], room: int = 100
) -> Decided:
    """Search a part for the links of an event; ``links`` has those of each subscription."""
    words = np.array([as_words(links[each], 2) for each in part.subscription.tolist()], np.uint64)
    bits = link_bits(part, words.reshape(-1, 2), WIDTH)
    undecided = np.array(sorted(mask), np.int64)
    state = np.zeros(STATE_WORDS, np.int64)
    state[S_LEFT] = len(mask)
    pair_event, pair_cluster = np.empty((2, 1 + len(SET_VALUE)), np.int32)
    out, flags = np.empty(room, np.int32), np.empty(room, np.uint8)
    had_room = match_links(
        *pack(part), np.array([event]), SET_FIRST, SET_VALUE, *bits, undecided, state, pair_event,
        pair_cluster, np.empty(SCRATCH_WORDS, np.uint64), out, flags,
    )  # fmt: skip
    return Decided(
        mask - set(undecided[: state[S_LEFT]].tolist()),
        sorted(out[: state[S_COUNT]].tolist()),
        int(state[S_FLAGS]),
        int(state[S_STEPS]),
        had_room,
    )


def matches(part: Part, event: list[float]) -> dict[int, int]:
    """The flags of each subscription that an event matches."""
    out = np.empty(5_000, np.int32), np.empty(5_000, np.int32), np.empty(5_000, np.uint8)
    count, _ = match_events(*pack(part), np.array([event]), SET_FIRST, SET_VALUE, *out)
    return dict(zip(out[1][:count].tolist(), out[2][:count].tolist(), strict=True))


def of(links: int) -> set[int]:
    return {link for link in range(WIDTH) if links >> link & 1}


events = st.tuples(*[numbers | st.just(math.nan)] * CHANNELS, st.sampled_from([0.0, 1.0, 2.0, 3.0]))
link_sets = st.integers(0, 7) | st.integers(0, 2**WIDTH - 1)
masks = st.sets(st.sampled_from([0, 1, 2, 3, 69]))


@pytest.mark.parametrize("layout", ["bitmaps", "clusters", "flat"])
@given(entry_lists, events, masks, st.data())
def test_links_are_those_of_the_matches(
    layout: str, listed: list[Entry], event: tuple[float, ...], mask: set[int], data: st.DataObject
) -> None:
    listed = [Entry(each.constraints, each.flags) for each in listed]
    links = data.draw(st.lists(link_sets, min_size=len(listed), max_size=len(listed)))
    sizes = SMALL_SIZES if layout == "bitmaps" else WITHOUT_BITMAPS
    entries = entries_of(listed)
    part = flat(entries, NO_PROGRAM) if layout == "flat" else lay_out(entries, NO_PROGRAM, sizes)
    matching = matches(part, list(event))
    sure = set().union(*(of(links[each]) for each, flags in matching.items() if not flags & VERIFY))
    found = search(part, links, list(event), mask)
    assert found.had_room
    assert found.links == (sure - {0}) & mask
    collected = {each for each in matching if links[each] & 1} if 0 in mask else set()
    unsure = {each for each, flags in matching.items() if flags & VERIFY}
    open_links = mask - found.links
    needed = {each for each in unsure if of(links[each]) & open_links} | collected
    assert needed <= set(found.written) <= unsure | collected
    assert all(of(links[each]) & mask for each in found.written)


SPREAD = [one(c0=(0.0, 9.0), c1=(float(i % 5), 9.0)) for i in range(3_000)]
"""Entries of several tiles of bitmaps, of which an event with 9 matches all."""


def test_a_search_ends_when_all_links_are_decided() -> None:
    part = lay_out(entries_of(SPREAD), NO_PROGRAM)
    found = search(part, [0b110] * len(SPREAD), [1.0, 9.0], {1, 2})
    assert (found.links, found.written, found.steps) == ({1, 2}, [], 2)


def test_only_entries_with_undecided_links_are_checked() -> None:
    part = lay_out(entries_of(SPREAD), NO_PROGRAM)
    links = [0b1000 if i % 500 == 7 else 0b110 for i in range(len(SPREAD))]
    found = search(part, links, [1.0, 9.0], {3, 4})
    assert (found.links, found.steps) == ({3}, 2)
    assert search(part, links, [1.0, 9.0], {4}).steps == 0, "no group has the link"
    assert search(part, links, [1.0, 9.0], set()).steps == 0


def test_groups_without_undecided_links_are_not_looked_up() -> None:
    listed = [one(**{f"c{i % 3}": 1.0}) for i in range(30)]
    part = lay_out(entries_of(listed), NO_PROGRAM, WITHOUT_BITMAPS)
    assert len(part.group_first) - 1 == 3
    links = [0b10 << i % 3 for i in range(30)]
    assert search(part, links, [1.0] * 3, {2}).steps == 2
    assert search(part, links, [1.0] * 3, {1, 2, 3}).steps == 6


def test_all_entries_that_are_collected_are_written() -> None:
    part = lay_out(entries_of(SPREAD), NO_PROGRAM)
    links = [0b11 if i % 3 == 0 else 0b10 for i in range(len(SPREAD))]
    found = search(part, links, [1.0, 9.0], {0, 1}, room=1_000)
    assert found.links == {1}
    assert found.written == list(range(0, 3_000, 3))
    assert not search(part, links, [1.0, 9.0], {0, 1}, room=999).had_room


def test_the_flags_of_what_is_written() -> None:
    listed = [Entry(one(c0=1.0).constraints, flags) for flags in (VERIFY, 0)]
    part = flat(entries_of(listed), NO_PROGRAM)
    assert search(part, [0b10, 0b01], [1.0], {1}).flags == VERIFY
    assert search(part, [0b10, 0b01], [1.0], {0}).flags == 0
