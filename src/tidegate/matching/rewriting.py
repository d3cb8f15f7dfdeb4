"""Changing an entry where it stands, when a cell of its row gets another value of the same kind.

Which bounds or constants follow from a cell depends on the shape and the kinds of the cells only;
it is worked out once for each and then applied in a few steps, whatever the size of the index.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tidegate.language.expressions import Elapsed, Expression, Now, Slot, Variable, leaves
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Operator, Predicate
from tidegate.matching.constraints import CHANNEL_KIND, COMPARISONS, NUMBER, Channels
from tidegate.matching.index import Index
from tidegate.matching.kernels import EXACT_MAX
from tidegate.matching.rows import FLOAT, INTEGER, STRING, Cells


class Rewrite(Protocol):
    """One thing to write when a cell has changed."""

    def apply(self, index: Index, number: int, kinds: bytes, cells: Cells) -> bool:
        """Write it; False if it cannot be done in place."""
        ...


@dataclass(frozen=True, slots=True)
class BoundsRewrite:
    """The bounds of a channel follow from one or two comparisons with cells."""

    channel: int
    whole: bool
    comparisons: tuple[tuple[Operator, int], ...]

    def apply(self, index: Index, number: int, kinds: bytes, cells: Cells) -> bool:
        low, high = -math.inf, math.inf
        for operator, slot in self.comparisons:
            value = _number(kinds, cells, slot)
            if not -EXACT_MAX < value < EXACT_MAX:
                return False
            if operator is Operator.LESS:
                high = min(high, value - 1 if self.whole else math.nextafter(value, -math.inf))
            elif operator is Operator.LESS_EQUAL:
                high = min(high, value)
            elif operator is Operator.GREATER:
                low = max(low, value + 1 if self.whole else math.nextafter(value, math.inf))
            elif operator is Operator.GREATER_EQUAL:
                low = max(low, value)
            else:
                low, high = max(low, value), min(high, value)
        return index.rewrite(number, self.channel, low, high)


@dataclass(frozen=True, slots=True)
class ConstantRewrite:
    """A constant of a function follows from a cell."""

    moving: int
    constant: int
    slot: int

    def apply(self, index: Index, number: int, kinds: bytes, cells: Cells) -> bool:
        value = _number(kinds, cells, self.slot)
        return index.rewrite_constant(number, self.moving, self.constant, value)


def _number(kinds: bytes, cells: Cells, slot: int) -> float:
    if kinds[slot] == FLOAT:
        return float(cells.view(np.float64)[slot])
    return float(cells[slot])


def plan_rewrites(
    shape: Shape, kinds: Sequence[int], slot: int, channels: Channels
) -> list[Rewrite]:
    """What to write when a cell of rows of this shape and kinds changes; none if not in place."""
    if len(shape.disjuncts) != 1:
        return []
    conjunction = shape.disjuncts[0]
    rewrites: list[Rewrite] = []
    moving = 0
    for predicate in conjunction:
        mentioned = [leaf for operand in predicate.operands for leaf in leaves(operand)]
        if predicate.operator is Operator.IN:
            return []
        if _moves(predicate):
            slots = [leaf.index for leaf in mentioned if isinstance(leaf, Slot)]
            found = [place for place, each in enumerate(slots) if each == slot]
            if any(kinds[each] not in (INTEGER, FLOAT) for each in slots) and found:
                return []
            rewrites += [ConstantRewrite(moving, place, slot) for place in found]
            moving += 1
        elif Slot(slot) in mentioned:
            rewrite = _bounds_rewrite(conjunction, predicate, kinds, channels)
            if rewrite is None:
                return []
            rewrites.append(rewrite)
    return rewrites


def _moves(predicate: Predicate) -> bool:
    """Whether a predicate is compiled to a program."""
    return any(_is_function(operand) for operand in predicate.operands)


def _is_function(operand: Expression) -> bool:
    found = list(leaves(operand))
    return (
        not isinstance(operand, (Variable, Now))
        and any(isinstance(leaf, (Elapsed, Variable)) for leaf in found)
        and not any(isinstance(leaf, Now) for leaf in found)
    )


def _bounds_rewrite(
    conjunction: tuple[Predicate, ...],
    predicate: Predicate,
    kinds: Sequence[int],
    channels: Channels,
) -> BoundsRewrite | None:
    """The bounds of a predicate's channel, from all predicates on its attribute."""
    comparisons: list[tuple[Operator, int]] = []
    kind = -1
    for each in conjunction:
        if each.attribute != predicate.attribute or _moves(each):
            continue
        operand = each.operands[0] if len(each.operands) == 1 else None
        if each.operator not in COMPARISONS or not isinstance(operand, Slot):
            return None
        each_kind = CHANNEL_KIND.get(kinds[operand.index], -1)
        if each_kind in (-1, STRING) or kind not in (-1, each_kind):
            return None
        kind = each_kind
        comparisons.append((each.operator, operand.index))
    if any(operator is Operator.NOT_EQUAL for operator, _ in comparisons):
        return None
    channel = channels.channel(predicate.attribute, kind)
    return BoundsRewrite(channel, kind != NUMBER, tuple(comparisons))
