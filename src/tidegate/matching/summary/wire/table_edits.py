"""What changes in one table of a summary.

Theory of operation. Rows that stay are not written: those with the same bounds, or the same
pattern, in the old and the new table. Of the others, old ones are named by their index and new ones
written out. Then every new row has *predicted* members: those of the old row that it begins in, or
that has its pattern, as far as these entries stay. So where a range is cut in two, or two are
joined again, nothing but the bounds is written. Where the members differ from the predicted ones,
the difference is written as runs (see `runs`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidegate.matching.arrays import F64, I64
from tidegate.matching.summary.merging import GONE, copied_pairs
from tidegate.matching.summary.tables import (
    AnyTable,
    ChannelKind,
    RangeTable,
    RowKind,
    RowPattern,
    StringTable,
)
from tidegate.matching.summary.wire.bounds import added_bounds, range_rows
from tidegate.matching.summary.wire.columns import Reader
from tidegate.matching.summary.wire.layout import MemberRuns, RangeRows, StringRows
from tidegate.matching.summary.wire.runs import PAIR_BYTES, pairs_of, runs_of, symmetric_difference

_ROW_KINDS = tuple(RowKind)

_PATTERN_BYTES = 200
"""What the pattern of a row takes in Python, about, without its texts."""


def no_rows(attribute: str, kind: ChannelKind) -> AnyTable:
    """A table to which rows can be added."""
    starts, members = np.zeros(1, np.int64), np.zeros(0, np.int32)
    if kind is ChannelKind.STRING:
        return StringTable(attribute, (), starts, members)
    return RangeTable(attribute, kind, np.zeros(0), np.zeros(0), starts, members)


def table_edit(
    old: AnyTable, new: AnyTable, entries: I64, participants: I64, entry_count: int
) -> tuple[RangeRows | StringRows, MemberRuns] | None:
    """The records of what changes; None if nothing does but the indexes of entries.

    ``entries`` has the new index of each old entry, or `GONE`; ``participants`` are the entries
    whose mask has the attribute.
    """
    rows: RangeRows | StringRows
    if isinstance(old, RangeTable) and isinstance(new, RangeTable):
        rows, sources, changes = _range_edit(old, new)
    else:
        assert isinstance(old, StringTable) and isinstance(new, StringTable)  # noqa: PT018
        rows, sources, changes = _string_edit(old, new)
    sizes = np.diff(new.starts)
    pairs = np.repeat(np.arange(len(sizes)), sizes) * entry_count + new.members
    predicted = _predicted(old, sources, entries, entry_count)
    toggled = symmetric_difference(predicted, pairs)
    if not changes and not len(toggled):
        return None
    return rows, runs_of(toggled, participants, entry_count)


def edited_table(
    old: AnyTable, entries: I64, participants: I64, entry_count: int, reader: Reader
) -> AnyTable:
    """The new table; it may be without rows, and is not checked otherwise."""
    new: AnyTable
    if isinstance(old, RangeTable):
        new, sources = _edited_ranges(old, reader)
    else:
        new, sources = _edited_strings(old, reader)
    runs = reader.record(MemberRuns)
    toggled = pairs_of(runs, participants, len(sources), entry_count, reader)
    reader.allowance.take(_copied_count(old, sources), PAIR_BYTES)
    predicted = _predicted(old, sources, entries, entry_count)
    return _with_members(new, symmetric_difference(predicted, toggled), entry_count, len(sources))


def kept_table(old: AnyTable, entries: I64, entry_count: int, reader: Reader) -> AnyTable:
    """A table that is not in the message: its rows with the members that stay."""
    if entry_count == len(entries) and np.array_equal(entries, np.arange(entry_count)):
        return old
    rows = np.arange(len(old.starts) - 1)
    reader.allowance.take(_copied_count(old, rows), PAIR_BYTES)
    return _with_members(old, _predicted(old, rows, entries, entry_count), entry_count, len(rows))


def _range_edit(old: RangeTable, new: RangeTable) -> tuple[RangeRows, I64, bool]:
    """The rows that change, the sources of all new rows, and whether any row changes."""
    _, old_rows, new_rows = np.intersect1d(
        old.lows, new.lows, assume_unique=True, return_indices=True
    )
    same = old.highs[old_rows] == new.highs[new_rows]
    removed = np.delete(np.arange(len(old.lows)), old_rows[same])
    added = np.delete(np.arange(len(new.lows)), new_rows[same])
    record = range_rows(removed, new.lows[added], new.highs[added])
    return record, _rows_around(old, new.lows), len(removed) + len(added) > 0


def _edited_ranges(old: RangeTable, reader: Reader) -> tuple[RangeTable, I64]:
    """The new rows, still without members, and their sources."""
    record = reader.record(RangeRows)
    kept = _kept_rows(len(old.lows), record.rows_removed, reader)
    lows, highs = added_bounds(record, reader)
    lows, highs = np.concatenate((old.lows[kept], lows)), np.concatenate((old.highs[kept], highs))
    order = np.argsort(lows, kind="stable")
    new = replace(old, lows=lows[order], highs=highs[order])
    return new, _rows_around(old, new.lows)


def _rows_around(table: RangeTable, values: F64) -> I64:
    """The row that each value lies in, or `GONE`."""
    rows = np.searchsorted(table.lows, values, side="right") - 1
    if not len(table.lows):
        return rows
    around: I64 = np.where((rows >= 0) & (values <= table.highs[rows]), rows, GONE)
    return around


def _string_edit(old: StringTable, new: StringTable) -> tuple[StringRows, I64, bool]:
    """As `_range_edit`."""
    sources = _sources(old, new.patterns)
    removed = np.setdiff1d(np.arange(len(old.patterns)), sources)
    added = [new.patterns[row] for row in np.flatnonzero(sources == GONE).tolist()]
    record = StringRows(
        removed,
        np.array([pattern.kind for pattern in added], np.int64),
        np.array([len(each.parts) for each in added if each.kind is RowKind.LIKE], np.int64),
        tuple(part for pattern in added for part in pattern.parts),
    )
    return record, sources, len(removed) + len(added) > 0


def _edited_strings(old: StringTable, reader: Reader) -> tuple[StringTable, I64]:
    """As `_edited_ranges`."""
    record = reader.record(StringRows)
    kept = _kept_rows(len(old.patterns), record.rows_removed, reader)
    reader.allowance.take(len(kept) + len(record.row_kinds), _PATTERN_BYTES)
    added = _added_patterns(record, reader)
    patterns = tuple(sorted([*(old.patterns[row] for row in kept.tolist()), *added]))
    return replace(old, patterns=patterns), _sources(old, patterns)


def _added_patterns(record: StringRows, reader: Reader) -> list[RowPattern]:
    kinds = record.row_kinds
    if len(kinds) and not 0 <= int(kinds[0]) <= int(kinds[-1]) <= max(RowKind):
        raise reader.malformed("a string row has no such kind")
    counts = np.where(kinds == RowKind.ANY, 0, 1)
    is_like = kinds == RowKind.LIKE
    if len(record.piece_counts) != int(is_like.sum()):
        raise reader.malformed("a LIKE row has no number of pieces")
    counts[is_like] = np.minimum(record.piece_counts, len(record.parts) + 1)  # so no overflow
    if int(counts.sum()) != len(record.parts):
        raise reader.malformed("the texts of a string row are missing")
    ends = np.cumsum(counts)
    return [
        RowPattern(_ROW_KINDS[kind], record.parts[end - count : end])
        for kind, count, end in zip(kinds.tolist(), counts.tolist(), ends.tolist(), strict=True)
    ]


def _sources(old: StringTable, patterns: tuple[RowPattern, ...]) -> I64:
    places = {pattern: row for row, pattern in enumerate(old.patterns)}
    return np.array([places.get(pattern, GONE) for pattern in patterns], np.int64)


def _kept_rows(count: int, removed: I64, reader: Reader) -> I64:
    kept = np.ones(count, np.bool_)
    kept[reader.indexes(removed, count)] = False
    return np.flatnonzero(kept)


def _copied_count(table: AnyTable, sources: I64) -> int:
    return int(np.diff(table.starts)[sources[sources != GONE]].sum())


def _predicted(table: AnyTable, sources: I64, entries: I64, entry_count: int) -> I64:
    """The pairs that rows have before runs change them: the members of their sources."""
    rows = np.flatnonzero(sources != GONE)
    return copied_pairs(table, sources[rows], rows, entries, entry_count)


def _with_members(table: AnyTable, pairs: I64, entry_count: int, row_count: int) -> AnyTable:
    rows, members = np.divmod(pairs, max(1, entry_count))
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=row_count))))
    return replace(table, starts=starts, members=members.astype(np.int32))
