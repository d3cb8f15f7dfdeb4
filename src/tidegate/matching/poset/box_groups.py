"""Groups of boxes: those that constrain the same attributes in the same states.

What a group and boxes of one shape have in common is worked out once, as a *plan*. Inside a group,
boxes that ask for single values are found by hashing those; the rest are columns of bounds,
compared as arrays.

Where a group can say for sure which of its boxes cover another, only the nearest of them need be
looked at: those which cover no other of them. They are found by sorting. In the order of the first
bound in which two of them differ a box stands before all that cover it, so the first is one of the
nearest; all that cover it are dropped, and so on. Boxes that ask for different single values are
sorted apart, and this is done for all such runs at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.matching.poset.boxes import Box, SingleValue, State

T = TypeVar("T", bound=Hashable)
Rows = npt.NDArray[np.int64]

_LOOPED_MAX = 32
"""So many boxes are compared one by one; for more, arrays are quicker."""
_SORTED_MIN = 64
"""Of fewer boxes the nearest are not singled out; the edges of the poset tell them as soon."""
_PASSES_MAX = 12
"""After so many passes that find one of the nearest in each run, the rest is given as it is."""


class BoxRole(Enum):
    """What a box is of the thing it was made from."""

    WHOLE = "all of it"
    FIRST = "the first of its alternatives"
    MORE = "another alternative"
    AROUND = "around all that it ever is, or one of its alternatives: it moves"


class BoxEntry(Generic[T]):
    """A box in a group, at a row of it and at a place in its cell."""

    __slots__ = ("box", "group", "item", "place", "row")

    def __init__(self, item: T, box: Box, group: BoxGroup[T], row: int) -> None:
        self.item = item
        self.box = box
        self.group = group
        self.row = row
        self.place = 0


@dataclass(frozen=True, slots=True)
class ComparisonPlan(Generic[T]):
    """How the boxes of a group are compared with boxes of one shape."""

    group: BoxGroup[T]
    bounds: tuple[tuple[int, int], ...]
    """Attributes whose bounds are compared: their places in the group and in the other box."""
    values: tuple[tuple[int, int], ...]
    """Attributes whose single values must be equal, where they do not choose the cell."""
    cell: tuple[int, ...] | None
    """Where in the other box the values stand that choose a cell; None to look at all rows."""
    sure: bool
    nearest: bool


BoxShape = tuple[tuple[str, ...], tuple[State, ...]]


class BoxGroup(Generic[T]):
    """Boxes that constrain the same attributes in the same states."""

    def __init__(self, shape: BoxShape, part: BoxRole, numbers: ValueNumbers) -> None:
        self.names, self.states = shape
        self.part = part
        self._numbers = numbers
        self.single = [i for i, state in enumerate(self.states) if state in _SINGLE]
        self.said = all(state in (State.NUMBER, State.RANGE, State.VALUE) for state in self.states)
        self.entries: list[BoxEntry[T] | None] = []
        self.length = 0
        self._free: list[int] = []
        self._cells: dict[tuple[object, ...], array[int]] = {}
        self._lows = self._highs = np.empty((len(self.names), 0))

    def add(self, item: T, box: Box) -> BoxEntry[T]:
        row = self._free.pop() if self._free else len(self.entries)
        entry = BoxEntry(item, box, self, row)
        if row == len(self.entries):
            self.entries.append(entry)
        else:
            self.entries[row] = entry
        self.length += 1
        self._numbers.count(box, 1)
        self._write(row, box)
        if self.single:
            self._enter_cell(entry, box)
        return entry

    def remove(self, entry: BoxEntry[T]) -> None:
        row = entry.row
        self.entries[row] = None
        self._free.append(row)
        self.length -= 1
        self._numbers.count(entry.box, -1)
        if self._lows.shape[1]:
            self._lows[:, row] = self._highs[:, row] = np.nan  # which no comparison holds for
        if self.single:
            self._leave_cell(entry)

    def change(self, entry: BoxEntry[T], box: Box) -> None:
        """Give an entry another box of the same shape."""
        if self._cell_of(entry.box) != self._cell_of(box):
            self._leave_cell(entry)
            self._enter_cell(entry, box)
        if State.VALUE in self.states:
            self._numbers.count(box, 1)
            self._numbers.count(entry.box, -1)
        entry.box = box
        if entry.row < self._lows.shape[1]:
            self._write(entry.row, box)

    def _enter_cell(self, entry: BoxEntry[T], box: Box) -> None:
        cell = self._cells.setdefault(self._cell_of(box), array("q"))
        entry.place = len(cell)
        cell.append(entry.row)

    def _leave_cell(self, entry: BoxEntry[T]) -> None:
        key = self._cell_of(entry.box)
        cell = self._cells[key]
        last = cell.pop()
        if last != entry.row:
            moved = self.entries[last]
            assert moved is not None
            cell[entry.place] = last
            moved.place = entry.place
        elif not cell:
            del self._cells[key]

    def _cell_of(self, box: Box) -> tuple[object, ...]:
        return tuple([box.values[i] for i in self.single])

    def _write(self, row: int, box: Box) -> None:
        """Into the columns, which are made when there is enough to compare."""
        if row < self._lows.shape[1]:
            self._lows[:, row] = box.lows
            self._highs[:, row] = self._numbers.in_place_of_highs(box)
        elif len(self.entries) > _LOOPED_MAX:
            shape = (len(self.names), 2 * len(self.entries))
            self._lows, self._highs = np.full(shape, np.nan), np.full(shape, np.nan)
            for each in self.entries:
                if each is not None:
                    self._lows[:, each.row] = each.box.lows
                    self._highs[:, each.row] = self._numbers.in_place_of_highs(each.box)

    # -- comparing ----------------------------------------------------------------------------

    def select(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, nearest: bool
    ) -> Iterable[BoxEntry[T]]:
        """The boxes that may cover a box (``wide``), or that it may cover."""
        cell = None
        if plan.cell is not None:
            cell = self._cells.get(tuple([box.values[i] for i in plan.cell]))
            if cell is None:
                return ()
        if (len(self.entries) if cell is None else len(cell)) <= _LOOPED_MAX:
            return self._looped(plan, box, wide, cell)
        rows = self._compared(plan, box, wide, cell)
        if nearest and plan.nearest and len(rows) > _SORTED_MIN:
            rows = self._nearest(rows, wide)
        entries = self.entries
        return [entry for row in rows.tolist() if (entry := entries[row]) is not None]

    def _looped(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, cell: array[int] | None
    ) -> list[BoxEntry[T]]:
        entries = self.entries if cell is None else [self.entries[row] for row in cell]
        found = [entry for entry in entries if entry is not None]
        for i, j in plan.values:
            value = box.values[j]
            found = [entry for entry in found if entry.box.values[i] == value]
        for i, j in plan.bounds:
            if not found:
                break
            low, high = box.lows[j], box.highs[j]
            found = [
                entry
                for entry in found
                if (
                    entry.box.lows[i] <= low and entry.box.highs[i] >= high
                    if wide
                    else entry.box.lows[i] >= low and entry.box.highs[i] <= high
                )
            ]
        return found

    def _compared(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, cell: array[int] | None
    ) -> Rows:
        size = len(self.entries)
        rows: Rows | None = None if cell is None else np.frombuffer(cell, np.int64)

        def keep(holds: npt.NDArray[np.bool_]) -> Rows:
            return np.flatnonzero(holds) if rows is None else rows[holds]

        def column(columns: npt.NDArray[np.float64], i: int) -> npt.NDArray[np.float64]:
            whole = columns[i, :size]
            return whole if rows is None else whole[rows]

        for i, j in plan.values:
            rows = keep(column(self._highs, i) == self._numbers.in_place_of_highs(box)[j])
        for i, j in plan.bounds:
            lows = column(self._lows, i)
            highs = lows if self.states[i] is State.VALUE else column(self._highs, i)
            low, high = box.lows[j], box.highs[j]
            if wide:
                rows = keep((lows <= low) & (highs >= high))
            else:
                rows = keep((lows >= low) & (highs <= high))
            if not len(rows):
                break
        if rows is None:
            rows = np.array([each.row for each in self.entries if each is not None], np.int64)
        return rows

    def _nearest(self, rows: Rows, wide: bool) -> Rows:
        """Those that cover no other of them (``wide``), or that no other of them covers."""
        lows, highs = self._lows[:, rows], self._highs[:, rows]
        if not wide:
            lows, highs = -lows, -highs
        ranges = [i for i in range(len(self.names)) if i not in self.single]
        keys = [each for i in ranges for each in (highs[i], -lows[i])]
        keys += [highs[i] for i in self.single]
        order = np.lexsort(keys) if keys else np.arange(len(rows))
        lows, highs = lows[ranges], highs[ranges]
        runs = self._highs[self.single][:, rows]
        nearest = []
        for _ in range(_PASSES_MAX):
            if not len(order):
                break
            begins = np.ones(len(order), np.bool_)
            begins[1:] = (runs[:, order[1:]] != runs[:, order[:-1]]).any(axis=0)
            first = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
            nearest.append(order[begins])
            beyond = (lows[:, order] <= lows[:, first]) & (highs[:, order] >= highs[:, first])
            order = order[~beyond.all(axis=0)]
        found: Rows = rows[np.concatenate([*nearest, order])]
        return found


_SINGLE = (State.NUMBER, State.VALUE)


def plan_of(group: BoxGroup[T], shape: BoxShape, wide: bool) -> ComparisonPlan[T] | None:
    """How a group's boxes, as the wider or the narrower ones, compare with those of a shape."""
    names, states = shape
    bounds: list[tuple[int, int]] = []
    values: dict[int, int] = {}
    sure = True
    for j, name in enumerate(names):
        if name not in group.names:
            continue
        i = group.names.index(name)
        wider, narrower = (group.states[i], states[j]) if wide else (states[j], group.states[i])
        if narrower is State.PATTERN:
            sure = False
        elif wider in _SINGLE:
            if wider is not narrower:
                return None
            values[i] = j
        elif wider is State.RANGE and narrower is State.VALUE:
            return None
        else:
            sure = sure and wider is State.RANGE and narrower is not State.PLAIN
            bounds.append((i, j))
    sure = sure and group.part is not BoxRole.AROUND
    hashed = bool(group.single) and all(i in values for i in group.single)
    cell = tuple(values[i] for i in group.single) if hashed else None
    equal = () if hashed else tuple(values.items())
    nearest = sure and group.said and group.part is BoxRole.WHOLE
    return ComparisonPlan(group, tuple(bounds), equal, cell, sure, nearest)


class ValueNumbers:
    """A number for each single value that is no number itself, for as long as a box has it."""

    def __init__(self) -> None:
        self._numbers: dict[SingleValue, int] = {}
        self._boxes: dict[SingleValue, int] = {}
        self._made = 0

    def count(self, box: Box, change: int) -> None:
        """Note that one more box, or one less, has its values."""
        for state, value in zip(box.states, box.values, strict=True):
            if state is not State.VALUE or value is None:
                continue
            boxes = self._boxes[value] = self._boxes.get(value, 0) + change
            if not boxes:
                del self._boxes[value], self._numbers[value]
            elif value not in self._numbers:
                self._made += 1
                self._numbers[value] = self._made

    def in_place_of_highs(self, box: Box) -> list[float]:
        """The high bounds, but numbers in place of those of single values; 0 for unknown ones."""
        return [
            self._numbers.get(value, 0) if state is State.VALUE and value is not None else high
            for state, value, high in zip(box.states, box.values, box.highs, strict=True)
        ]
