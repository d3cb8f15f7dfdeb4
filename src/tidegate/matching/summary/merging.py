"""Merging of summaries, and the part of a summary that belongs to some of its owners.

Rules. (1) An event matches an entry of the merged tables exactly if it matches that entry in its
own tables: merging neither widens nor narrows. (2) Each step is one of NumPy on whole arrays.

Theory of operation ("Subscription Summarization", 4.1: the union of the corresponding sets). Each
owner has its entries in one of the inputs, so entries are interleaved, and within one input keep
their order: that is what keeps the members of a row ascending. Masks are written anew for the
united attributes. The rows of a range table are cut wherever a row of any input starts or ends; of
each input at most one row covers such a piece, and its members become members of the piece.
Neighbouring pieces with the same members are one row again. Equal string rows are one row.

Members are kept as *pairs* meanwhile, one integer for a row and an entry (see `Pairs`), because
pairs of several inputs are united by one sort.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tidegate.errors import SummaryError
from tidegate.matching.arrays import F64, I32, I64, U64, Bools
from tidegate.matching.summary.tables import (
    NO_ENTRIES,
    WORD_BITS,
    AnyTable,
    ChannelKind,
    RangeTable,
    StringTable,
    SummaryTables,
    has_attribute,
    mask_words,
)

GONE = -1
"""In place of a new index: there is none any more."""

_SIGN_BIT = np.int64(-(2**63))


def merge(tables: Sequence[SummaryTables]) -> SummaryTables:
    """The summary of all owners of some summaries; raises SummaryError if two share an owner.

    >>> merge([]) == NO_ENTRIES
    True
    """
    owners = sorted(name for each in tables for name in each.owners)
    twice = {a for a, b in pairwise(owners) if a == b}
    if twice:
        raise SummaryError(f"two of the summaries to merge have entries of {min(twice)!r}")
    attributes = sorted({name for each in tables for name in each.attributes})
    owner_indexes = {name: i for i, name in enumerate(owners)}
    attribute_indexes = {name: i for i, name in enumerate(attributes)}
    entry_owners = [
        np.array([owner_indexes[name] for name in each.owners], np.int32)[each.entry_owners]
        for each in tables
    ]
    masks = [
        remapped_masks(
            each.entry_masks,
            np.array([attribute_indexes[name] for name in each.attributes], np.int64),
            len(attributes),
        )
        for each in tables
    ]
    joined_owners = np.concatenate([NO_ENTRIES.entry_owners, *entry_owners])
    order = np.argsort(joined_owners, kind="stable")
    indexes = np.empty(len(order), np.int64)
    indexes[order] = np.arange(len(order))
    ends = np.cumsum([len(each.entry_owners) for each in tables], dtype=np.int64)
    parts = list(zip(tables, np.split(indexes, ends[:-1]), strict=True)) if tables else []
    numbers = np.concatenate([NO_ENTRIES.entry_numbers, *(each.entry_numbers for each in tables)])
    no_masks = np.zeros((0, mask_words(len(attributes))), np.uint64)
    return SummaryTables(
        tuple(owners),
        tuple(attributes),
        joined_owners[order],
        numbers[order],
        np.concatenate([no_masks, *masks])[order],
        _merged_ranges(parts, len(order)),
        _merged_strings(parts, len(order)),
    )


def restrict(tables: SummaryTables, owners: Collection[str]) -> SummaryTables:
    """Only the entries of these owners, with the attributes and rows that they need.

    Neighbouring rows that only entries of others kept apart are joined.
    """
    names = tuple(name for name in tables.owners if name in set(owners))
    old_owners = [i for i, name in enumerate(tables.owners) if name in set(owners)]
    new_owners = _new_indexes(np.array(old_owners, np.int64), len(tables.owners))
    kept = np.flatnonzero(new_owners[tables.entry_owners] != GONE)
    masks = tables.entry_masks[kept]
    used = [i for i in range(len(tables.attributes)) if np.any(has_attribute(masks, i))]
    new_attributes = _new_indexes(np.array(used, np.int64), len(tables.attributes))
    indexes = _new_indexes(kept, len(tables.entry_owners))
    return SummaryTables(
        names,
        tuple(tables.attributes[i] for i in used),
        new_owners[tables.entry_owners[kept]].astype(np.int32),
        tables.entry_numbers[kept],
        remapped_masks(masks, new_attributes, len(used)),
        tuple(some for each in tables.ranges if (some := _only_entries(each, indexes))),
        tuple(few for each in tables.strings if (few := _only_entries(each, indexes))),
    )


def without(tables: SummaryTables, owners: Collection[str]) -> SummaryTables:
    """All entries but those of these owners."""
    return restrict(tables, set(tables.owners) - set(owners))


def remapped_masks(masks: U64, new_attributes: I64, attribute_count: int) -> U64:
    """Masks whose bit i is moved to ``new_attributes[i]``, or dropped if that is `GONE`."""
    width = mask_words(attribute_count)
    same = np.array_equal(new_attributes, np.arange(len(new_attributes)))
    if same and masks.shape[1] == width:
        return masks
    moved = np.zeros((len(masks), width), np.uint64)
    for old, new in enumerate(new_attributes.tolist()):
        if new != GONE:
            bits = has_attribute(masks, old).astype(np.uint64)
            moved[:, new // WORD_BITS] |= bits << np.uint64(new % WORD_BITS)
    return moved


@dataclass(frozen=True, slots=True)
class Pairs:
    """Members of rows as integers, ``row * entry_count + entry``, in ascending order.

    >>> pairs = Pairs(np.array([1, 5]), entry_count=4)
    >>> [array.tolist() for array in pairs.rows()]
    [[0, 1], [0, 1, 2], [1, 1]]
    """

    keys: I64
    entry_count: int

    def rows(self) -> tuple[I64, I64, I32]:
        """The rows that have members, their starts, and the members, as tables have them."""
        rows, members = np.divmod(self.keys, max(1, self.entry_count))
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = rows[1:] != rows[:-1]
        firsts = np.flatnonzero(is_first)
        return rows[firsts], np.append(firsts, len(rows)), members.astype(np.int32)


def spread(starts: I64, lengths: I64) -> I64:
    """The numbers ``start, start + 1, ...`` of each start, as many as its length.

    >>> spread(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    before = np.cumsum(lengths) - lengths
    spread_out: I64 = np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
    return spread_out


def copied_pairs(
    table: AnyTable, from_rows: I64, to_rows: I64, indexes: I64, entry_count: int
) -> I64:
    """Pairs that make the members of each of ``from_rows`` members of the row in ``to_rows``.

    ``indexes`` has the new index of each entry; members that are `GONE` are left out.
    """
    lengths = np.diff(table.starts)[from_rows]
    entries: I64 = indexes[table.members[spread(table.starts[from_rows], lengths)]]
    keys: I64 = np.repeat(to_rows, lengths) * entry_count + entries
    stays: Bools = entries != GONE
    return keys[stays]


def row_keys(bounds: F64, kind: ChannelKind) -> I64:
    """Bounds as integers of the same order, in which neighbouring values differ by one.

    >>> row_keys(np.array([-0.0, 5e-324]), ChannelKind.NUMBER).tolist()
    [0, 1]
    """
    if kind is ChannelKind.BOOLEAN:
        flags: I64 = bounds.astype(np.int64)
        return flags
    bits: I64 = bounds.view(np.int64)
    keys: I64 = np.where(bits < 0, _SIGN_BIT - bits, bits)
    return keys


def key_bounds(keys: I64, kind: ChannelKind) -> F64:
    """The bounds of such integers.

    >>> key_bounds(row_keys(np.array([-1.5]), ChannelKind.NUMBER), ChannelKind.NUMBER).tolist()
    [-1.5]
    """
    if kind is ChannelKind.BOOLEAN:
        return keys.astype(np.float64)
    bounds: F64 = np.where(keys < 0, _SIGN_BIT - keys, keys).view(np.float64)
    return bounds


_Table = TypeVar("_Table", RangeTable, StringTable)

_Part = tuple[SummaryTables, I64]
"""An input, and the new indexes of its entries."""


def _merged_ranges(parts: list[_Part], entry_count: int) -> tuple[RangeTable, ...]:
    channels: dict[tuple[str, ChannelKind], list[tuple[RangeTable, I64]]] = {}
    for tables, indexes in parts:
        for table in tables.ranges:
            channels.setdefault((table.attribute, table.kind), []).append((table, indexes))
    return tuple(_merged_rows(channels[key], entry_count) for key in sorted(channels))


def _merged_rows(parts: list[tuple[RangeTable, I64]], entry_count: int) -> RangeTable:
    first = parts[0][0]
    lows = [row_keys(table.lows, table.kind) for table, _ in parts]
    ends = [row_keys(table.highs, table.kind) + 1 for table, _ in parts]
    cuts = np.unique(np.concatenate((*lows, *ends)))
    keys = []
    for (table, indexes), low, end in zip(parts, lows, ends, strict=True):
        first_pieces = np.searchsorted(cuts, low)
        lengths = np.searchsorted(cuts, end) - first_pieces
        pieces = spread(first_pieces, lengths)
        rows = np.repeat(np.arange(len(low)), lengths)
        keys.append(copied_pairs(table, rows, pieces, indexes, entry_count))
    # Each list ascends already; the stable sort merges what it finds in order.
    pairs = Pairs(np.sort(np.concatenate(keys), kind="stable"), entry_count)
    pieces, starts, members = pairs.rows()
    return _joined(
        RangeTable(
            first.attribute,
            first.kind,
            key_bounds(cuts[pieces], first.kind),
            key_bounds(cuts[pieces + 1] - 1, first.kind),
            starts,
            members,
        )
    )


def _joined(table: RangeTable) -> RangeTable:
    """The table with neighbouring rows of the same members in one."""
    ends = row_keys(table.highs, table.kind) + 1
    sizes = np.diff(table.starts)
    rows = np.flatnonzero(
        (ends[:-1] == row_keys(table.lows, table.kind)[1:]) & (sizes[:-1] == sizes[1:])
    )
    if not len(rows):
        return table
    places = spread(table.starts[rows], sizes[rows])
    differ = table.members[places] != table.members[places + np.repeat(sizes[rows], sizes[rows])]
    counts = np.add.reduceat(differ, np.cumsum(sizes[rows]) - sizes[rows], dtype=np.int64)
    keeps_low = np.ones(len(sizes), np.bool_)
    keeps_low[rows[counts == 0] + 1] = False
    kept = np.flatnonzero(keeps_low)
    keeps_high = np.append(keeps_low[1:], True)
    return replace(
        table,
        lows=table.lows[kept],
        highs=table.highs[keeps_high],
        starts=np.concatenate(([0], np.cumsum(sizes[kept]))),
        members=table.members[spread(table.starts[kept], sizes[kept])],
    )


def _merged_strings(parts: list[_Part], entry_count: int) -> tuple[StringTable, ...]:
    by_name: dict[str, list[tuple[StringTable, I64]]] = {}
    for tables, indexes in parts:
        for table in tables.strings:
            by_name.setdefault(table.attribute, []).append((table, indexes))
    return tuple(_merged_patterns(by_name[name], entry_count) for name in sorted(by_name))


def _merged_patterns(parts: list[tuple[StringTable, I64]], entry_count: int) -> StringTable:
    patterns = sorted({pattern for table, _ in parts for pattern in table.patterns})
    places = {pattern: row for row, pattern in enumerate(patterns)}
    keys = [
        copied_pairs(
            table,
            np.arange(len(table.patterns)),
            np.array([places[pattern] for pattern in table.patterns], np.int64),
            indexes,
            entry_count,
        )
        for table, indexes in parts
    ]
    pairs = Pairs(np.sort(np.concatenate(keys), kind="stable"), entry_count)
    _, starts, members = pairs.rows()
    return StringTable(parts[0][0].attribute, tuple(patterns), starts, members)


def _new_indexes(kept: I64, count: int) -> I64:
    """For each of ``count`` old indexes its place among those kept, or `GONE`."""
    indexes = np.full(count, GONE, np.int64)
    indexes[kept] = np.arange(len(kept))
    return indexes


def _only_entries(table: _Table, indexes: I64) -> _Table | None:
    """The table with new indexes of entries and without those that are `GONE`; None if empty."""
    entries = indexes[table.members]
    stays: Bools = entries != GONE
    before = np.concatenate(([0], np.cumsum(stays)))[table.starts]
    rows = np.flatnonzero(np.diff(before))
    if not len(rows):
        return None
    starts = np.append(before[rows], before[-1])
    members = entries[stays].astype(np.int32)
    if isinstance(table, StringTable):
        patterns = tuple(table.patterns[row] for row in rows.tolist())
        return replace(table, patterns=patterns, starts=starts, members=members)
    lows, highs = table.lows[rows], table.highs[rows]
    return _joined(replace(table, lows=lows, highs=highs, starts=starts, members=members))
