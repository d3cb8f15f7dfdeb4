"""The covering index: which items may cover given boxes, and which items the boxes may cover.

Rules. (1) No item that covers, or is covered, is left out. (2) An item returned as sure does cover,
or is covered.

Theory of operation. To place a filter in the poset, Siena (4.2, 4.3) walks it from the roots and
compares filter by filter. Here the candidates come from an index instead, as most filters are
unrelated. Boxes with the same attributes and forms of bounds are a *group* (`box_groups`). A group
can only hold filters wider than a box if it constrains no attribute that the box leaves free, and
narrower ones only if it constrains all of the box's attributes (for advertisements the other way
round). Few groups pass this test; each of those compares all its boxes at once, by a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any, Generic

import numpy as np

from tidegate.matching.poset.box_groups import (
    LOOP_MAX,
    SORT_MIN,
    BoxEntry,
    BoxGroup,
    BoxRole,
    BoxShape,
    ComparisonPlan,
    T,
    ValueNumbers,
    plan_of,
)
from tidegate.matching.poset.boxes import Box

_PLANS_MAX = 4096
"""Number of box shapes whose plans are kept. Events have arbitrary shapes, so there is a limit."""


class CoveringIndex(Generic[T]):
    """Items by their boxes; an item with several boxes covers whatever one of them covers.

    ``more_is_narrower`` is that of `Coverage`. Up to ``loop_max`` boxes of a group are compared in
    a loop, and above ``sort_min`` the nearest of them are singled out.
    """

    def __init__(
        self, more_is_narrower: bool, *, loop_max: int = LOOP_MAX, sort_min: int = SORT_MIN
    ) -> None:
        self._more_is_narrower = more_is_narrower
        self._loop_max = loop_max
        self._sort_min = sort_min
        self._entries: dict[T, list[BoxEntry[T]]] = {}
        self._groups: dict[tuple[BoxShape, BoxRole], BoxGroup[T]] = {}
        self._groups_by_names = _GroupsByNames[T]()
        self._numbers = ValueNumbers()
        self._plans: dict[tuple[BoxShape, bool], list[ComparisonPlan[T]]] = {}
        """The plans for a shape, with ``wide``; dropped whenever a group comes or goes."""

    def add(self, item: T, boxes: Sequence[Box], *, evolves: bool = False) -> None:
        """Add an item; if it evolves, its boxes are those of its over-estimate."""
        if evolves:
            roles = [BoxRole.OVER_ESTIMATE] * len(boxes)
        elif len(boxes) == 1:
            roles = [BoxRole.WHOLE]
        else:
            roles = [BoxRole.FIRST] + [BoxRole.FURTHER] * (len(boxes) - 1)
        self._entries[item] = [
            self._group(box, role).add(item, box) for box, role in zip(boxes, roles, strict=True)
        ]

    def remove(self, item: T) -> None:
        """Remove an item; raises KeyError if it is not in the index."""
        for entry in self._entries.pop(item):
            group = entry.group
            group.remove(entry)
            if not group.length:
                del self._groups[(group.names, group.forms), group.role]
                self._groups_by_names.remove(group)
                self._plans.clear()

    def change(self, item: T, box: Box) -> None:
        """Replace the box of a static item that has just one."""
        (entry,) = self._entries[item]
        group = entry.group
        if group.role is BoxRole.WHOLE and (box.names, box.forms) == (group.names, group.forms):
            group.change(entry, box)
        else:
            self.remove(item)
            self.add(item, [box])

    def _group(self, box: Box, role: BoxRole) -> BoxGroup[T]:
        """The group of a box; a new one if there is none."""
        shape = (box.names, box.forms)
        group = self._groups.get((shape, role))
        if group is None:
            group = self._groups[shape, role] = BoxGroup(
                shape, role, self._numbers, loop_max=self._loop_max, sort_min=self._sort_min
            )
            self._groups_by_names.add(group)
            self._plans.clear()
        return group

    def wider(
        self, boxes: Sequence[Box], *, nearest: bool = False, include_evolving: bool = True
    ) -> tuple[list[T], list[T]]:
        """The items that surely cover all of the boxes, and others that may.

        With ``nearest``, items that cover another one of the answer may be left out.
        """
        # What covers all boxes covers the first one; of several boxes the others are not looked
        # at, so nothing is sure then.
        one = len(boxes) == 1
        sure: dict[T, None] = {}
        maybe: dict[T, None] = {}
        for plan in self._plans_for(boxes[0], True):
            if plan.group.role is BoxRole.OVER_ESTIMATE and not include_evolving:
                continue
            into = sure if one and plan.sure else maybe
            for entry in plan.group.select(plan, boxes[0], True, nearest and one):
                into[entry.item] = None
        return _disjoint(sure, maybe)

    def narrower(self, boxes: Sequence[Box], *, nearest: bool = False) -> tuple[list[T], list[T]]:
        """The items that one of the boxes surely covers, and others that the boxes may cover.

        With ``nearest``, items that another one of the answer covers may be left out.
        """
        sure: dict[T, None] = {}
        maybe: dict[T, None] = {}
        for box in boxes:
            for plan in self._plans_for(box, False):
                # An item with several boxes is covered only if all of them are.
                into = sure if plan.sure and plan.group.role is BoxRole.WHOLE else maybe
                for entry in plan.group.select(plan, box, False, nearest):
                    into[entry.item] = None
        return _disjoint(sure, maybe)

    def _plans_for(self, box: Box, wide: bool) -> list[ComparisonPlan[T]]:
        """The plans of all groups that may hold wider boxes, or narrower ones."""
        shape = (box.names, box.forms)
        plans = self._plans.get((shape, wide))
        if plans is not None:
            return plans
        groups_by_names = self._groups_by_names
        if wide is self._more_is_narrower:
            groups = groups_by_names.within(box.names)
        else:
            groups = groups_by_names.containing(box.names)
        # An item with several boxes is covered only if its first box is: that one is enough to
        # find it.
        plans = [
            plan
            for group in groups
            if (wide or group.role is not BoxRole.FURTHER)
            and (plan := plan_of(group, shape, wide)) is not None
        ]
        if len(self._plans) < _PLANS_MAX:
            self._plans[shape, wide] = plans
        return plans


def _disjoint(sure: dict[T, None], maybe: dict[T, None]) -> tuple[list[T], list[T]]:
    """Both as lists, with items of both (by different boxes) in the first only."""
    return list(sure), [item for item in maybe if item not in sure]


class _GroupsByNames(Generic[T]):
    """Groups by the names of their attributes, to find those with fewer and with more of them.

    Each tuple of names has a number. A bitmap for each attribute has the bits of all tuples that
    contain it, so the tuples that contain several attributes are an `and` of bitmaps.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._groups: list[list[BoxGroup[T]]] = []
        self._free: list[int] = []
        self._bitmaps: dict[str, int] = {}

    def add(self, group: BoxGroup[T]) -> None:
        number = self._numbers.get(group.names)
        if number is None:
            number = self._free.pop() if self._free else len(self._groups)
            self._numbers[group.names] = number
            if number == len(self._groups):
                self._groups.append([])
            for name in group.names:
                self._bitmaps[name] = self._bitmaps.get(name, 0) | 1 << number
        self._groups[number].append(group)

    def remove(self, group: BoxGroup[T]) -> None:
        number = self._numbers[group.names]
        self._groups[number].remove(group)
        if self._groups[number]:
            return
        del self._numbers[group.names]
        self._free.append(number)
        for name in group.names:
            self._bitmaps[name] &= ~(1 << number)
            if not self._bitmaps[name]:
                del self._bitmaps[name]

    def within(self, names: tuple[str, ...]) -> list[BoxGroup[T]]:
        """The groups that constrain no other attributes than these."""
        known = [name for name in names if name in self._bitmaps]
        # Either all subsets of the names are looked up, or all tuples are tested, whichever are
        # fewer. Names are in alphabetical order on both sides, so subsets are tuples as they are.
        if 1 << len(known) <= len(self._numbers):
            subsets = chain.from_iterable(combinations(known, k) for k in range(len(known) + 1))
            numbers = [n for subset in subsets if (n := self._numbers.get(subset)) is not None]
        else:
            allowed = set(known)
            numbers = [n for tested, n in self._numbers.items() if allowed.issuperset(tested)]
        return [group for number in numbers for group in self._groups[number]]

    def containing(self, names: tuple[str, ...]) -> list[BoxGroup[T]]:
        """The groups that constrain all of these attributes."""
        if not names:
            return [group for number in self._numbers.values() for group in self._groups[number]]
        bits = -1  # all of them
        for name in names:
            bits &= self._bitmaps.get(name, 0)
        return [group for number in _set_bits(bits) for group in self._groups[number]]


def _set_bits(bits: int) -> list[int]:
    """The positions of the bits that are 1, in ascending order."""
    raw: Any = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), np.uint8)
    positions: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return positions
