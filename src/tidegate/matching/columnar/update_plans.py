"""Changing an entry where it stands, when cells of its row get other values of the same kinds.

Which bounds and which words of a motion follow from a cell depends on the shape, and on whether the
cells are numbers, timestamps or booleans. It is worked out once and written down as a plan, a list
of integers, that the kernel in writing.py carries out for any row, whatever the size of the index.

A plan is: how many cells a row has, and of what kind each must be for it to fit. Then: how many
channels get new bounds; for each its number, whether its values are whole, and how many comparisons
there are with it; for each of these the operator, how many cells it takes and which, how long its
program is, and the program. Then: how many words of the motion get new values; for each which word,
and which cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tidegate.language.expressions import Expression, Slot, leaves
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Operator, Predicate
from tidegate.matching.arrays import I32
from tidegate.matching.columnar.entries.channels import CHANNEL_KIND, NUMBER, Channels
from tidegate.matching.columnar.entries.operands import (
    COMPARISONS,
    code_of,
    is_program,
    moving_attributes,
    program_slots,
)
from tidegate.matching.columnar.index import Index
from tidegate.matching.columnar.kernels.cell_kinds import BOOLEAN, FLOAT, NUMBERS, TIME
from tidegate.matching.columnar.kernels.programs import HEAD_WORDS, MOTION_WORDS, STACK_MAX
from tidegate.matching.columnar.kernels.rewrite import DONE, OTHER_KINDS
from tidegate.matching.columnar.store.ids import Numbers
from tidegate.matching.columnar.store.table import SubscriptionTable

NO_PLAN: I32 = np.zeros(0, np.int32)


class Rewriter:
    """Changes the entries of a table's subscriptions in place, by plans that it keeps."""

    def __init__(self, table: SubscriptionTable, channels: Channels) -> None:
        self._table = table
        self._channels = channels
        self._plans: dict[tuple[int, tuple[int, ...]], I32] = {}

    def rewrite(self, index: Index, number: int, slots: tuple[int, ...]) -> bool:
        """Write what follows from changed cells of a row; False if that cannot be in place."""
        table = self._table
        shape, row = table.place(number)
        plan = self._plans.get((shape, slots), NO_PLAN)
        done = OTHER_KINDS
        if len(plan):
            done = index.rewrite(number, plan, table.rows.kinds, table.rows.cells, row)
        if done == OTHER_KINDS:
            kinds = table.rows.kinds[row : row + table.width(shape)].tolist()
            plan = plan_rewrite(table.shapes[shape], kinds, slots, self._channels)
            self._plans[shape, slots] = plan
            if len(plan):
                done = index.rewrite(number, plan, table.rows.kinds, table.rows.cells, row)
        return done == DONE

    def rewrite_many(
        self, index: Index, numbers: Numbers, slots: Sequence[tuple[int, ...]]
    ) -> npt.NDArray[np.bool_]:
        """As ``rewrite`` for many subscriptions, with one call of the kernel for most of them."""
        table = self._table
        keys = list(zip(table.shapes_of(numbers).tolist(), slots, strict=True))
        places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        plans = [self._plans.get(key, NO_PLAN) for key in places]
        which = np.array([places[key] for key in keys], np.int64)
        rows = table.places(numbers)
        outcomes = index.rewrite_many(
            numbers, plans, which, table.rows.kinds, table.rows.cells, rows
        )
        done: npt.NDArray[np.bool_] = outcomes == DONE
        for place in np.flatnonzero(~done).tolist():
            done[place] = self.rewrite(index, int(numbers[place]), slots[place])
        return done


def plan_rewrite(
    shape: Shape, kinds: Sequence[int], slots: Sequence[int], channels: Channels
) -> I32:
    """What to write when cells of rows of this shape and kinds change; none if not in place."""
    if len(shape.disjuncts) != 1:
        return NO_PLAN
    conjunction = shape.disjuncts[0]
    if any(predicate.operator in (Operator.IN, Operator.NOT_IN) for predicate in conjunction):
        return NO_PLAN
    words, rest = _words(conjunction, kinds, slots)
    bounds: list[int] = []
    attributes = dict.fromkeys(each.attribute for each in rest if _mentions(each, slots))
    for attribute in attributes:
        numbers = _bounds([each for each in rest if each.attribute == attribute], kinds, channels)
        if numbers is None:
            return NO_PLAN
        bounds += numbers
    changes = [len(attributes), *bounds, len(words), *(each for pair in words for each in pair)]
    fitting = [FLOAT if kind in NUMBERS else kind for kind in kinds]
    return np.array([len(kinds), *fitting, *changes], np.int32)


def _mentions(predicate: Predicate, slots: Sequence[int]) -> bool:
    return any(slot in slots for operand in predicate.operands for slot in _slots(operand))


def _slots(operand: Expression) -> Iterator[int]:
    return (leaf.index for leaf in leaves(operand) if isinstance(leaf, Slot))


def _words(
    conjunction: tuple[Predicate, ...], kinds: Sequence[int], slots: Sequence[int]
) -> tuple[list[tuple[int, int]], list[Predicate]]:
    """The words of the motion that follow from the slots, and the predicates that do not move."""
    moving = moving_attributes(conjunction)
    words: list[tuple[int, int]] = []
    rest: list[Predicate] = []
    word = MOTION_WORDS
    for predicate in conjunction:
        operand = predicate.operands[0] if predicate.operands else None
        moves = predicate.attribute in moving
        if operand is None or not is_program(operand, kinds, moves=moves):
            rest.append(predicate)
            continue
        word += HEAD_WORDS
        for slot in program_slots(operand):
            if slot in slots and slot is not None:
                words.append((word, slot))
            word += 1
    return words, rest


def _bounds(
    predicates: list[Predicate], kinds: Sequence[int], channels: Channels
) -> list[int] | None:
    """The part of a plan for one attribute, from all that it is compared with."""
    numbers: list[int] = []
    kind = -1
    for predicate in predicates:
        if predicate.operator not in COMPARISONS or predicate.operator is Operator.NOT_EQUAL:
            return None
        operand = predicate.operands[0]
        slots = list(_slots(operand))
        found = {CHANNEL_KIND.get(kinds[slot], -1) for slot in slots}
        code = code_of(operand)
        if code is None or len(slots) > STACK_MAX or len(found) != 1 or kind not in (-1, *found):
            return None
        (kind,) = found
        if kind not in (NUMBER, TIME, BOOLEAN) or (kind != NUMBER and operand != Slot(slots[0])):
            return None
        numbers += [COMPARISONS[predicate.operator], len(slots), *slots, len(code), *code]
    channel = channels.channel(predicates[0].attribute, kind)
    return [channel, kind != NUMBER, len(predicates), *numbers]
