"""What changes in the names and entries of a summary.

Theory of operation. Names and entries are referred to by their places, because both ends hold the
old summary: removed ones by their old index, added ones by what they are, and those that stay not
at all. An entry stays if its owner, its number and the attributes of its mask stay; one whose mask
changes is removed and added. Added entries are written column by column: how many each owner gets,
their numbers as differences, and their masks, of which there are few different ones: a mask is
listed once, and later named by how many new ones came since.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import I64, U64
from tidegate.matching.summary.merging import GONE, remapped_masks
from tidegate.matching.summary.tables import (
    WORD_BITS,
    SummaryTables,
    has_attribute,
    mask_words,
)
from tidegate.matching.summary.wire.columns import Reader
from tidegate.matching.summary.wire.layout import SummaryEdit


@dataclass(frozen=True, slots=True)
class Moves:
    """Where old owners, attributes and entries are in the new summary; `GONE` if they are not."""

    owners: I64
    attributes: I64
    entries: I64


def moves(old: SummaryTables, new: SummaryTables) -> Moves:
    """What stays, and where it is."""
    owners = _places(old.owners, new.owners)
    attributes = _places(old.attributes, new.attributes)
    entries = np.full(len(old.entry_owners), GONE, np.int64)
    if not len(entries):
        return Moves(owners, attributes, entries)
    masks = remapped_masks(old.entry_masks, attributes, len(new.attributes))
    stays = owners[old.entry_owners] != GONE
    for removed in np.flatnonzero(attributes == GONE).tolist():
        stays &= ~has_attribute(old.entry_masks, removed)
    chosen = np.flatnonzero(stays)
    both_owners = np.concatenate((owners[old.entry_owners[chosen]], new.entry_owners))
    both_numbers = np.concatenate((old.entry_numbers[chosen], new.entry_numbers))
    order = np.lexsort((both_numbers, both_owners))  # stable, so an old one is before its new one
    first, second = order[:-1], order[1:]
    same = (both_owners[first] == both_owners[second]) & (
        both_numbers[first] == both_numbers[second]
    )
    before, after = chosen[first[same]], second[same] - len(chosen)
    equal = np.all(masks[before] == new.entry_masks[after], axis=1)
    entries[before[equal]] = after[equal]
    return Moves(owners, attributes, entries)


def summary_edit(
    old: SummaryTables, new: SummaryTables, moved: Moves, tables: list[int]
) -> SummaryEdit:
    """The record of what changes, and of the tables that follow it."""
    owners, attributes, entries = moved.owners, moved.attributes, moved.entries
    is_added = np.ones(len(new.entry_owners), np.bool_)
    is_added[entries[entries != GONE]] = False
    numbers = new.entry_numbers[is_added]
    adding_owners, counts = np.unique(new.entry_owners[is_added], return_counts=True)
    firsts = np.cumsum(counts) - counts
    codes, sizes, masked = _coded_masks(new.entry_masks[is_added])
    return SummaryEdit(
        owners_removed=np.flatnonzero(owners == GONE),
        owners_added=_added(old.owners, new.owners),
        attributes_removed=np.flatnonzero(attributes == GONE),
        attributes_added=_added(old.attributes, new.attributes),
        entries_removed=np.flatnonzero((entries == GONE) & (owners[old.entry_owners] != GONE)),
        adding_owners=adding_owners.astype(np.int64),
        adding_counts=counts,
        first_numbers=numbers[firsts],
        number_gaps=np.delete(np.diff(numbers, prepend=0), firsts),
        mask_codes=codes,
        mask_sizes=sizes,
        mask_attributes=masked,
        tables=np.array(tables, np.int64),
    )


def edited_entries(
    old: SummaryTables, edit: SummaryEdit, reader: Reader
) -> tuple[SummaryTables, Moves]:
    """The new names and entries, still without tables, and where the old ones are."""
    owners, owner_places = _edited_names(old.owners, edit.owners_removed, edit.owners_added, reader)
    attributes, attribute_places = _edited_names(
        old.attributes, edit.attributes_removed, edit.attributes_added, reader
    )
    stays = owner_places[old.entry_owners] != GONE
    stays[reader.indexes(edit.entries_removed, len(stays))] = False
    kept = np.flatnonzero(stays)
    added_owners, added_numbers = _added_entries(edit, len(owners), reader)
    reader.allowance.take(len(kept) + len(added_owners), 3 * (16 + 8 * mask_words(len(attributes))))
    kept_masks = remapped_masks(old.entry_masks[kept], attribute_places, len(attributes))
    added_masks = _decoded_masks(edit, len(added_owners), len(attributes), reader)
    all_owners = np.concatenate((owner_places[old.entry_owners[kept]], added_owners))
    numbers = np.concatenate((old.entry_numbers[kept], added_numbers))
    order = np.lexsort((numbers, all_owners))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    entries = np.full(len(old.entry_owners), GONE, np.int64)
    entries[kept] = places[: len(kept)]
    new = SummaryTables(
        owners,
        attributes,
        all_owners[order].astype(np.int32),
        numbers[order],
        np.concatenate((kept_masks, added_masks))[order],
        (),
        (),
    )
    return new, Moves(owner_places, attribute_places, entries)


def _places(names: tuple[str, ...], others: tuple[str, ...]) -> I64:
    places = {name: i for i, name in enumerate(others)}
    return np.array([places.get(name, GONE) for name in names], np.int64)


def _added(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    held = set(old)
    return tuple(name for name in new if name not in held)


def _edited_names(
    old: tuple[str, ...], removed: I64, added: tuple[str, ...], reader: Reader
) -> tuple[tuple[str, ...], I64]:
    gone = set(reader.indexes(removed, len(old)).tolist())
    kept = [name for i, name in enumerate(old) if i not in gone]
    names = tuple(sorted((*kept, *added)))
    places = {name: i for i, name in enumerate(names)}
    moved = [GONE if i in gone else places[name] for i, name in enumerate(old)]
    return names, np.array(moved, np.int64)


def _added_entries(edit: SummaryEdit, owner_count: int, reader: Reader) -> tuple[I64, I64]:
    """Owner and number of each added entry. Numbers that overflow are negative, so refused."""
    counts, firsts_given = edit.adding_counts, edit.first_numbers
    owners = reader.indexes(edit.adding_owners, owner_count)
    count = len(edit.number_gaps) + len(firsts_given)
    bounded = np.all((counts >= 1) & (counts <= count))
    if not bounded or not len(counts) == len(owners) == len(firsts_given):
        raise reader.malformed("an owner has no number of added entries, or none")
    if int(counts.sum()) != count:
        raise reader.malformed("an added entry has no number")
    firsts = np.cumsum(counts) - counts
    steps = np.empty(count, np.int64)
    is_first = np.zeros(count, np.bool_)
    is_first[firsts] = True
    steps[is_first], steps[~is_first] = firsts_given, edit.number_gaps
    sums = np.cumsum(steps)
    numbers: I64 = sums - np.repeat(sums[firsts] - firsts_given, counts)
    return np.repeat(owners, counts), numbers


def _coded_masks(masks: U64) -> tuple[I64, I64, I64]:
    """The codes of some masks; for each new one its size; and all of their attributes."""
    distinct, first_uses, inverse = np.unique(masks, axis=0, return_index=True, return_inverse=True)
    in_order = np.argsort(first_uses)
    ranks = np.empty(len(distinct), np.int64)
    ranks[in_order] = np.arange(len(distinct))
    numbers = ranks[inverse.reshape(-1)]
    new_before = np.concatenate(([0], np.maximum.accumulate(numbers)[:-1] + 1))[: len(numbers)]
    bits = np.unpackbits(
        np.ascontiguousarray(distinct[in_order], "<u8").view(np.uint8), axis=1, bitorder="little"
    )
    of_masks, attributes = np.nonzero(bits)
    return new_before - numbers, np.bincount(of_masks, minlength=len(distinct)), attributes


def _decoded_masks(edit: SummaryEdit, count: int, attribute_count: int, reader: Reader) -> U64:
    codes, sizes, attributes = edit.mask_codes, edit.mask_sizes, edit.mask_attributes
    is_new = codes == 0
    new_before = np.cumsum(is_new) - is_new
    if len(codes) != count or np.any(codes > new_before) or len(sizes) != int(is_new.sum()):
        raise reader.malformed("a mask is missing")
    if np.any(sizes > attribute_count) or int(sizes.sum()) != len(attributes):
        raise reader.malformed("an attribute of a mask is missing")
    if np.any(attributes >= attribute_count):
        raise reader.malformed("a mask has an attribute that the summary does not have")
    of_masks = np.repeat(np.arange(len(sizes)), sizes)
    ascends = (np.diff(attributes) > 0) | (np.diff(of_masks) > 0)
    if not np.all(ascends):
        raise reader.malformed("the attributes of a mask are not ascending")
    # A word for 64 bits here, and a byte for each bit when the tables are written again.
    reader.allowance.take(len(sizes), (8 + 64) * mask_words(attribute_count))
    masks = np.zeros((len(sizes), mask_words(attribute_count)), np.uint64)
    bits = np.uint64(1) << (attributes % WORD_BITS).astype(np.uint64)
    np.bitwise_or.at(masks, (of_masks, attributes // WORD_BITS), bits)
    decoded: U64 = masks[new_before - codes]
    return decoded
