"""A summary that is matched and not changed, made of tables at once: what a broker holds of others.

Its rows are the rows of the tables; nothing is built for an entry but its place in the arrays.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.summary.counter import AttributeRows, EntryCounter, satisfied_lists
from tidegate.matching.summary.row_finder import RowFinder
from tidegate.matching.summary.tables import StringTable, SummaryTables


class _RangeRows:
    """The rows of a range table, which are lists from ``first_list`` on."""

    def __init__(self, lows: F64, highs: F64, first_list: int) -> None:
        self._lows = lows
        self._highs = highs
        self._first_list = first_list

    def find(self, value: float, into: list[int]) -> None:
        row = int(self._highs.searchsorted(value))
        if row < len(self._lows) and self._lows[row] <= value:
            into.append(self._first_list + row << 1)


class _StringRows:
    """The rows of a string table, which are lists from ``first_list`` on."""

    def __init__(self, table: StringTable, first_list: int) -> None:
        self._finder: RowFinder[int] = RowFinder()
        for row, pattern in enumerate(table.patterns):
            self._finder.add(pattern, first_list + row << 1)

    def find(self, text: str, into: list[int]) -> None:
        into += self._finder.find(text)


class _TableLists:
    """The lists of all rows of some tables, and a last one for what matches every event."""

    def __init__(self, tables: SummaryTables) -> None:
        always = np.flatnonzero(~tables.entry_masks.any(axis=1)).astype(np.int32)
        listed = tables.all_tables
        lengths = [*(np.diff(each.starts) for each in listed), np.array([len(always)])]
        self.pool: I32 = np.concatenate([*(each.members for each in listed), always]) << 1
        self.length: I32 = np.concatenate(lengths).astype(np.int32)
        self.start: I64 = np.cumsum(self.length) - self.length
        rows = np.cumsum([0, *(len(each.starts) - 1 for each in listed)])
        self.first_list: list[int] = rows.tolist()
        self.has_unconditional = bool(len(always))


class SummaryIndex:
    """Finds the entries of tables that an event matches.

    A call uses memory of the index, so one thread at a time may call it.
    """

    def __init__(self, tables: SummaryTables) -> None:
        self.tables = tables
        self._lists = _TableLists(tables)
        self._rows: dict[str, AttributeRows] = {}
        count, first_list = len(tables.ranges), self._lists.first_list
        for ranges, first in zip(tables.ranges, first_list[:count], strict=True):
            rows = self._rows.setdefault(ranges.attribute, AttributeRows({}, None))
            rows.ranges[ranges.kind] = _RangeRows(ranges.lows, ranges.highs, first)
        for strings, first in zip(tables.strings, first_list[count:-1], strict=True):
            rows = self._rows.get(strings.attribute, AttributeRows({}, None))
            self._rows[strings.attribute] = rows._replace(strings=_StringRows(strings, first))
        bits = np.bitwise_count(tables.entry_masks).sum(axis=1)
        self._needed: I32 = np.maximum(1, bits).astype(np.int32)
        self._entry_of: I32 = np.arange(len(self._needed), dtype=np.int32)
        self._counter = EntryCounter()

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._needed)

    def find(self, attributes: Mapping[str, Value]) -> I32:
        """The indexes of the entries that an event matches, in no order."""
        satisfied = satisfied_lists(attributes, self._rows)
        if self._lists.has_unconditional:
            satisfied.lists.append(len(self._lists.start) - 1 << 1)
            satisfied.end()
        return self._counter.count(self._lists, self._entry_of, self._needed, satisfied).entries

    def matching(self, event: Event) -> list[tuple[str, int]]:
        """The entries that an event matches, as the owner and the number of each."""
        found = self.find(event.attributes)
        owners = self.tables.entry_owners[found].tolist()
        numbers = self.tables.entry_numbers[found].tolist()
        return [(self.tables.owners[o], n) for o, n in zip(owners, numbers, strict=True)]

    def owners_matching(self, event: Event) -> set[str]:
        """The owners of the entries that an event matches."""
        found = np.unique(self.tables.entry_owners[self.find(event.attributes)])
        return {self.tables.owners[each] for each in found.tolist()}
