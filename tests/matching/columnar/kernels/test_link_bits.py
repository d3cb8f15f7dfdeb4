"""Bits of links, against sets of Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from support.kernel_entries import NO_PROGRAM, SMALL_SIZES, Entry, entries_of, entry_lists
from tidegate.matching.columnar.kernels.layout import lay_out
from tidegate.matching.columnar.kernels.link_bits import (
    LinkBits,
    link_bits,
    wanted_entries,
    wanted_groups,
    write_links,
)
from tidegate.matching.columnar.kernels.part import Part
from tidegate.matching.rows.kernels.flags import GONE
from tidegate.matching.rows.link_words import as_words

WIDTH = 70
link_sets = st.integers(0, 2**WIDTH - 1) | st.integers(0, 7)


def words_of(links: list[int]) -> np.ndarray[tuple[int, int], np.dtype[np.uint64]]:
    return np.array([as_words(each, 2) for each in links], np.uint64).reshape(-1, 2)


def links_in(bits: LinkBits, entry: int) -> int:
    """The links whose bits an entry has."""
    return sum(
        (int(bits.entries[link, entry >> 6]) >> (entry & 63) & 1) << link for link in range(WIDTH)
    )


def groups_with(part: Part, links: list[int], link: int) -> set[int]:
    """The groups that have an entry with a link."""
    group_of = np.repeat(part.cluster_group, np.diff(part.cluster_first))
    return {
        int(group)
        for group, each, flags in zip(group_of, links, part.flags, strict=True)
        if each >> link & 1 and not flags & GONE
    }


@given(entry_lists, st.data())
def test_the_bits_of_a_part(listed: list[Entry], data: st.DataObject) -> None:
    part = lay_out(entries_of(listed), NO_PROGRAM, SMALL_SIZES)
    links = data.draw(st.lists(link_sets, min_size=len(listed), max_size=len(listed)))
    bits = link_bits(part, words_of(links), WIDTH)
    present = [0 if flags & GONE else each for each, flags in zip(links, part.flags, strict=True)]
    assert [links_in(bits, entry) for entry in range(len(listed))] == present
    for link in range(WIDTH):
        found = {group for group in range(9) if int(bits.groups[link, 0]) >> group & 1}
        assert found == groups_with(part, links, link)
    if not listed:
        return
    entry, new = data.draw(st.integers(0, len(listed) - 1)), data.draw(link_sets)
    write_links(*bits, part.cluster_first, part.cluster_group, entry, as_words(new, 2))
    present[entry] = new
    assert [links_in(bits, each) for each in range(len(listed))] == present
    for link in range(WIDTH):
        found = {group for group in range(9) if int(bits.groups[link, 0]) >> group & 1}
        assert found >= groups_with(part, present, link)


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=200),
    st.lists(st.integers(0, 2), unique=True),
    st.data(),
)
def test_the_wanted_ones_of_64(links: list[int], undecided: list[int], data: st.DataObject) -> None:
    """From any entry on, also from the last, and for groups from each 64th on."""
    rows = np.zeros((3, (len(links) + 63) // 64 + 1), np.uint64)
    for place, each in enumerate(links):
        for link in range(3):
            rows[link, place >> 6] |= np.uint64((each >> link & 1) << (place & 63))
    wanted = sum(any(each >> link & 1 for link in undecided) << at for at, each in enumerate(links))
    first = data.draw(st.integers(0, len(links) - 1))
    listed = np.array([*undecided, 9], np.int64)  # what is behind the undecided ones does not count
    found = int(wanted_entries(rows, first, listed, len(undecided)))
    assert found == wanted >> first & 2**64 - 1
    word_at = first >> 6
    found = int(wanted_groups(rows, word_at, listed, len(undecided)))
    assert found == wanted >> 64 * word_at & 2**64 - 1
