"""Box groups: boxes that constrain the same attributes with the same forms, compared as columns.

Rules. (1) `BoxGroup.select` leaves out no box that covers the given one (or is covered by it).
(2) Where the plan is *sure*, every box that it returns does.

Theory of operation. How the boxes of a group compare with those of another shape depends on the two
shapes only: which attributes have bounds to compare, which have single values that must be equal,
and whether the outcome is sure. This is a *plan*, made once for a group and a shape.

Inside a group, boxes with single values are in *buckets*, hashed by these values; the bounds are
columns of floats, compared as arrays where there are enough of them.

Where the plan is sure, a caller may ask for the *nearest* boxes only: those that cover no other box
of the answer (or, below, are covered by none). They are found by sorting. In the order of the first
bound in which two boxes differ, a box precedes all that cover it. So the first box is one of the
nearest; all boxes that cover it are dropped, and the next pass starts with the rest. Boxes with
different single values cannot cover each other, so they are sorted into separate runs, and each
pass works on all runs at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from tidegate.matching.poset.boxes import BoundsForm, Box, SingleValue

T = TypeVar("T", bound=Hashable)
Slots = npt.NDArray[np.int64]
"""Positions in the columns of a group."""

LOOP_MAX = 32
"""Default number of boxes that are compared in a Python loop; for more, arrays are faster."""
SORT_MIN = 64
"""Default number of boxes above which the nearest are singled out.

