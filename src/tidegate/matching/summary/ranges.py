"""The AACS: disjoint ranges of values, each with the terms that need it ("Subscription
Summarization", 3.1).

Rules. (1) Rows are disjoint and ascending. (2) A term is a member of a row if and only if they have
values in common; each of its values lies in a row. (3) A member is LOOSE if its row has values that
the term, or the constraint that it was rounded from, has not. (4) A term that has all values of its
kind is in no row but in a list beside them, which every value satisfies.

Theory of operation. A term cuts the rows at its two ends, fills the gaps between them with rows of
its own, and is listed in all rows from end to end: then every member contains its whole row, and a
row of one value is the paper's equality. When a term leaves, rows that are empty go, and those that
it alone had kept apart are one again. So without a budget the rows depend on the terms alone and
not on the order in which they came.

Under a budget neighbours are joined (`range_joining.py`), and members of a joined row may need only
a piece of it. Because of rule (2) whatever happened before is no matter: a row can be taken apart
again from the bounds of its members. That is done where a member leaves, and everywhere once there
is room. With ``joins_covered`` rows are not cut at all: those that overlap are one row.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.summary.budget import BOUND_BYTES, SummaryBudget
from tidegate.matching.summary.channels import DOMAINS, after, before, just_after
from tidegate.matching.summary.kernels.joining import count_common, unite
from tidegate.matching.summary.kernels.lists import ABSENT, LOOSE
from tidegate.matching.summary.kernels.spreading import fill_pieces, measure_pieces
from tidegate.matching.summary.member_lists import MemberLists, Terms
from tidegate.matching.summary.range_joining import least_harmful_first, overlapping_joined
from tidegate.matching.summary.tables import ChannelKind

_FREED = -1
"""In place of the list of a row that is about to be dropped."""


class RangeArrays(NamedTuple):
    """Rows, and pairs of a row and a term that it lists, in no order."""

    lows: F64
    highs: F64
    rows: I64
    terms: I32


NewRow = tuple[float, float, int, int]
"""A row that is not in place yet: low, high, list, and members that do not contain it."""


class RangeRows:
    """The rows of one attribute seen as one kind."""

    def __init__(
        self, kind: ChannelKind, lists: MemberLists, terms: Terms, budget: SummaryBudget
    ) -> None:
        self.kind = kind
        self.lows: F64 = np.zeros(0)
        self.highs: F64 = np.zeros(0)
        self._list: I64 = np.zeros(0, np.int64)
        self._partial: I64 = np.zeros(0, np.int64)
        """For each row, its members that do not contain it."""
        self._lists = lists
        self._terms = terms
        self._budget = budget
        self._whole = lists.new()
        self._terms_in_rows = 0
        self._ids = 0
        self._first, self._last = DOMAINS[kind]

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def is_empty(self) -> bool:
        """Whether no term is left."""
        return not len(self.lows) and not self._lists.length[self._whole]

    def free(self) -> None:
        """Give back what rows without terms still have of the lists."""
        self._lists.free(self._whole)

    def find(self, value: float, into: list[int]) -> None:
        """Append the lists that a value satisfies, shifted by one bit."""
        if self._lists.length[self._whole]:
            into.append(self._whole << 1)
        row = int(self.highs.searchsorted(value))
        if row < len(self.lows) and self.lows[row] <= value:
            into.append(int(self._list[row]) << 1)

    # -- changes ------------------------------------------------------------------------------

    def add(self, term: int) -> None:
        """Add a term."""
        low, high = self._bounds(term)
        member = term << 1 | int(self._terms.loose[term])
        if self._is_whole(low, high):
            self._lists.append(np.array([self._whole]), np.array([member], np.int32))
            return
        self._terms_in_rows += 1
        if self._budget.joins_covered:
            self._add_joining(low, high, member)
        else:
            self._cut(low)
            self._cut_after(high)
            begin, end = self._fill(low, high)
            self._append(begin, end, member)
        self._keep_budget()

    def remove(self, term: int) -> None:
        """Remove a term that was added."""
        low, high = self._bounds(term)
        if self._is_whole(low, high):
            self._lists.remove(np.array([self._whole]), term)
            return
        self._terms_in_rows -= 1
        begin, end = self._meeting(low, high)
        bits = self._lists.remove(self._list[begin:end], term)
        self._ids -= int((bits != ABSENT).sum())
        outside = (self.lows[begin:end] < low) | (self.highs[begin:end] > high)
        self._partial[begin:end] -= outside
        emptied = self._lists.length[self._list[begin:end]] == 0
        needed = np.ones(len(self), np.bool_)
        needed[begin:end] = ~emptied
        apart = outside | self._budget.joins_covered
        for row in (begin + np.flatnonzero(apart & ~emptied))[::-1].tolist():
            rows = len(self)
            self._take_apart(row)
            added = len(self) - rows
            needed = np.insert(needed, [row + 1] * added, True)
        self._drop(needed)
        self._rejoin(low)
        if high < self._last:
            self._rejoin(just_after(self.kind, high))
        self._use_room()
        self._keep_budget()

    def _is_whole(self, low: float, high: float) -> bool:
        return low == self._first and high == self._last

    def _bounds(self, term: int) -> tuple[float, float]:
        return float(self._terms.low[term]), float(self._terms.high[term])

    def _meeting(self, low: float, high: float) -> tuple[int, int]:
        """The rows that have values between two, as begin and end."""
        begin, end = self.highs.searchsorted(low), self.lows.searchsorted(high, "right")
        return int(begin), max(int(begin), int(end))

    def _cut(self, at: float) -> None:
        """Cut the row in two that has ``at`` and lower values."""
        row = int(self.highs.searchsorted(at))
        if row == len(self) or not self.lows[row] < at:
            return
        lows = np.array([self.lows[row], at])
        highs = np.array([before(self.kind, lows[1:])[0], self.highs[row]])
        self._replace(row, lows, highs)

    def _cut_after(self, high: float) -> None:
        """Cut the row in two that has ``high`` and greater values."""
        if high < self._last:
            self._cut(just_after(self.kind, high))

    def _replace(self, row: int, lows: F64, highs: F64) -> None:
        """Put rows within a row in its place, with those of its members that need them.

        A row that none needs is left out; others are cut down to what their members need.
        """
        old = int(self._list[row])
        rows = self._rows_of(self._lists.members(old).copy(), lows, highs)
        self._ids += sum(int(self._lists.length[each]) for _, _, each, _ in rows)
        self._ids -= int(self._lists.length[old])
        self._lists.free(old)
        self._splice(row, row + 1, rows)

    def _rows_of(self, members: I32, lows: F64, highs: F64) -> list[NewRow]:
        """New rows within ranges, each with those of some members that need it."""
        terms, pieces = self._terms, len(lows)
        firsts, lasts, counts = np.empty(pieces), np.empty(pieces), np.empty(pieces, np.int64)
        measure_pieces(members, terms.low, terms.high, lows, highs, firsts, lasts, counts)
        needed = counts > 0
        firsts, lasts, ends = firsts[needed], lasts[needed], np.cumsum(counts[needed])
        partial = np.zeros(len(firsts), np.int64)
        out: I32 = np.empty(int(counts.sum()), np.int32)
        begins = ends.copy()
        fill_pieces(
            members, terms.low, terms.high, terms.loose, firsts, lasts, begins, partial, out
        )
        bounds = zip(begins.tolist(), ends.tolist(), strict=True)
        lists = [self._lists.new(out[begin:end]) for begin, end in bounds]
        return list(zip(firsts.tolist(), lasts.tolist(), lists, partial.tolist(), strict=True))

    def _splice(self, begin: int, end: int, rows: list[NewRow]) -> None:
        """Put other rows in the place of some."""
        if len(rows) == end - begin == 1:
            self.lows[begin], self.highs[begin], self._list[begin], self._partial[begin] = rows[0]
            return
        columns = list(zip(*rows, strict=True)) or [()] * 4
        self.lows = _spliced(self.lows, begin, end, columns[0])
        self.highs = _spliced(self.highs, begin, end, columns[1])
        self._list = _spliced(self._list, begin, end, columns[2])
        self._partial = _spliced(self._partial, begin, end, columns[3])

    def _fill(self, low: float, high: float) -> tuple[int, int]:
        """Make rows without members of the gaps from ``low`` to ``high``.

        Returns the rows that lie in between then; none reaches beyond.
        """
        begin, end = self._meeting(low, high)
        lows, highs = gaps(self.kind, self.lows[begin:end], self.highs[begin:end], low, high)
        places = begin + np.searchsorted(self.lows[begin:end], lows)
        if len(lows):
            self.lows = np.insert(self.lows, places, lows)
            self.highs = np.insert(self.highs, places, highs)
            self._list = np.insert(self._list, places, [self._lists.new() for _ in lows])
            self._partial = np.insert(self._partial, places, 0)
        return begin, end + len(lows)

    def _append(self, begin: int, end: int, member: int) -> None:
        self._lists.append(self._list[begin:end], np.full(end - begin, member, np.int32))
        self._ids += end - begin

    def _add_joining(self, low: float, high: float, member: int) -> None:
        """Add a term as section 3.1 of the paper does: the rows that it overlaps are one row."""
        begin, end = self._meeting(low, high)
        if end - begin == 1 and self.lows[begin] <= low and high <= self.highs[begin]:
            is_partial = bool(self.lows[begin] < low or high < self.highs[begin])
            self._partial[begin] += is_partial
            self._append(begin, end, member | LOOSE if is_partial else member)
            return
        if begin < end:
            low, high = min(low, self.lows[begin]), max(high, self.highs[end - 1])
        terms = np.unique(self._lists.terms_of(self._list[begin:end]))
        members = np.append(terms << 1, member).astype(np.int32)
        self._ids += len(members) - int(self._lists.length[self._list[begin:end]].sum())
        for each in self._list[begin:end].tolist():
            self._lists.free(each)
        self._splice(begin, end, self._rows_of(members, np.array([low]), np.array([high])))

    # -- taking apart -------------------------------------------------------------------------

    def _take_apart(self, row: int) -> None:
        """Make as many rows of one as its members need, or one of just the span that they need."""
        lows, highs, ids = self._pieces(row)
        ids += self._ids - int(self._lists.length[self._list[row]])
        if self._exceeds(self._budget, len(self) - 1 + len(lows), ids):
            lows, highs = self.lows[row : row + 1], self.highs[row : row + 1]
        self._replace(row, lows, highs)

    def _pieces(self, row: int) -> tuple[F64, F64, int]:
        """The rows that the members of one would have without a budget, and how many ids."""
        terms = self._lists.members(int(self._list[row])) >> 1
        lows = np.maximum(self._terms.low[terms], self.lows[row])
        highs = np.minimum(self._terms.high[terms], self.highs[row])
        if self._budget.joins_covered:
            return *overlapping_joined(lows, highs), len(terms)
        last = highs.max()
        begins = np.unique(np.concatenate((lows, after(self.kind, highs[highs < last]))))
        ends = np.append(before(self.kind, begins[1:]), last)
        ids = begins.searchsorted(highs, "right") - begins.searchsorted(lows)
        return begins, ends, int(ids.sum())

    def _use_room(self) -> None:
        """Where there is room for twice as much, take the loosest row apart."""
        if self._budget.joins_covered or not len(self) or self._partial.max() == 0:
            return
        if not self._exceeds(self._budget, 2 * len(self), 2 * self._ids):
            self._take_apart(int(self._partial.argmax()))

    def _rejoin(self, at: float) -> None:
        """Join two rows that touch at a value, if nobody needs them apart any more."""
        row = int(self.highs.searchsorted(at))
        if (
            not 0 < row < len(self)
            or self.lows[row] != at
            or self._partial[row - 1 : row + 1].any()
        ):
            return
        if before(self.kind, self.lows[row : row + 1])[0] != self.highs[row - 1]:
            return
        one, other = self._list[row - 1 : row + 1].tolist()
        if self._lists.length[one] != self._lists.length[other]:
            return
        members = np.sort(self._lists.members(one))
        if np.array_equal(members, np.sort(self._lists.members(other))):
            self._ids -= int(self._lists.length[other])
            self._lists.free(other)
            low, high = float(self.lows[row - 1]), float(self.highs[row])
            self._splice(row - 1, row + 1, [(low, high, one, 0)])

    # -- the budget ---------------------------------------------------------------------------

    def _exceeds(self, budget: SummaryBudget, rows: int, ids: int) -> bool:
        return budget.exceeded(rows, 2 * BOUND_BYTES * rows, ids, self._terms_in_rows)

    def _keep_budget(self) -> None:
        """Join neighbours, the least harmful first, if there are too many rows or ids."""
        if not self._exceeds(self._budget, len(self), self._ids):
            return
        budget = self._budget.eased()
        while self._exceeds(budget, len(self), self._ids):
            self._join_pairs(budget)

    def _join_pairs(self, budget: SummaryBudget) -> None:
        """Join disjoint pairs of neighbours until the budget is kept or no pair is left."""
        rows, lists = len(self), self._lists
        marks = self._terms.marks()
        common: I64 = np.zeros(rows - 1, np.int64)
        count_common(lists.pool, lists.start, lists.length, self._list, marks, common)
        lengths = lists.length[self._list].astype(np.int64)
        order = least_harmful_first(self.kind, self.lows, self.highs, lengths, common)
        free: Bools = np.ones(rows, np.bool_)
        kept: Bools = np.ones(rows, np.bool_)
        for row in order.tolist():
            if free[row] and free[row + 1]:
                free[row] = free[row + 1] = kept[row + 1] = False
                self._join(row, marks, len(self) + row)
                rows -= 1
                if not self._exceeds(budget, rows, self._ids):
                    break
        self._drop(kept)

    def _join(self, row: int, marks: I64, mark: int) -> None:
        """Extend a row over the next one, which is left to be dropped."""
        lists = self._lists
        one, other = self._list[row : row + 2].tolist()
        both = int(lists.length[one] + lists.length[other])
        united: I32 = np.empty(both, np.int32)
        count = unite(lists.pool, lists.start, lists.length, one, other, marks, mark, united)
        for each in (one, other):
            lists.free(each)
        lows, highs = self.lows[row : row + 1].copy(), self.highs[row + 1 : row + 2].copy()
        self._splice(row, row + 1, self._rows_of(united[:count], lows, highs))
        self._list[row + 1] = _FREED
        self._ids -= both - count

    def _drop(self, kept: Bools) -> None:
        """Keep some rows only; the others have no members, or no list any more."""
        if kept.all():
            return
        for row in np.flatnonzero(~kept).tolist():
            if self._list[row] != _FREED:
                self._lists.free(int(self._list[row]))
        self.lows, self.highs = self.lows[kept], self.highs[kept]
        self._list, self._partial = self._list[kept], self._partial[kept]

    # -- as arrays ----------------------------------------------------------------------------

    def arrays(self) -> RangeArrays:
        """The rows with the terms that they list; what every value satisfies is in each row."""
        lists = self._lists
        rows = np.arange(len(self)).repeat(lists.length[self._list])
        terms = lists.terms_of(self._list)
        whole = lists.members(self._whole) >> 1
        if not len(whole):
            return RangeArrays(self.lows, self.highs, rows, terms)
        gap_lows, gap_highs = gaps(self.kind, self.lows, self.highs, self._first, self._last)
        places = np.searchsorted(self.lows, gap_lows)
        lows = np.insert(self.lows, places, gap_lows)
        rank = np.searchsorted(lows, self.lows)
        every = np.arange(len(lows)).repeat(len(whole))
        return RangeArrays(
            lows,
            np.insert(self.highs, places, gap_highs),
            np.concatenate((rank[rows], every)),
            np.concatenate((terms, np.tile(whole, len(lows)))),
        )


A = TypeVar("A", F64, I64)


def _spliced(array: A, begin: int, end: int, new: tuple[float, ...]) -> A:
    inserted = np.array(new, array.dtype)
    return np.concatenate((array[:begin], inserted, array[end:]))


def gaps(kind: ChannelKind, lows: F64, highs: F64, low: float, high: float) -> tuple[F64, F64]:
    """The ranges from ``low`` to ``high`` that rows in between leave free."""
    begins = np.concatenate(([low], after(kind, highs)))
    ends = np.concatenate((before(kind, lows), [high]))
    # Neighbours of the first and last values of a kind are these values themselves.
    is_gap = begins <= ends
    if len(lows):
        is_gap[0] = lows[0] > low
        is_gap[-1] = highs[-1] < high
    return begins[is_gap], ends[is_gap]
