"""The SACS: general string rows, each with the patterns that it stands for ("Subscription
Summarization", 3.1).

Rules. (1) Each pattern that an entry needs belongs to one row, which covers it. (2) A row that
stands for anything but its own pattern is LOOSE for that. (3) What a row is depends on the patterns
that it stands for now, not on those that it ever stood for: when the pattern that made it general
leaves, it gives way to the rows that the others need.

Theory of operation. The terms with one pattern are in one list, so a row is a set of lists, and
when rows are joined or taken apart patterns move between rows, never members between lists.

Without a need to save, every pattern is a row of its own, which is the most precise; a text may
satisfy several rows. With ``joins_covered`` a pattern that a row covers belongs to it (to the
narrowest, if there are several), and a new general one takes over the rows that it covers. Under a
budget similar rows are joined too (`string_joining.py`), as 'abc%' and 'abd%' to 'ab%'.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import numpy as np

from tidegate.matching.arrays import I32, I64
from tidegate.matching.summary.budget import SummaryBudget
from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.member_lists import MemberLists, Terms
from tidegate.matching.summary.row_finder import RowFinder
from tidegate.matching.summary.row_patterns import covers, joined, literal_chars
from tidegate.matching.summary.string_joining import least_harmful_first
from tidegate.matching.summary.tables import RowKind, RowPattern


class StringArrays(NamedTuple):
    """Rows in ascending order, and pairs of a row and a term that it lists, in no order."""

    patterns: tuple[RowPattern, ...]
    rows: I64
    terms: I32


@dataclass(slots=True)
class _Row:
    """A row: its pattern, and the patterns that it stands for."""

    pattern: RowPattern
    needed: dict[RowPattern, int] = field(default_factory=dict)
    """The list of each of these patterns, shifted by one bit for LOOSE."""

    @property
    def is_joined(self) -> bool:
        """Whether it stands for more, or for less, than its own pattern."""
        return len(self.needed) != 1 or self.pattern not in self.needed


class StringRows:
    """The rows of one attribute."""

    def __init__(self, lists: MemberLists, terms: Terms, budget: SummaryBudget) -> None:
        self._lists = lists
        self._terms = terms
        self._budget = budget
        self._list_of: dict[RowPattern, int] = {}
        """The terms of each pattern that an entry needs."""
        self._row_of: dict[RowPattern, _Row] = {}
        """The row that each of these belongs to."""
        self._rows: dict[RowPattern, _Row] = {}
        self._joined: dict[RowPattern, None] = {}
        """The rows that do not stand for their own pattern alone."""
        self._finder: RowFinder[_Row] = RowFinder()
        self._ids = 0
        self._text_bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def is_empty(self) -> bool:
        """Whether no term is left."""
        return not self._rows

    @property
    def patterns(self) -> list[RowPattern]:
        """The rows, in ascending order."""
        return sorted(self._rows)

    def find(self, text: str, into: list[int]) -> None:
        """Append the lists that a text satisfies, shifted by one bit for LOOSE."""
        for row in self._finder.find(text):
            into.extend(row.needed.values())

    # -- changes ------------------------------------------------------------------------------

    def add(self, term: int, pattern: RowPattern) -> None:
        """Add a term of an entry that needs a pattern."""
        number = self._list_of.get(pattern)
        is_new = number is None
        if number is None:
            number = self._list_of[pattern] = self._lists.new()
        member = np.array([term << 1 | int(self._terms.loose[term])], np.int32)
        self._lists.append(np.array([number]), member)
        self._ids += 1
        if is_new:
            made = self._place(pattern)
            if made is not None and self._budget.joins_covered:
                self._take_over(made)
        self._keep_budget()

    def remove(self, term: int, pattern: RowPattern) -> None:
        """Remove a term that was added."""
        number = self._list_of[pattern]
        self._lists.remove(np.array([number]), term)
        self._ids -= 1
        if self._lists.length[number]:
            return
        self._lists.free(number)
        del self._list_of[pattern]
        row = self._row_of.pop(pattern)
        del row.needed[pattern]
        if not row.needed:
            self._remove_row(row)
        elif row.pattern not in row.needed:
            self._give_way(row)
        elif not row.is_joined:
            self._joined.pop(row.pattern, None)
        self._use_room()

    def _place(self, pattern: RowPattern) -> _Row | None:
        """Give a pattern a row: one that covers it, or else one of its own, which is returned."""
        row, made = self._rows.get(pattern), None
        if row is None and self._budget.joins_covered:
            row = max(self._finder.covering(pattern), key=_narrowness, default=None)
        if row is None:
            row = made = self._new_row(pattern)
        self._assign([pattern], row)
        return made

    def _take_over(self, wide: _Row) -> None:
        """Have a new row take the place of those that it covers."""
        if wide.pattern.kind is RowKind.EQUAL:
            return
        for row in list(self._rows.values()):
            if row is not wide and covers(wide.pattern, row.pattern):
                needed = list(row.needed)
                self._remove_row(row)
                self._assign(needed, wide)

    def _assign(self, patterns: list[RowPattern], row: _Row) -> None:
        for pattern in patterns:
            loose = LOOSE if pattern != row.pattern else 0
            row.needed[pattern] = self._list_of[pattern] << 1 | loose
            self._row_of[pattern] = row
        if row.is_joined:
            self._joined[row.pattern] = None

    def _new_row(self, pattern: RowPattern) -> _Row:
        row = self._rows[pattern] = _Row(pattern)
        self._finder.add(pattern, row)
        self._text_bytes += text_bytes(pattern)
        return row

    def _remove_row(self, row: _Row) -> None:
        del self._rows[row.pattern]
        self._joined.pop(row.pattern, None)
        self._finder.remove(row.pattern)
        self._text_bytes -= text_bytes(row.pattern)

    # -- giving way ---------------------------------------------------------------------------

    def _give_way(self, row: _Row) -> None:
        """Replace a row that nobody needs as it is by rows that its patterns need.

        These are the patterns themselves where there is room for them, else one narrower row.
        """
        if self._budget.joins_covered or self._can_dissolve(row, factor=1):
            self._dissolve(row)
            return
        narrower = reduce(joined, row.needed)
        if narrower != row.pattern:
            self._remove_row(row)
            self._assign(list(row.needed), self._rows.get(narrower) or self._new_row(narrower))

    def _dissolve(self, row: _Row) -> None:
        """Give each pattern of a row another one.

        The general ones come first and may take others in. They need not take rows over: what they
        cover was covered by the row that goes.
        """
        self._remove_row(row)
        for pattern in sorted(row.needed, key=lambda each: (literal_chars(each), each)):
            self._place(pattern)
        self._keep_budget()

    def _can_dissolve(self, row: _Row, factor: int) -> bool:
        """Whether there is room for the patterns of a row by themselves, ``factor`` times over."""
        rows = len(self._rows) - 1 + len(row.needed)
        if factor * rows > self._budget.rows_max:
            return False
        size = self._text_bytes - text_bytes(row.pattern) + sum(map(text_bytes, row.needed))
        return not self._budget.exceeded(factor * rows, factor * size, self._ids, self._ids)

    def _use_room(self) -> None:
        """Where there is room for twice as much, take a joined row apart."""
        if self._joined and not self._budget.joins_covered:
            row = self._rows[next(iter(self._joined))]
            if self._can_dissolve(row, factor=2):
                self._dissolve(row)

    # -- the budget ---------------------------------------------------------------------------

    def _exceeds(self, budget: SummaryBudget) -> bool:
        return budget.exceeded(len(self._rows), self._text_bytes, self._ids, self._ids)

    def _keep_budget(self) -> None:
        """Join similar rows, the least harmful first, if there are too many rows or bytes."""
        if not self._exceeds(self._budget):
            return
        budget = self._budget.eased()
        while self._exceeds(budget):
            self._join_pairs(budget)

    def _join_pairs(self, budget: SummaryBudget) -> None:
        """Join disjoint pairs of rows until the budget is kept or no pair is left."""
        ids = {
            pattern: sum(int(self._lists.length[each >> 1]) for each in row.needed.values())
            for pattern, row in self._rows.items()
        }

        def covering(pattern: RowPattern) -> list[RowPattern]:
            return [row.pattern for row in self._finder.covering(pattern)]

        for _, one, other, into in least_harmful_first(ids, covering):
            if one not in ids or other not in ids:
                continue  # joined already
            rows = [self._rows[one], self._rows[other]]
            # Each row is joined once in a round, because its harm is that of the row as it was.
            for each in {one, other, into} & ids.keys():
                del ids[each]
            needed = [pattern for row in rows for pattern in row.needed]
            for row in rows:
                self._remove_row(row)
            self._assign(needed, self._rows.get(into) or self._new_row(into))
            if not self._exceeds(budget):
                return

    # -- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> StringArrays:
        """The rows with the terms that they list."""
        patterns = self.patterns
        lists = [[each >> 1 for each in self._rows[name].needed.values()] for name in patterns]
        flat = np.array([each for some in lists for each in some], np.int64)
        row_of_list = np.arange(len(patterns)).repeat([len(some) for some in lists])
        rows = row_of_list.repeat(self._lists.length[flat])
        return StringArrays(tuple(patterns), rows, self._lists.terms_of(flat))


def _narrowness(row: _Row) -> tuple[int, RowPattern]:
    return literal_chars(row.pattern), row.pattern


def text_bytes(pattern: RowPattern) -> int:
    """The size of a pattern: its texts, as equation (2) of the paper counts them."""
    return sum(len(text.encode()) for text in pattern.parts)
