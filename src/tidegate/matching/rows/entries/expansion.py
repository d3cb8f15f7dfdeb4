"""Which entries the rows of a shape have: one for each disjunct, and each choice from `in` lists.

The entries of a row are numbered by their *ordinals*, from 1 on, in the order in which they are
made here. An entry has its ordinal beside its flags (rows/kernels/flags.py), so that an update
knows which entry is that of a changed predicate (rows/update_plans.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tidegate.language.expressions import Slot
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Operator, Predicate
from tidegate.matching.rows.entries.operands import moving_attributes
from tidegate.matching.rows.kernels.cell_kinds import UNDEFINED

EXPANDED_MAX = 1024
"""A conjunction with `in` lists becomes an entry for each choice of their values, if the filter has
at most this many in all: equalities can be hashed. A list that is not expanded only asks for the
attribute, and is verified, which takes some microseconds a value."""

EXPANDED_RATIO = 4
"""Where lists are long: as many entries as this for each value in them."""

CONSTRAINTS_MAX = 32_768
"""Nor is a list expanded where that would make entries with more constraints in all."""


@dataclass(slots=True)
class Room:
    """What of a filter may still be expanded, and compiled."""

    disjuncts_left: int
    entries: int
    constraints: int = CONSTRAINTS_MAX

    @classmethod
    def of(cls, shape: Shape) -> Room:
        """The room of a whole filter."""
        values = sum(_list_length(each) for conjunction in shape.disjuncts for each in conjunction)
        return cls(len(shape.disjuncts), max(EXPANDED_MAX, EXPANDED_RATIO * values))


def values_of(predicate: Predicate) -> int:
    """How many constraints a predicate becomes."""
    return len(predicate.operands) if predicate.operator is Operator.NOT_IN else 1


def expanded(
    conjunction: tuple[Predicate, ...], kinds: tuple[int, ...], room: Room
) -> tuple[list[list[Predicate]], list[Predicate]]:
    """The `in` lists of a conjunction as equalities, one list for each, and its other predicates.

    A list stays as it is if there is no room for entries with each choice of values. The longest
    comes first.
    """
    lists: list[list[Predicate]] = []
    others: list[Predicate] = []
    width = sum(map(values_of, conjunction))
    room.disjuncts_left -= 1
    entries_max = min(room.entries - room.disjuncts_left, room.constraints // max(1, width))
    count = 1
    for predicate in sorted(conjunction, key=lambda each: -_list_length(each)):
        values = _equalities(predicate, kinds)
        if values is None or count * len(values) > entries_max:
            others.append(predicate)
        else:
            lists.append(values)
            count *= max(1, len(values))
    room.entries -= count
    room.constraints -= count * width
    return lists, others


def _list_length(predicate: Predicate) -> int:
    return len(predicate.operands) if predicate.operator is Operator.IN else 0


def _equalities(predicate: Predicate, kinds: tuple[int, ...]) -> list[Predicate] | None:
    """An `in` list as an equality for each value; None for other predicates."""
    if predicate.operator is not Operator.IN:
        return None
    return [
        Predicate(predicate.attribute, Operator.EQUAL, (operand,))
        for operand in predicate.operands
        if not isinstance(operand, Slot) or kinds[operand.index] != UNDEFINED
    ]


def spread_order(
    values: list[Predicate], kinds: tuple[int, ...], moving: frozenset[str]
) -> list[tuple[list[int], list[Predicate]]]:
    """The values of the longest list in the order of their entries, in groups made at once.

    A group has the values of one kind, and their slots; or one value and no slots, if it is
    computed, or if its attribute is among the ``moving`` ones: then it becomes a program.
    """
    alone: list[tuple[list[int], list[Predicate]]] = []
    of_kind: dict[int, tuple[list[int], list[Predicate]]] = {}
    for each in values:
        (operand,) = each.operands
        if isinstance(operand, Slot) and each.attribute not in moving:
            slots, group = of_kind.setdefault(kinds[operand.index], ([], []))
            slots.append(operand.index)
            group.append(each)
        else:
            alone.append(([], [each]))
    return [*alone, *of_kind.values()]


def entry_predicates(
    shape: Shape, kinds: tuple[int, ...]
) -> Iterator[tuple[tuple[Predicate, ...], list[Predicate]]]:
    """The entries of a row of a shape, by ordinal: the conjunction of each, and its predicates."""
    room = Room.of(shape)
    for conjunction in shape.disjuncts:
        lists, others = expanded(conjunction, kinds, room)
        moving = moving_attributes(conjunction)
        for choice in product(*lists[1:]):
            chosen = [*others, *choice]
            if not lists:
                yield conjunction, chosen
                continue
            for _, group in spread_order(lists[0], kinds, moving):
                for value in group:
                    yield conjunction, [*chosen, value]
