"""The links of the entries of a part, as bits: what a search for links needs besides the part.

A row of words for each link has a bit for each entry that has the link, and likewise for each group
that has entries with it:

    row       word 0           word 1            ...    (entries + 63) // 64 words, and one of zeros
    link 0    entries 0..63    entries 64..127
    link 1    ...

So the OR of the rows of all undecided links has a bit for each entry that is still wanted: a few
reads decide about 64 entries, most often about a whole cluster. A set of links for each entry would
be read for every entry, and takes more memory as long as there are fewer than 64 links.

Clusters begin anywhere, so the bits of the 64 entries from any one on are taken from two words;
hence the word of zeros at the end.

A bit of an entry is exact, and zero once the entry is gone. A bit of a group may be set needlessly,
never missing: when an entry loses a link, others of its group may still have it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import I32, I64, U64, Int
from tidegate.matching.columnar.kernels.part import Part
from tidegate.matching.rows.kernels.flags import GONE
from tidegate.matching.rows.kernels.jit import inlined, lean

ONE = np.uint64(1)


class LinkBits(NamedTuple):
    """The links of a part: matrices with a row for each link."""

    groups: U64
    entries: U64


def link_bits(part: Part, links: U64, width: int) -> LinkBits:
    """The bits of a part for ``width`` links; ``links`` has a row of words for each entry."""
    present = np.flatnonzero((part.flags & GONE) == 0)
    group_of = np.repeat(part.cluster_group, np.diff(part.cluster_first)).astype(np.int64)
    bits = LinkBits(_no_bits(width, len(part.group_first) - 1), _no_bits(width, part.entries))
    _set_bits(bits.entries, present, links[present])
    _set_bits(bits.groups, group_of[present], links[present])
    return bits


def _no_bits(width: int, count: int) -> U64:
    return np.zeros((width, (count + 63) // 64 + 1), np.uint64)


@lean
def _set_bits(bits: U64, places: I64, links: U64) -> None:
    """Set the bits of the links of what is at each place."""
    for index in range(len(places)):
        word, bit = places[index] >> 6, ONE << np.uint64(places[index] & 63)
        for link in range(bits.shape[0]):
            if has_link(links[index], link):
                bits[link, word] |= bit


@inlined
def has_link(words: U64, link: Int) -> bool:
    """Whether a set of links, in words of 64, has a link."""
    return bool(words[link >> 6] >> np.uint64(link & 63) & ONE != 0)


@lean
def write_links(
    groups: U64, entries: U64, cluster_first: I32, cluster_group: I32, entry: Int, links: U64
) -> None:
    """Replace the links of an entry, given in words of 64."""
    cluster = np.searchsorted(cluster_first, entry, side="right") - 1
    group = np.int64(cluster_group[cluster])
    bit, group_bit = ONE << np.uint64(entry & 63), ONE << np.uint64(group & 63)
    for link in range(entries.shape[0]):
        if has_link(links, link):
            entries[link, entry >> 6] |= bit
            groups[link, group >> 6] |= group_bit
        else:
            entries[link, entry >> 6] &= ~bit


@inlined
def wanted_groups(groups: U64, word_at: Int, undecided: I64, left: Int) -> Int:
    """Which of 64 groups have one of the first ``left`` links in ``undecided``."""
    wanted = np.uint64(0)
    for index in range(left):
        wanted |= groups[undecided[index], word_at]
    return wanted


@inlined
def wanted_entries(entries: U64, first: Int, undecided: I64, left: Int) -> Int:
    """Which of the 64 entries from ``first`` on have one of the first ``left`` links."""
    low, high = np.uint64(0), np.uint64(0)
    for index in range(left):
        low |= entries[undecided[index], first >> 6]
        high |= entries[undecided[index], (first >> 6) + 1]
    return joined(low, high, first)


@inlined
def joined(low: Int, high: Int, first: Int) -> Int:
    """The 64 bits from ``first`` on, of the word in which it is and of the next one."""
    shift = np.uint64(first & 63)
    # in two steps: a shift by 64, where nothing is taken from the next word, is undefined
    return low >> shift | (high << ONE) << (np.uint64(63) - shift)