For fewer it does not pay: the poset drops the others along its edges.
"""
_NEAREST_PASSES_MAX = 12
"""Each pass finds one of the nearest boxes in each run. After this many passes the rest is returned
as it is: callers allow for boxes that are not among the nearest."""


class BoxRole(Enum):
    """The relation of a box to its item."""

    WHOLE = "the only box of a static item"
    FIRST = "the first of several boxes of a static item"
    FURTHER = "another of several boxes of a static item"
    OVER_ESTIMATE = "a box of the over-estimate of an evolving item"


class BoxEntry(Generic[T]):
    """A box in a group, with its slot in the columns and its position in the bucket."""

    __slots__ = ("box", "group", "item", "position", "slot")

    def __init__(self, item: T, box: Box, group: BoxGroup[T], slot: int) -> None:
        self.item = item
        self.box = box
        self.group = group
        self.slot = slot
        self.position = 0


@dataclass(frozen=True, slots=True)
class ComparisonPlan(Generic[T]):
    """How the boxes of a group are compared with boxes of one shape.

    Pairs are the index of an attribute in the group and in the other box.
    """

    group: BoxGroup[T]
    bounds: tuple[tuple[int, int], ...]
    """Attributes whose bounds are compared."""
    values: tuple[tuple[int, int], ...]
    """Attributes whose single values must be equal, if they do not choose the bucket."""
    bucket: tuple[int, ...] | None
    """Attributes of the other box whose values are the key of the bucket; None: all slots."""
    sure: bool
    """Whether the comparison proves that one box covers the other."""
    nearest: bool
    """Whether ``select`` can single out the nearest boxes."""


BoxShape = tuple[tuple[str, ...], tuple[BoundsForm, ...]]
"""The attributes of a box, and the forms of their bounds."""


class BoxGroup(Generic[T]):
    """Boxes of one shape and role."""

    def __init__(
        self,
        shape: BoxShape,
        role: BoxRole,
        numbers: ValueNumbers,
        *,
        loop_max: int = LOOP_MAX,
        sort_min: int = SORT_MIN,
    ) -> None:
        self.names, self.forms = shape
        self.role = role
        self._numbers = numbers
        self._loop_max = loop_max
        self._sort_min = sort_min
        self.single = [i for i, form in enumerate(self.forms) if form in _SINGLE]
        """The attributes with single values."""
        self.is_exact = all(form <= BoundsForm.VALUE for form in self.forms)
        self.entries: list[BoxEntry[T] | None] = []
        """The entries by slot; None where a slot is free."""
        self.length = 0
        self._free: list[int] = []
        self._buckets: dict[tuple[object, ...], array[int]] = {}
        # One row for each attribute, one column for each slot. Where an attribute has a single
        # value, its row of ``_highs`` has the number of the value (see ValueNumbers).
        self._lows = self._highs = np.empty((len(self.names), 0))

    def add(self, item: T, box: Box) -> BoxEntry[T]:
        """Add a box of the group's shape."""
        slot = self._free.pop() if self._free else len(self.entries)
        entry = BoxEntry(item, box, self, slot)
        if slot == len(self.entries):
            self.entries.append(entry)
        else:
            self.entries[slot] = entry
        self.length += 1
        self._numbers.count(box, 1)
        self._write(slot, box)
        if self.single:
            self._add_to_bucket(entry, box)
        return entry

    def remove(self, entry: BoxEntry[T]) -> None:
        """Remove an entry and free its slot for reuse."""
        slot = entry.slot
        self.entries[slot] = None
        self._free.append(slot)
        self.length -= 1
        self._numbers.count(entry.box, -1)
        if self._lows.shape[1]:
            self._lows[:, slot] = self._highs[:, slot] = np.nan  # no comparison with NaN holds
        if self.single:
            self._remove_from_bucket(entry)

    def change(self, entry: BoxEntry[T], box: Box) -> None:
        """Replace the box of an entry by another one of the group's shape, in its slot."""
        if self._bucket_key(entry.box) != self._bucket_key(box):
            self._remove_from_bucket(entry)
            self._add_to_bucket(entry, box)
        if BoundsForm.VALUE in self.forms:
            self._numbers.count(box, 1)  # first, so that a value of both boxes keeps its number
            self._numbers.count(entry.box, -1)
        entry.box = box
        if entry.slot < self._lows.shape[1]:
            self._write(entry.slot, box)

    def _add_to_bucket(self, entry: BoxEntry[T], box: Box) -> None:
        bucket = self._buckets.setdefault(self._bucket_key(box), array("q"))
        entry.position = len(bucket)
        bucket.append(entry.slot)

    def _remove_from_bucket(self, entry: BoxEntry[T]) -> None:
        """Put the bucket's last slot in place of the entry's, so that nothing has to be shifted."""
        key = self._bucket_key(entry.box)
        bucket = self._buckets[key]
        last = bucket.pop()
        if last != entry.slot:
            moved = self.entries[last]
            assert moved is not None
            bucket[entry.position] = last
            moved.position = entry.position
        elif not bucket:
            del self._buckets[key]

    def _bucket_key(self, box: Box) -> tuple[object, ...]:
        return tuple([box.values[i] for i in self.single])

    def _write(self, slot: int, box: Box) -> None:
        """Write a box into the columns; these are allocated once loops become slow."""
        if slot < self._lows.shape[1]:
            self._lows[:, slot] = box.lows
            self._highs[:, slot] = self._numbers.highs_of(box)
        elif len(self.entries) > self._loop_max:
            # Twice the size needed, so that growing costs a constant for each box on average.
            size = (len(self.names), 2 * len(self.entries))
            self._lows, self._highs = np.full(size, np.nan), np.full(size, np.nan)
            for entry in self.entries:
                if entry is not None:
                    self._lows[:, entry.slot] = entry.box.lows
                    self._highs[:, entry.slot] = self._numbers.highs_of(entry.box)

    # -- comparing ----------------------------------------------------------------------------

    def select(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, nearest: bool
    ) -> Iterable[BoxEntry[T]]:
        """The entries that may cover a box (``wide``), or that it may cover.

        With ``nearest``, entries that cover another one of the answer may be left out (if ``wide``,
        else those that another one covers), where the plan allows it.
        """
        bucket = None
        if plan.bucket is not None:
            bucket = self._buckets.get(tuple([box.values[j] for j in plan.bucket]))
            if bucket is None:
                return ()
        if (len(self.entries) if bucket is None else len(bucket)) <= self._loop_max:
            return self._select_by_loop(plan, box, wide, bucket)
        slots = self._select_by_arrays(plan, box, wide, bucket)
        if nearest and plan.nearest and len(slots) > self._sort_min:
            slots = self._nearest(slots, wide)
        entries = self.entries
        return [entry for slot in slots.tolist() if (entry := entries[slot]) is not None]

    def _select_by_loop(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, bucket: array[int] | None
    ) -> list[BoxEntry[T]]:
        entries = self.entries if bucket is None else [self.entries[slot] for slot in bucket]
        selected = [entry for entry in entries if entry is not None]
        for i, j in plan.values:
            value = box.values[j]
            selected = [entry for entry in selected if entry.box.values[i] == value]
        for i, j in plan.bounds:
            if not selected:
                break
            low, high = box.lows[j], box.highs[j]
            selected = [
                entry
                for entry in selected
                if (
                    entry.box.lows[i] <= low and entry.box.highs[i] >= high
                    if wide
                    else entry.box.lows[i] >= low and entry.box.highs[i] <= high
                )
            ]
        return selected

    def _select_by_arrays(
        self, plan: ComparisonPlan[T], box: Box, wide: bool, bucket: array[int] | None
    ) -> Slots:
        size = len(self.entries)
        slots: Slots | None = None if bucket is None else np.frombuffer(bucket, np.int64)

        # None means all slots: the first comparison is then made on whole columns, which is
        # faster than to index them.
        def keep(holds: npt.NDArray[np.bool_]) -> Slots:
            return np.flatnonzero(holds) if slots is None else slots[holds]

        def column(columns: npt.NDArray[np.float64], i: int) -> npt.NDArray[np.float64]:
            whole = columns[i, :size]
            return whole if slots is None else whole[slots]

        for i, j in plan.values:
            slots = keep(column(self._highs, i) == self._numbers.highs_of(box)[j])
        for i, j in plan.bounds:
            lows = column(self._lows, i)
            # The high bound of a single value equals its low one; ``_highs`` has its number.
            highs = lows if self.forms[i] is BoundsForm.VALUE else column(self._highs, i)
            low, high = box.lows[j], box.highs[j]
            if wide:
                slots = keep((lows <= low) & (highs >= high))
            else:
                slots = keep((lows >= low) & (highs <= high))
            if not len(slots):
                break
        if slots is None:
            slots = np.array([entry.slot for entry in self.entries if entry is not None], np.int64)
        return slots

    def _nearest(self, slots: Slots, wide: bool) -> Slots:
        """The slots whose boxes cover no other of them (``wide``), or are covered by no other."""
        lows, highs = self._lows[:, slots], self._highs[:, slots]
        if not wide:
            lows, highs = -lows, -highs  # mirrored, the wider box is the narrower one
        ranges = [i for i in range(len(self.names)) if i not in self.single]
        # `lexsort` sorts by the last key first: the single values make the runs, and in a run
        # narrower boxes come first.
        keys = [bound for i in ranges for bound in (highs[i], -lows[i])]
        keys += [highs[i] for i in self.single]
        order = np.lexsort(keys) if keys else np.arange(len(slots))
        lows, highs = lows[ranges], highs[ranges]
        runs = self._highs[self.single][:, slots]
        nearest = []
        for _ in range(_NEAREST_PASSES_MAX):
            if not len(order):
                break
            begins = np.ones(len(order), np.bool_)
            begins[1:] = (runs[:, order[1:]] != runs[:, order[:-1]]).any(axis=0)
            # For each box, the first one of its run.
            first = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
            nearest.append(order[begins])
            covering = (lows[:, order] <= lows[:, first]) & (highs[:, order] >= highs[:, first])
            order = order[~covering.all(axis=0)]  # the first one covers itself
        found: Slots = slots[np.concatenate([*nearest, order])]
        return found


