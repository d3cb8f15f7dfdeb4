"""From shapes and rows to constraints on channels, for many rows of one shape at once.

Each predicate becomes a constraint `low <= x <= high` on a channel (see channels.py), or the
outside of one (bounds.py), or one whose bound is a program (operands.py), or one on what is judged
once for an event (judgements.py). What bounds of floats cannot express exactly, the order of
strings and numbers of more than 53 bits, has order labels (orders.py). The few predicates that are
left, as timestamps that change with `t`, become a wider constraint that surely holds whenever the
predicate does, and the entry is flagged to be verified by the meaning of the language. So an entry
may be found too often, but never too rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import product

import numpy as np

from tidegate.language.expressions import (
    Constant,
    Environment,
    Expression,
    Slot,
    as_float,
    evaluate,
    leaves,
    rebuild,
)
from tidegate.language.shapes import Shape
from tidegate.language.syntax import STRING_OPERATORS, Operator, Predicate
from tidegate.language.values import Kind, to_us
from tidegate.matching.arrays import F64, I64, Bools
from tidegate.matching.rows.entries.blocks import Block
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
from tidegate.matching.rows.entries.expansion import (
    Room,
    expanded,
    spread_order,
    values_of,
)
from tidegate.matching.rows.entries.judgements import (
    AHEAD,
    BACK,
    COMPARED,
    DELAY,
    SHIFT_MAX_US,
    Judgement,
    Shifts,
    is_common,
    kinds_of,
    names_now,
    shifts_of,
)
from tidegate.matching.rows.entries.operands import (
    COMPARISONS,
    is_program,
    moving_attributes,
    program_slots,
    write_program,
)
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, STRING, TIME, UNDEFINED
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.kernels.motion import MovingConstraint
from tidegate.matching.rows.store.cells import Cells, StringPool, decode

COMPARISONS_MAX = 1024
"""Comparisons of a filter that become constraints, as many for each disjunct; the others are
verified. Only filters made to be large have so many, and each takes some time to compile."""

_AT_ONCE = 32
"""Values of a `not in` list that are compiled in the time of a comparison."""


class Compiler:
    """Compiles rows of one shape and with the same kinds of cells to blocks of entries."""

    def __init__(self, channels: Channels, pool: StringPool) -> None:
        self._channels = channels
        self._pool = pool

    def blocks(
        self, shape: Shape, kinds: tuple[int, ...], cells: Cells, *, lazy: bool = True
    ) -> list[Block]:
        """A block of entries for each disjunct, and for each choice from its `in` lists.

        ``lazy`` says that `now()` is the time of the event.
        """
        blocks: list[Block] = []
        room = Room.of(shape)
        for conjunction in shape.disjuncts:
            lists, others = expanded(conjunction, kinds, room)
            comparisons_max = COMPARISONS_MAX // len(shape.disjuncts)
            common = self._block(conjunction, others, kinds, cells, comparisons_max, lazy=lazy)
            for choice in product(*lists[1:]):
                block = common.copy()
                for predicate in choice:
                    self._constrain(block, predicate, kinds, cells)
                blocks += self._spread(block, lists[0], kinds, cells) if lists else [block]
        ordinal = 1
        for block in blocks:
            block.shared = len(blocks) > 1 or block.owner is not None
            block.ordinal = ordinal
            ordinal += block.times
        return blocks

    def _spread(
        self, block: Block, values: list[Predicate], kinds: tuple[int, ...], cells: Cells
    ) -> list[Block]:
        """Blocks with an entry for each row of a block and each of some equalities.

        All values of one kind at once: lists are long.
        """
        spread: list[Block] = []
        for slots, group in spread_order(values, kinds, block.moving_attributes):
            if not slots:
                spread.append(block.copy())
                self._constrain(spread[-1], group[0], kinds, cells)
                continue
            spread.append(block.repeated(len(slots)))
            column, attribute = cells[:, slots].ravel(), group[0].attribute
            self._compare_cell(spread[-1], attribute, Operator.EQUAL, kinds[slots[0]], column)
        return spread

    def _block(
        self,
        conjunction: tuple[Predicate, ...],
        predicates: list[Predicate],
        kinds: tuple[int, ...],
        cells: Cells,
        comparisons_max: int,
        *,
        lazy: bool,
    ) -> Block:
        """A block with some of the predicates of a conjunction as constraints.

        Equalities first, if there are too many predicates: they let the fewest events pass.
        """
        length = len(cells)
        nothing = np.zeros(length, np.bool_)
        block = Block(length, never=nothing, verify=nothing, anew=nothing)
        block.moving_attributes, block.lazy = moving_attributes(conjunction), lazy
        if len(predicates) > comparisons_max:
            predicates = sorted(predicates, key=lambda each: each.operator is not Operator.EQUAL)
        for predicate in predicates:
            comparisons_max -= 1 + values_of(predicate) // _AT_ONCE
            if comparisons_max >= 0:
                self._constrain(block, predicate, kinds, cells)
            else:
                block.verify = np.ones(length, np.bool_)
        return block

    def _constrain(
        self, block: Block, predicate: Predicate, kinds: tuple[int, ...], cells: Cells
    ) -> None:
        attribute, operator, operands = predicate.attribute, predicate.operator, predicate.operands
        if operator is Operator.PRESENT:
            self._anything(block, attribute, PRESENT)
        elif operator is Operator.NOT_IN:
            if not self._exclude(block, predicate, kinds, cells):
                for operand in operands:
                    self._compare(block, attribute, Operator.NOT_EQUAL, operand, kinds, cells)
        elif operator is Operator.IN:  # not expanded: too long, or with computed values
            self._anything(block, attribute, PRESENT)
            block.verify = np.ones(block.length, np.bool_)
        else:
            self._compare(block, attribute, operator, operands[0], kinds, cells)

    def _exclude(
        self, block: Block, predicate: Predicate, kinds: tuple[int, ...], cells: Cells
    ) -> bool:
        """Add the constraints of a `not in` list of plain values at once; False if it has others.

        Plain values are of one kind and below EXACT_MAX, so that each excludes just itself.
        """
        slots = [operand.index for operand in predicate.operands if isinstance(operand, Slot)]
        found = {kinds[slot] for slot in slots}
        if len(slots) < len(predicate.operands) or len(found) > 1 or UNDEFINED in found:
            return False
        (kind,) = found
        values = as_floats(kind, cells[:, slots])
        if predicate.attribute in block.moving_attributes or not (np.abs(values) < EXACT_MAX).all():
            return False
        whole = CHANNEL_KIND[kind] != NUMBER
        low, high, _ = bounds(Operator.NOT_EQUAL, values.ravel(), whole=whole)
        channel = self._channels.channel(predicate.attribute, CHANNEL_KIND[kind])
        block.channels += [channel] * len(slots)
        block.low += list(low.reshape(values.shape).T)
        block.high += list(high.reshape(values.shape).T)
        return True

    def _anything(self, block: Block, attribute: str, kind: int) -> None:
        """Add a constraint that any value of a kind satisfies."""
        channel = self._channels.channel(attribute, kind)
        infinite = np.full(block.length, np.inf)
        block.constrain(channel, -infinite, infinite)

    def _compare(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        operand: Expression,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> None:
        moves = attribute in block.moving_attributes
        variables = self._channels.variable_kinds
        if operator not in STRING_OPERATORS and is_program(operand, kinds, variables, moves=moves):
            self._move(block, attribute, operator, operand, kinds, cells)
            return
        if isinstance(operand, Slot):
            self._compare_cell(
                block, attribute, operator, kinds[operand.index], cells[:, operand.index]
            )
            return
        found = kinds_of(operand, kinds, self._channels.variable_kinds)
        if is_common(operand):
            decided = self._judge(block, attribute, operator, operand)
        elif not found or operator in STRING_OPERATORS:
            block.never = np.ones(block.length, np.bool_)
            self._anything(block, attribute, PRESENT)
            return
        elif all(isinstance(leaf, Slot) for leaf in leaves(operand)):
            (kind,) = found
            self._compare_computed(block, attribute, operator, operand, kind, kinds, cells)
            return
        else:
            shifts = shifts_of(operand)
            decided = shifts is not None and self._delay(
                block, attribute, operator, shifts, kinds, cells
            )
        if not decided:
            # its kind is known only when it is evaluated, or its program needs too deep a stack,
            # or it computes with timestamps and `t`
            self._anything(block, attribute, PRESENT)
            block.verify = np.ones(block.length, np.bool_)

    def _judge(self, block: Block, attribute: str, operator: Operator, operand: Expression) -> bool:
        """Add a constraint on a judgement; False if it cannot be one."""
        if names_now(operand) and not block.lazy:
            return False
        form = operator.value if operator in STRING_OPERATORS else COMPARED
        channel = self._channels.judgement(Judgement(attribute, form, operand))
        if channel is None:
            return False
        if form == COMPARED:
            low, high, _ = bounds(operator, np.zeros(block.length), whole=True)
        else:
            low = high = np.ones(block.length)
        block.constrain(channel, low, high)
        return True

    def _delay(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        shifts: Shifts,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> bool:
        """Add constraints on how far a timestamp is from another; False if it cannot be done."""
        variables = self._channels.variable_kinds
        if (names_now(shifts.base) and not block.lazy) or (
            kinds_of(shifts.base, kinds, variables) != {Kind.TIME}
            or any(kinds_of(each, kinds, variables) != {Kind.NUMBER} for _, each in shifts.steps)
        ):
            return False
        judged = [Judgement(attribute, form, shifts.base) for form in (DELAY, AHEAD, BACK)]
        channels = [self._channels.judgement(each) for each in judged]
        delay, ahead, back = channels
        if delay is None or ahead is None or back is None:
            return False
        # the sums after each step: all of them have to be timestamps
        sums = np.zeros((len(shifts.steps) + 1, block.length))
        for index, (sign, operand) in enumerate(shifts.steps):
            values = self._evaluated(operand, kinds, cells)
            with np.errstate(over="ignore", invalid="ignore"):
                shift = np.rint((-values if sign == "-" else values) * 1e6)
                sums[index + 1] = sums[index] + shift
        undefined = ~np.isfinite(sums).all(axis=0)
        block.never = block.never | undefined
        sums[:, undefined] = 0.0
        far = (np.abs(sums) >= SHIFT_MAX_US).any(axis=0)
        sums[:, far] = 0.0
        low, high, _ = bounds(operator, sums[-1], whole=True)
        infinite = np.full(block.length, np.inf)
        block.constrain(delay, np.where(far, -infinite, low), np.where(far, infinite, high))
        block.constrain(ahead, sums.max(axis=0), infinite)
        block.constrain(back, -sums.min(axis=0), infinite)
        block.verify = block.verify | far
        return True

    def _compare_computed(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        operand: Expression,
        kind: Kind,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> None:
        """Add the constraint of a comparison with an expression of constants."""
        values = self._evaluated(operand, kinds, cells)
        undefined = np.isnan(values)
        block.never = block.never | undefined
        values = np.where(undefined, 0.0, values)  # any number: the row never matches
        # A long number that is in no cell can have no order label.
        large = np.abs(values) >= EXACT_MAX
        channel_kind = NUMBER if kind is Kind.NUMBER else TIME
        self._bound(block, attribute, channel_kind, operator, values, large)
        block.verify = block.verify | large

    def _evaluated(self, operand: Expression, kinds: tuple[int, ...], cells: Cells) -> F64:
        """The values of an expression of constants, row by row; NaN where it is undefined.

        Those of timestamps are microseconds.
        """
        result = np.empty(len(cells))
        for index, row in enumerate(cells):
            values = [decode(kind, cell, self._pool) for kind, cell in zip(kinds, row, strict=True)]

            def known(leaf: Expression, values: list[object] = values) -> Expression:  # type: ignore[assignment]
                if isinstance(leaf, Slot):
                    return Constant(values[leaf.index])  # type: ignore[arg-type]
                return leaf

            value = evaluate(rebuild(operand, known), Environment())
            number = float(to_us(value)) if isinstance(value, datetime) else as_float(value)
            result[index] = np.nan if number is None else number
        return result

    def _compare_cell(
        self, block: Block, attribute: str, operator: Operator, kind: int, cells: I64
    ) -> None:
        if kind == UNDEFINED or (operator in STRING_OPERATORS and kind != STRING):
            block.never = np.ones(block.length, np.bool_)
            self._anything(block, attribute, PRESENT)
            return
        if operator in STRING_OPERATORS:
            channel = self._channels.channel(attribute, PATTERNS)
            low, high, never = pattern_bounds(
                attribute, operator, cells, self._channels, self._pool
            )
            block.never = block.never | never
            block.constrain(channel, low, high)
            return
        if kind == STRING and operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
            # the numbers of strings do not have the order of the strings
            self._order(block, attribute, operator, kind, cells, np.ones(block.length, np.bool_))
            return
        values = as_floats(kind, cells)
        large = np.isfinite(values) & (np.abs(values) >= EXACT_MAX)
        self._bound(block, attribute, CHANNEL_KIND[kind], operator, values, large)
        if large.any():
            block.anew = block.anew | large
            self._order(block, attribute, operator, kind, cells, large)

    def _order(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        kind: int,
        cells: I64,
        chosen: Bools,
    ) -> None:
        """Add constraints on order labels, for chosen rows; the others let all values pass."""
        infinite = np.full(block.length, np.inf)
        low, high = -infinite, infinite
        found = order_bounds(attribute, operator, kind, cells[chosen], self._channels, self._pool)
        low[chosen], high[chosen] = found.low, found.high
        block.constrain(found.channel, low, high)
        crowded = np.zeros(block.length, np.bool_)
        crowded[chosen] = found.crowded
        block.verify = block.verify | crowded

    def _bound(
        self,
        block: Block,
        attribute: str,
        kind: int,
        operator: Operator,
        values: F64,
        large: Bools,
    ) -> None:
        """Add the constraint of a comparison, a wider one for ``large`` values."""
        channel = self._channels.channel(attribute, kind)
        low, high, never = bounds(operator, values, whole=kind != NUMBER)
        if large.any():
            wide_low, wide_high = widened(operator, values)
            low, high = np.where(large, wide_low, low), np.where(large, wide_high, high)
        block.never = block.never | never
        block.constrain(channel, low, high)

    def _move(
        self,
        block: Block,
        attribute: str,
        operator: Operator,
        operand: Expression,
        kinds: tuple[int, ...],
        cells: Cells,
    ) -> None:
        """Add a constraint whose bound is a program.

        The still constraint beside it lets all numbers pass, until the envelope is written there.
        """
        channel = self._channels.channel(attribute, NUMBER)
        if channel not in block.channels:
            self._anything(block, attribute, NUMBER)
        program = write_program(operand, self._channels)
        columns = [_as_numbers(slot, kinds, cells) for slot in program_slots(operand)]
        block.moving.append(MovingConstraint(channel, COMPARISONS[operator], program, columns))


def _as_numbers(slot: int | None, kinds: Sequence[int], cells: Cells) -> F64:
    """The column of a program's constant; 1 for the slope that `a + t` does not write."""
    if slot is None:
        return np.ones(len(cells))
    column = cells[:, slot]
    return column.view(np.float64) if kinds[slot] == FLOAT else column.astype(np.float64)
