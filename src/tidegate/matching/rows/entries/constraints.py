"""From shapes and rows to constraints on channels, for many rows of one shape at once.

Each predicate becomes a constraint `low <= x <= high` on a channel (see channels.py), or the
outside of one (bounds.py), or one whose bound is a program (operands.py). A predicate that bounds
of floats cannot express exactly (the order of strings, integers of more than 53 bits, timestamps
that are computed) becomes a wider constraint that surely holds whenever the predicate does, and
the entry is flagged to be verified by the meaning of the language. So an entry may be found too
often, but never too rarely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from tidegate.language.expressions import (
    Constant,
    Elapsed,
    Environment,
    Expression,
    Now,
    Slot,
    Variable,
    as_float,
    evaluate,
    leaves,
    rebuild,
)
from tidegate.language.shapes import Shape
from tidegate.language.syntax import STRING_OPERATORS, Operator, Predicate
from tidegate.matching.arrays import F64, I32, I64, Bools
from tidegate.matching.rows.entries.bounds import as_floats, bounds, pattern_bounds, widened
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
    slot_of,
    spread_order,
    values_of,
)
from tidegate.matching.rows.entries.operands import (
    COMPARISONS,
    is_program,
    moving_attributes,
    program_slots,
    write_program,
)
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, FLOAT, STRING, TIME, UNDEFINED
from tidegate.matching.rows.kernels.entry_lists import Entries
from tidegate.matching.rows.kernels.flags import (
    DEAD,
    EXACT_MAX,
    MOVING,
    ORDINAL_SHIFT,
    SET,
    SHARED,
    VERIFY,
)
from tidegate.matching.rows.kernels.motion import MovingConstraint, write_motions
from tidegate.matching.rows.store.cells import Cells, StringPool, decode

COMPARISONS_MAX = 1024
"""Comparisons of a filter that become constraints, as many for each disjunct; the others are
verified. Only filters made to be large have so many, and each takes some time to compile."""

_AT_ONCE = 32
"""Values of a `not in` list that are compiled in the time of a comparison."""


@dataclass(slots=True)
class Block:
    """Entries of many rows, with the same channels but different bounds; a column for each channel.

    ``never`` are the rows that match nothing, ``verify`` those that need to be verified.
    """

    length: int
    channels: list[int] = field(default_factory=list)
    low: list[F64] = field(default_factory=list)
    high: list[F64] = field(default_factory=list)
    moving: list[MovingConstraint] = field(default_factory=list)
    moving_attributes: frozenset[str] = frozenset()
    never: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    verify: Bools = field(default_factory=lambda: np.zeros(0, np.bool_))
    shared: bool = False
    owner: I64 | None = None
    """The row that each entry is for, where a row has several; None if each has one."""
    times: int = 1
    """How many entries each row has."""
    ordinal: int = 0
    """The ordinal of the first of these, if the block is shared (flags.py)."""

    def copy(self) -> Block:
        """Another block with the same constraints, to which others can be added."""
        return replace(
            self,
            channels=self.channels[:],
            low=self.low[:],
            high=self.high[:],
            moving=self.moving[:],
        )

    def repeated(self, times: int) -> Block:
        """A block with so many entries for each row, with the same constraints."""
        owner = np.repeat(np.arange(self.length), times)
        return replace(
            self,
            length=len(owner),
            channels=self.channels[:],
            low=[each[owner] for each in self.low],
            high=[each[owner] for each in self.high],
            moving=[
                replace(each, constants=[column[owner] for column in each.constants])
                for each in self.moving
            ],
            never=self.never[owner],
            verify=self.verify[owner],
            owner=owner,
            times=times,
        )

    def constrain(self, channel: int, low: F64, high: F64) -> None:
        """Add a constraint; two insides of bounds on one channel are intersected."""
        inside = not channel & SET and bool(np.all(low <= high))
        for index, other in enumerate(self.channels if inside else ()):
            if other == channel and bool(np.all(self.low[index] <= self.high[index])):
                self.low[index] = np.maximum(self.low[index], low)
                self.high[index] = np.minimum(self.high[index], high)
                empty = self.low[index] > self.high[index]
                self.never = self.never | empty
                # an empty intersection would be taken for the outside of its bounds
                self.high[index] = np.where(empty, self.low[index], self.high[index])
                return
        self.channels.append(channel)
        self.low.append(low)
        self.high.append(high)


class Compiler:
    """Compiles rows of one shape and with the same kinds of cells to blocks of entries."""

    def __init__(self, channels: Channels, pool: StringPool) -> None:
        self._channels = channels
        self._pool = pool

    def blocks(self, shape: Shape, kinds: tuple[int, ...], cells: Cells) -> list[Block]:
        """A block of entries for each disjunct, and for each choice from its `in` lists."""
        blocks: list[Block] = []
        room = Room.of(shape)
        for conjunction in shape.disjuncts:
            lists, others = expanded(conjunction, kinds, room)
            comparisons_max = COMPARISONS_MAX // len(shape.disjuncts)
            common = self._block(conjunction, others, kinds, cells, comparisons_max)
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
        for group in spread_order(values, kinds, block.moving_attributes):
            attribute, slots = group[0].attribute, [slot_of(each) for each in group]
            if attribute in block.moving_attributes:  # then values become programs
                spread.append(block.copy())
                self._constrain(spread[-1], group[0], kinds, cells)
                continue
            spread.append(block.repeated(len(slots)))
            column = cells[:, slots].ravel()
            self._compare_cell(spread[-1], attribute, Operator.EQUAL, kinds[slots[0]], column)
        return spread

    def _block(
        self,
        conjunction: tuple[Predicate, ...],
        predicates: list[Predicate],
        kinds: tuple[int, ...],
        cells: Cells,
        comparisons_max: int,
    ) -> Block:
        """A block with some of the predicates of a conjunction as constraints.

        Equalities first, if there are too many predicates: they let the fewest events pass.
        """
        length = len(cells)
        nothing = np.zeros(length, np.bool_)
        block = Block(length, never=nothing, verify=nothing)
        block.moving_attributes = moving_attributes(conjunction)
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
        if operator not in STRING_OPERATORS and is_program(operand, kinds, moves=moves):
            self._move(block, attribute, operator, operand, kinds, cells)
            return
        if isinstance(operand, Slot):
            self._compare_cell(
                block, attribute, operator, kinds[operand.index], cells[:, operand.index]
            )
            return
        found = list(leaves(operand))
        slots = [kinds[leaf.index] for leaf in found if isinstance(leaf, Slot)]
        if any(kind in (UNDEFINED, BOOLEAN, STRING) for kind in slots):
            block.never = np.ones(block.length, np.bool_)
            self._anything(block, attribute, PRESENT)
        elif (
            operator in STRING_OPERATORS
            or TIME in slots
            or any(isinstance(leaf, (Elapsed, Variable, Now)) for leaf in found)
        ):
            # its kind is known only when it is evaluated, or its program needs too deep a stack
            self._anything(block, attribute, PRESENT)
            block.verify = np.ones(block.length, np.bool_)
        else:
            values = self._evaluated(operand, kinds, cells)
            undefined = np.isnan(values)
            block.never = block.never | undefined
            values = np.where(undefined, 0.0, values)  # any number: the row never matches
            self._bound(block, attribute, NUMBER, operator, values, np.abs(values) >= EXACT_MAX)

    def _evaluated(self, operand: Expression, kinds: tuple[int, ...], cells: Cells) -> F64:
        """The values of an expression of constants, row by row; NaN where it is undefined."""
        result = np.empty(len(cells))
        for index, row in enumerate(cells):
            values = [decode(kind, cell, self._pool) for kind, cell in zip(kinds, row, strict=True)]

            def known(leaf: Expression, values: list[object] = values) -> Expression:  # type: ignore[assignment]
                if isinstance(leaf, Slot):
                    return Constant(values[leaf.index])  # type: ignore[arg-type]
                return leaf

            number = as_float(evaluate(rebuild(operand, known), Environment()))
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
            self._anything(block, attribute, STRING)
            block.verify = np.ones(block.length, np.bool_)
            return
        values = as_floats(kind, cells)
        large = np.isfinite(values) & (np.abs(values) >= EXACT_MAX)
        self._bound(block, attribute, CHANNEL_KIND[kind], operator, values, large)

    def _bound(
        self,
        block: Block,
        attribute: str,
        kind: int,
        operator: Operator,
        values: F64,
        large: Bools,
    ) -> None:
        """Add the constraint of a comparison; ``large`` values are widened and verified."""
        channel = self._channels.channel(attribute, kind)
        low, high, never = bounds(operator, values, whole=kind != NUMBER)
        if large.any():
            block.verify = block.verify | large
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


def entries_of(block: Block, subscriptions: I32, origin: I64, pin: I64) -> Entries:
    """The entries of a block, with constraints in ascending order of their channels.

    The other arrays are by row: ``origin`` is from when on `t` counts, ``pin`` for which time it is
    evaluated (see programs.py).
    """
    if block.owner is not None:
        subscriptions, origin = subscriptions[block.owner], origin[block.owner]
        pin = pin[block.owner]
    order = sorted(range(len(block.channels)), key=lambda index: block.channels[index])
    width = len(order)
    flags = np.where(block.never, DEAD, 0).astype(np.int32)
    flags |= np.where(block.verify, VERIFY, 0).astype(np.int32)
    if block.moving:
        flags |= MOVING
    if block.shared:
        ordinals = block.ordinal + np.arange(block.length, dtype=np.int32) % block.times
        flags |= SHARED | ordinals << ORDINAL_SHIFT
    motion = write_motions(block.moving, origin, pin)
    return Entries(
        subscription=subscriptions.astype(np.int32),
        flags=flags,
        first=(np.arange(block.length + 1) * width).astype(np.int32),
        channel=np.tile(np.array([block.channels[i] for i in order], np.int32), block.length),
        low=_interleaved([block.low[i] for i in order]),
        high=_interleaved([block.high[i] for i in order]),
        motion_first=(np.arange(block.length + 1) * motion.shape[1]).astype(np.int32),
        motion=motion.ravel(),
    )


def _as_numbers(slot: int | None, kinds: Sequence[int], cells: Cells) -> F64:
    """The column of a program's constant; 1 for the slope that `a + t` does not write."""
    if slot is None:
        return np.ones(len(cells))
    column = cells[:, slot]
    return column.view(np.float64) if kinds[slot] == FLOAT else column.astype(np.float64)


def _interleaved(columns: list[F64]) -> F64:
    """Columns as one array, row by row."""
    return np.column_stack(columns).ravel() if columns else np.zeros(0)