_SINGLE = (BoundsForm.NUMBER, BoundsForm.VALUE)


def plan_of(group: BoxGroup[T], shape: BoxShape, wide: bool) -> ComparisonPlan[T] | None:
    """The plan to compare the boxes of a group with boxes of a shape.

    The group's boxes are the wider ones (``wide``) or the narrower ones. None if no box of the
    group can cover one of the shape (or be covered by one).
    """
    names, forms = shape
    bounds: list[tuple[int, int]] = []
    values: dict[int, int] = {}
    sure = True
    for j, name in enumerate(names):
        if name not in group.names:
            continue  # one side does not constrain it, which the caller's choice of groups allows
        i = group.names.index(name)
        wider, narrower = (group.forms[i], forms[j]) if wide else (forms[j], group.forms[i])
        if narrower is BoundsForm.PATTERN:
            # `covers` may know that a pattern matches no string in part of its bounds. So these
            # may reach beyond the bounds of a set that covers it, and are not compared.
            sure = False
        elif wider in _SINGLE:
            if wider is not narrower:
                return None
            values[i] = j
        elif wider is BoundsForm.RANGE and narrower is BoundsForm.VALUE:
            return None  # a range has numbers only
        else:
            sure = sure and wider is BoundsForm.RANGE and narrower is not BoundsForm.HULL
            bounds.append((i, j))
    # What lies within the over-estimate of an evolving item need not be covered by the item.
    sure = sure and group.role is not BoxRole.OVER_ESTIMATE
    # The bucket's key are all single values of the group, so all of them must be known.
    hashed = bool(group.single) and all(i in values for i in group.single)
    bucket = tuple(values[i] for i in group.single) if hashed else None
    equal = () if hashed else tuple(values.items())
    # An entry is left out because it covers another one (or is covered by it). That must hold for
    # their items, too, and an item with several boxes is wider than any of them.
    nearest = sure and group.is_exact and group.role is BoxRole.WHOLE
    return ComparisonPlan(group, tuple(bounds), equal, bucket, sure, nearest)


class ValueNumbers:
    """A number for each single string, timestamp or boolean, as long as any box has it.

    Different strings may have equal bounds, so columns are compared by these numbers instead.
    """

    def __init__(self) -> None:
        self._numbers: dict[SingleValue, int] = {}
        self._uses: dict[SingleValue, int] = {}
        self._last = 0

    def count(self, box: Box, change: int) -> None:
        """Count one more box (1) or one box less (-1) with the values of this one."""
        for form, value in zip(box.forms, box.values, strict=True):
            if form is not BoundsForm.VALUE or value is None:
                continue
            uses = self._uses[value] = self._uses.get(value, 0) + change
            if not uses:
                del self._uses[value], self._numbers[value]
            elif value not in self._numbers:
                self._last += 1
                self._numbers[value] = self._last

    def highs_of(self, box: Box) -> list[float]:
        """The high bounds of a box, with the numbers of single values in their place.

        0 for a value that no box in the index has; no number is 0, so it equals none of them.
        """
        return [
            self._numbers.get(value, 0) if form is BoundsForm.VALUE and value is not None else high
            for form, value, high in zip(box.forms, box.values, box.highs, strict=True)
        ]
