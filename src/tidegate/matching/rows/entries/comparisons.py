"""Entries of plain conjunctions, for rows of any number of shapes at once.

Most filters are comparisons of attributes with values, joined by `and`. Their predicates are taken
out of their shapes and collected by what they compare, `price <` with `price <`, so that the work
is done in a few steps on long arrays even if no two subscriptions have the same shape. All other
shapes are compiled one at a time (see constraints.py).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tidegate.language.expressions import Slot
from tidegate.language.shapes import Shape
from tidegate.language.syntax import STRING_OPERATORS, Operator
from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.rows.entries.bounds import (
    as_floats,
    bounds,
    order_bounds,
    pattern_bounds,
    widened,
)
from tidegate.matching.rows.entries.channels import (
    CHANNEL_KIND,
    NUMBER,
    PATTERNS,
    PRESENT,
    Channels,
)
from tidegate.matching.rows.kernels.cell_kinds import STRING, UNDEFINED
from tidegate.matching.rows.kernels.entry_lists import Entries, offsets
from tidegate.matching.rows.kernels.flags import ANEW, DEAD, EXACT_MAX, SET, VERIFY
from tidegate.matching.rows.store.cells import Cells, Kinds, StringPool
from tidegate.matching.rows.store.table import SubscriptionTable

_NOT_PLAIN = (Operator.IN, Operator.NOT_IN)


def is_plain(shape: Shape) -> bool:
    """Whether a shape is one conjunction of comparisons with bare values."""
    return len(shape.disjuncts) == 1 and all(
        predicate.operator not in _NOT_PLAIN
        and all(isinstance(operand, Slot) for operand in predicate.operands)
        for predicate in shape.disjuncts[0]
    )


def plain_entries(
    members_of: Iterable[tuple[Shape, I32]], table: SubscriptionTable, channels: Channels
) -> Entries:
    """The entries of subscriptions whose shapes are plain, one for each subscription."""
    subscriptions: list[I32] = []
    count = 0
    # by attribute and operator: numbers of entries, and where their values are in the heap of cells
    collected: dict[tuple[str, Operator], tuple[list[I64], list[I64]]] = {}
    for shape, members in members_of:
        entries = np.arange(count, count + len(members))
        rows = table.columns.row[members]
        for predicate in shape.disjuncts[0]:
            key = (predicate.attribute, predicate.operator)
            entry_lists, cell_lists = collected.setdefault(key, ([], []))
            entry_lists.append(entries)
            slot = predicate.operands[0] if predicate.operands else None
            cell_lists.append(rows + slot.index if isinstance(slot, Slot) else rows)
        subscriptions.append(members)
        count += len(members)
    constraints = _Constraints(count, table.pool)
    for (attribute, operator), (entry_lists, cell_lists) in collected.items():
        entry, cell = np.concatenate(entry_lists), np.concatenate(cell_lists)
        if operator is Operator.PRESENT:
            constraints.anything(entry, channels.channel(attribute, PRESENT))
        else:
            kinds, cells = table.rows.kinds[cell], table.rows.cells[cell]
            constraints.compare(entry, attribute, operator, kinds, cells, channels)
    return constraints.entries(np.concatenate(subscriptions))


class _Constraints:
    """Collects constraints of entries, which are numbered from 0 on, in any order."""

    def __init__(self, count: int, pool: StringPool) -> None:
        self._pool = pool
        self._flags: I32 = np.zeros(count, np.int32)
        self._entry: list[I64] = []
        self._channel: list[I32] = []
        self._low: list[F64] = []
        self._high: list[F64] = []

    def add(self, entry: I64, channel: int, low: F64, high: F64) -> None:
        """Add a constraint on one channel to many entries."""
        self._entry.append(entry)
        self._channel.append(np.full(len(entry), channel, np.int32))
        self._low.append(low)
        self._high.append(high)

    def anything(self, entry: I64, channel: int) -> None:
        """Add a constraint that any value of a channel satisfies."""
        infinite = np.full(len(entry), np.inf)
        self.add(entry, channel, -infinite, infinite)

    def compare(
        self,
        entry: I64,
        attribute: str,
        operator: Operator,
        kinds: Kinds,
        cells: Cells,
        channels: Channels,
    ) -> None:
        """Add the constraints of one operator on one attribute, with values of several kinds."""
        for kind in np.unique(kinds).tolist():
            chosen = kinds == kind
            members = entry[chosen]
            if kind == UNDEFINED or (operator in STRING_OPERATORS and kind != STRING):
                self._flags[members] |= DEAD
                self.anything(members, channels.channel(attribute, PRESENT))
            elif operator in STRING_OPERATORS:
                channel = channels.channel(attribute, PATTERNS)
                low, high, never = pattern_bounds(
                    attribute, operator, cells[chosen], channels, self._pool
                )
                self._flags[members[never]] |= DEAD
                self.add(members, channel, low, high)
            elif kind == STRING and operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
                # the numbers of strings do not have the order of the strings
                self._order(members, attribute, operator, kind, cells[chosen], channels)
            else:
                channel_kind = CHANNEL_KIND[kind]
                channel = channels.channel(attribute, channel_kind)
                values = as_floats(kind, cells[chosen])
                large = np.isfinite(values) & (np.abs(values) >= EXACT_MAX)
                self._bound(members, channel, operator, values, large, whole=channel_kind != NUMBER)
                if large.any():
                    self._flags[members[large]] |= ANEW
                    some = cells[chosen][large]
                    self._order(members[large], attribute, operator, kind, some, channels)

    def _order(
        self,
        entry: I64,
        attribute: str,
        operator: Operator,
        kind: int,
        cells: Cells,
        channels: Channels,
    ) -> None:
        """Add constraints on order labels."""
        found = order_bounds(attribute, operator, kind, cells, channels, self._pool)
        self._flags[entry[found.crowded]] |= VERIFY
        self.add(entry, found.channel, found.low, found.high)

    def _bound(
        self,
        entry: I64,
        channel: int,
        operator: Operator,
        values: F64,
        large: Bools,
        *,
        whole: bool,
    ) -> None:
        low, high, never = bounds(operator, values, whole=whole)
        if large.any():
            wide_low, wide_high = widened(operator, values)
            low, high = np.where(large, wide_low, low), np.where(large, wide_high, high)
        self._flags[entry[never]] |= DEAD
        self.add(entry, channel, low, high)

    def entries(self, subscriptions: I32) -> Entries:
        """The entries, each with its constraints in ascending order of their channels."""
        nothing = np.zeros(0)
        entry = np.concatenate([*self._entry, nothing.astype(np.int64)])
        channel = np.concatenate([*self._channel, nothing.astype(np.int32)])
        low, high = np.concatenate([*self._low, nothing]), np.concatenate([*self._high, nothing])
        order = np.lexsort((channel, entry))
        entry, channel, low, high = self._merged(
            entry[order], channel[order], low[order], high[order]
        )
        return Entries(
            subscription=subscriptions.astype(np.int32),
            flags=self._flags,
            first=offsets(np.bincount(entry, minlength=len(subscriptions))),
            channel=channel,
            low=low,
            high=high,
            motion_first=np.zeros(len(subscriptions) + 1, np.int32),
            motion=nothing,
        )

    def _merged(self, entry: I64, channel: I32, low: F64, high: F64) -> tuple[I64, I32, F64, F64]:
        """Intersect the constraints of an entry on one channel, if all are insides of bounds.

        Outsides of bounds, and constraints on sets, stay beside each other.
        """
        if not len(entry):
            return entry, channel, low, high
        # Sorted by entry and channel, so constraints on one channel are a run. A run that can be
        # intersected is, into its first constraint, and the rest of it is dropped.
        starts = np.flatnonzero(
            np.concatenate([[True], (np.diff(entry) != 0) | (np.diff(channel) != 0)])
        )
        lengths = np.diff([*starts, len(entry)])
        inside = np.logical_and.reduceat((low <= high) & (channel < SET), starts)
        merged_low = np.maximum.reduceat(low, starts)
        merged_high = np.minimum.reduceat(high, starts)
        empty = inside & (merged_low > merged_high)
        self._flags[entry[starts[empty]]] |= DEAD
        # An empty intersection would be taken for the outside of its bounds.
        merged_high = np.where(empty, merged_low, merged_high)
        keep: Bools = np.repeat(~inside, lengths)
        keep[starts] = True
        first_of_inside = starts[inside]
        low[first_of_inside], high[first_of_inside] = merged_low[inside], merged_high[inside]
        return entry[keep], channel[keep], low[keep], high[keep]
