"""An index of boxes: which of them may cover a box, and which of them it may cover.

Rules. (1) No box that covers, or is covered, is ever left out. (2) What is called sure is.

Theory of operation. Boxes that constrain the same attributes in the same states are a *group* (see
`box_groups`). A group can only hold boxes wider than another if it constrains no attribute that the
other leaves free (for advertisements it is the other way round), and few groups pass that test;
those that do compare all their boxes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations
from typing import Any, Generic

import numpy as np

from tidegate.matching.poset.box_groups import (
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
"""Plans for more shapes are worked out again when they are wanted."""


class CoveringIndex(Generic[T]):
    """Items by their boxes. An item with several boxes covers whatever one of them does.

    ``more_is_narrower`` says whether a box that constrains more attributes is the narrower one, as
    with filters, or the wider one, as with advertisements.
    """

    def __init__(self, more_is_narrower: bool) -> None:
        self._more_is_narrower = more_is_narrower
        self._entries: dict[T, list[BoxEntry[T]]] = {}
        self._groups: dict[tuple[BoxShape, BoxRole], BoxGroup[T]] = {}
        self._signatures = _Signatures[T]()
        self._numbers = ValueNumbers()
        self._known_plans: dict[tuple[BoxShape, bool], list[ComparisonPlan[T]]] = {}

    def add(self, item: T, boxes: Sequence[Box], *, moves: bool = False) -> None:
        """Take an item in; if it moves, its boxes are around all that it ever is."""
        parts = (
            [BoxRole.WHOLE]
            if len(boxes) == 1
            else [BoxRole.FIRST] + [BoxRole.MORE] * (len(boxes) - 1)
        )
        if moves:
            parts = [BoxRole.AROUND] * len(boxes)
        entries = [
            self._group(box, part).add(item, box) for box, part in zip(boxes, parts, strict=True)
        ]
        self._entries[item] = entries

    def remove(self, item: T) -> None:
        """Forget an item."""
        for entry in self._entries.pop(item):
            group = entry.group
            group.remove(entry)
            if not group.length:
                del self._groups[(group.names, group.states), group.part]
                self._signatures.remove(group)
                self._known_plans.clear()

    def change(self, item: T, box: Box) -> None:
        """Give an item of one box another one."""
        (entry,) = self._entries[item]
        group = entry.group
        if group.part is BoxRole.WHOLE and (box.names, box.states) == (group.names, group.states):
            group.change(entry, box)
        else:
            self.remove(item)
            self.add(item, [box])

    def _group(self, box: Box, part: BoxRole) -> BoxGroup[T]:
        shape = (box.names, box.states)
        group = self._groups.get((shape, part))
        if group is None:
            group = self._groups[shape, part] = BoxGroup(shape, part, self._numbers)
            self._signatures.add(group)
            self._known_plans.clear()
        return group

    def wider(
        self, boxes: Sequence[Box], *, nearest: bool = False, moving: bool = True
    ) -> tuple[list[T], list[T]]:
        """The items that surely cover all of the boxes, and others that may.

        With ``nearest``, items may be left out that cover another of those given; without
        ``moving``, those that move are left out.
        """
        one = len(boxes) == 1
        sure: dict[T, None] = {}
        maybe: dict[T, None] = {}
        for plan in self._plans(boxes[0], True):
            if plan.group.part is BoxRole.AROUND and not moving:
                continue
            into = sure if one and plan.sure else maybe
            for entry in plan.group.select(plan, boxes[0], True, nearest and one):
                into[entry.item] = None
        return _told_apart(sure, maybe)

    def narrower(self, boxes: Sequence[Box], *, nearest: bool = False) -> tuple[list[T], list[T]]:
        """The items that one of the boxes surely covers, and others that they may.

        With ``nearest``, items may be left out that another of those given covers.
        """
        sure: dict[T, None] = {}
        maybe: dict[T, None] = {}
        for box in boxes:
            for plan in self._plans(box, False):
                into = sure if plan.sure and plan.group.part is BoxRole.WHOLE else maybe
                for entry in plan.group.select(plan, box, False, nearest):
                    into[entry.item] = None
        return _told_apart(sure, maybe)

    def _plans(self, box: Box, wide: bool) -> list[ComparisonPlan[T]]:
        """The groups that may hold what is wanted; kept until there are others."""
        shape = (box.names, box.states)
        plans = self._known_plans.get((shape, wide))
        if plans is not None:
            return plans
        fewer = wide is self._more_is_narrower
        groups = self._signatures.within(box.names) if fewer else self._signatures.around(box.names)
        plans = [
            plan
            for group in groups
            if (wide or group.part is not BoxRole.MORE)
            and (plan := plan_of(group, shape, wide)) is not None
        ]
        if len(self._known_plans) < _PLANS_MAX:
            self._known_plans[shape, wide] = plans
        return plans


def _told_apart(sure: dict[T, None], maybe: dict[T, None]) -> tuple[list[T], list[T]]:
    return list(sure), [item for item in maybe if item not in sure]


class _Signatures(Generic[T]):
    """Groups by the attributes that they constrain, to be found by fewer and by more of them."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, ...], int] = {}
        self._groups: list[list[BoxGroup[T]]] = []
        self._free: list[int] = []
        self._having: dict[str, int] = {}
        """For each attribute, a bit for each signature that has it."""

    def add(self, group: BoxGroup[T]) -> None:
        number = self._numbers.get(group.names)
        if number is None:
            number = self._free.pop() if self._free else len(self._groups)
            self._numbers[group.names] = number
            if number == len(self._groups):
                self._groups.append([])
            for name in group.names:
                self._having[name] = self._having.get(name, 0) | 1 << number
        self._groups[number].append(group)

    def remove(self, group: BoxGroup[T]) -> None:
        number = self._numbers[group.names]
        self._groups[number].remove(group)
        if self._groups[number]:
            return
        del self._numbers[group.names]
        self._free.append(number)
        for name in group.names:
            self._having[name] &= ~(1 << number)
            if not self._having[name]:
                del self._having[name]

    def within(self, names: tuple[str, ...]) -> list[BoxGroup[T]]:
        """The groups that constrain none but these attributes."""
        known = [name for name in names if name in self._having]
        if 1 << len(known) <= len(self._numbers):
            some = chain.from_iterable(combinations(known, k) for k in range(len(known) + 1))
            numbers = [number for each in some if (number := self._numbers.get(each)) is not None]
        else:
            allowed = set(known)
            numbers = [n for each, n in self._numbers.items() if allowed.issuperset(each)]
        return [group for number in numbers for group in self._groups[number]]

    def around(self, names: tuple[str, ...]) -> list[BoxGroup[T]]:
        """The groups that constrain all of these attributes."""
        if not names:
            return [group for number in self._numbers.values() for group in self._groups[number]]
        bits = -1
        for name in names:
            bits &= self._having.get(name, 0)
        return [group for number in _set_bits(bits) for group in self._groups[number]]


def _set_bits(bits: int) -> list[int]:
    raw: Any = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), np.uint8)
    found: list[int] = np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()
    return found
