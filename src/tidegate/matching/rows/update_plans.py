"""Planning updates in place: what to write into an entry when cells of its row get other values.

Which bounds and which words of a motion follow from a cell depends on the shape, and on whether the
cells are numbers, timestamps or booleans, but not on their values. So it is worked out once for a
shape, kinds of cells and changed slots, and encoded as a plan (kernels/rewrite_plan.py), which a
kernel carries out for any row, whatever the size of the index.

There is no plan, and the entry is replaced by a new one, if

- the shape has several disjuncts or an `in` list, because then it has several entries, or so many
  predicates that some are only verified;
- a changed attribute has `!=` or a pattern, whose bounds are the outside of others or numbers of
  patterns;
- its cells are of several kinds, or strings that ask for more than equality: bounds are numbers of
  strings, which do not have their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tidegate.language.expressions import Expression, Slot, leaves
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Operator, Predicate
from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.rows.entries.channels import CHANNEL_KIND, NUMBER, Channels
from tidegate.matching.rows.entries.constraints import COMPARISONS_MAX
from tidegate.matching.rows.entries.judgements import is_common
from tidegate.matching.rows.entries.operands import (
    COMPARISONS,
    code_of,
    is_program,
    moving_attributes,
    program_slots,
)
from tidegate.matching.rows.kernels.cell_kinds import BOOLEAN, FLOAT, NUMBERS, STRING, TIME
from tidegate.matching.rows.kernels.motion import MOTION_WORDS, R_CONSTANTS
from tidegate.matching.rows.kernels.plan_values import CellArrays, PlannedRows
from tidegate.matching.rows.kernels.programs import STACK_MAX
from tidegate.matching.rows.kernels.rewrite_plan import (
    DONE,
    NO_PLAN,
    OTHER_KINDS,
    BoundChange,
    Comparison,
    WordChange,
    encode_plan,
)
from tidegate.matching.rows.store.ids import Numbers
from tidegate.matching.rows.store.table import SubscriptionTable


class RewritableIndex(Protocol):
    """An index whose entries can be changed by plans."""

    def rewrite(self, number: int, plan: I32, kinds: U8, cells: I64, row: int) -> int:
        """Change the only entry of a subscription by a plan; returns an outcome of the plan.

        ``row`` is where the cells of the subscription begin. NOT_IN_PLACE if it has no entry, or
        several.
        """
        ...

    def rewrite_many(self, numbers: I32, planned: PlannedRows, cells: CellArrays) -> U8:
        """As ``rewrite`` for many subscriptions; returns the outcome of each."""
        ...


SHAPE_PLANS_MAX = 256
"""Plans that are kept for one shape, which may have one for each set of its slots."""


class Rewriter:
    """Changes the entries of a table's subscriptions in place, by plans that it keeps.

    One plan is kept for a shape and the slots that change. A row whose cells are of other kinds
    replaces it, because the rows of a shape nearly always have cells of the same kinds.
    """

    def __init__(self, table: SubscriptionTable, channels: Channels) -> None:
        self._table = table
        self._channels = channels
        self._plans: dict[int, dict[tuple[int, ...], I32]] = {}
        """By number of a shape and slots. A shape that is forgotten takes its plans along: they
        contain channels, and another shape may get its number."""

    def rewrite(self, index: RewritableIndex, number: int, slots: tuple[int, ...]) -> bool:
        """Write the bounds that depend on changed cells; False if that is not possible in place.

        The cells have their new values already.
        """
        table = self._table
        shape, row = table.columns.shape.item(number), table.columns.row.item(number)
        plan = self._plan(shape, slots)
        outcome = OTHER_KINDS
        if len(plan):
            outcome = index.rewrite(number, plan, table.rows.kinds, table.rows.cells, row)
        if outcome == OTHER_KINDS:
            # the first update of this shape and slots, or of a row with cells of other kinds
            kinds = table.rows.kinds[row : row + table.width(shape)].tolist()
            plan = plan_rewrite(table.shapes[shape], kinds, slots, self._channels)
            plans = self._plans.setdefault(shape, {})
            if len(plans) >= SHAPE_PLANS_MAX:
                plans.clear()  # rows with many parameters, in ever new combinations
            plans[slots] = plan
            if len(plan):
                outcome = index.rewrite(number, plan, table.rows.kinds, table.rows.cells, row)
        return outcome == DONE

    def _plan(self, shape: int, slots: tuple[int, ...]) -> I32:
        plans = self._plans.get(shape)
        return NO_PLAN if plans is None else plans.get(slots, NO_PLAN)

    def forget(self, shapes: Iterable[int]) -> None:
        """Forget the plans of shapes that the table has forgotten."""
        for shape in shapes:
            self._plans.pop(shape, None)

    def rewrite_many(
        self, index: RewritableIndex, numbers: Numbers, slots: Sequence[tuple[int, ...]]
    ) -> npt.NDArray[np.bool_]:
        """As ``rewrite`` for many subscriptions, with one call of the kernel for most of them.

        Those for which there is no fitting plan yet are tried again one by one.
        """
        table = self._table
        # few plans for many subscriptions: each is handed to the kernel once
        keys = list(zip(table.columns.shape[numbers].tolist(), slots, strict=True))
        plan_numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        plans = [self._plan(*key) for key in plan_numbers]
        plan_of = np.array([plan_numbers[key] for key in keys], np.int64)
        planned = PlannedRows(
            np.concatenate([NO_PLAN, *plans]),
            np.cumsum([0, *map(len, plans)]),
            plan_of,
            table.columns.row[numbers],
        )
        cells = CellArrays(table.rows.kinds, table.rows.cells)
        outcomes = index.rewrite_many(numbers, planned, cells)
        done: npt.NDArray[np.bool_] = outcomes == DONE
        for place in np.flatnonzero(outcomes == OTHER_KINDS).tolist():
            done[place] = self.rewrite(index, int(numbers[place]), slots[place])
        return done


def plan_rewrite(
    shape: Shape, kinds: Sequence[int], slots: Sequence[int], channels: Channels
) -> I32:
    """The plan for changes of some slots, in rows of a shape and of these kinds; or NO_PLAN."""
    # each of these has several entries, of which a plan could not tell which to change
    if len(shape.disjuncts) != 1:
        return NO_PLAN
    conjunction = shape.disjuncts[0]
    if any(predicate.operator in (Operator.IN, Operator.NOT_IN) for predicate in conjunction):
        return NO_PLAN
    if len(conjunction) > COMPARISONS_MAX:
        return NO_PLAN  # not all of them are constraints
    words, static = _word_changes(conjunction, kinds, slots, channels)
    bounds: list[BoundChange] = []
    for attribute in dict.fromkeys(each.attribute for each in static if _mentions(each, slots)):
        # all comparisons of the attribute, also those that do not change: they share its bounds
        change = _bound_change([e for e in static if e.attribute == attribute], kinds, channels)
        if change is None:
            return NO_PLAN
        bounds.append(change)
    return encode_plan([FLOAT if kind in NUMBERS else kind for kind in kinds], bounds, words)


def _mentions(predicate: Predicate, slots: Sequence[int]) -> bool:
    """Whether a predicate is compared with one of these slots."""
    return any(slot in slots for operand in predicate.operands for slot in _slots(operand))


def _slots(operand: Expression) -> Iterator[int]:
    return (leaf.index for leaf in leaves(operand) if isinstance(leaf, Slot))


def _word_changes(
    conjunction: tuple[Predicate, ...],
    kinds: Sequence[int],
    slots: Sequence[int],
    channels: Channels,
) -> tuple[list[WordChange], list[Predicate]]:
    """The words of the motion that slots are written to, and the predicates that do not move.

    Judgements (entries/judgements.py) are left out: no cell has anything to do with them.

    Walks along the motion as ``write_motions`` writes it: a record for each moving predicate, in
    the order of the conjunction.
    """
    moving = moving_attributes(conjunction)
    words: list[WordChange] = []
    static: list[Predicate] = []
    word = MOTION_WORDS
    for predicate in conjunction:
        operand = predicate.operands[0] if predicate.operands else None
        moves = predicate.attribute in moving
        if operand is not None and is_common(operand):
            continue
        variables = channels.variable_kinds
        if operand is None or not is_program(operand, kinds, variables, moves=moves):
            static.append(predicate)
            continue
        word += R_CONSTANTS
        for slot in program_slots(operand):
            # None is the constant 1 of `a + t`, which belongs to no cell
            if slot in slots and slot is not None:
                words.append(WordChange(word, slot))
            word += 1
    return words, static


def _bound_change(
    predicates: list[Predicate], kinds: Sequence[int], channels: Channels
) -> BoundChange | None:
    """The new bounds of one attribute, from all that it is compared with; None if not in place."""
    comparisons: list[Comparison] = []
    kind = -1  # that of the channel, once it is known
    for predicate in predicates:
        if predicate.operator not in COMPARISONS or predicate.operator is Operator.NOT_EQUAL:
            return None
        operand = predicate.operands[0]
        slots = list(_slots(operand))
        found = {CHANNEL_KIND.get(kinds[slot], -1) for slot in slots}
        # no code: it is no expression of constants. Several kinds: a number and a timestamp, which
        # are never equal, so that the constraint is on two channels.
        code = code_of(operand)
        if code is None or len(slots) > STACK_MAX or len(found) != 1 or kind not in (-1, *found):
            return None
        (kind,) = found
        if kind not in (NUMBER, TIME, BOOLEAN, STRING):
            return None
        # only numbers can be computed with; what else there is must be a bare cell
        if kind != NUMBER and operand != Slot(slots[0]):
            return None
        if kind == STRING and predicate.operator is not Operator.EQUAL:
            return None
        comparisons.append(Comparison(COMPARISONS[predicate.operator], slots, code))
    channel = channels.channel(predicates[0].attribute, kind)
    return BoundChange(channel, kind != NUMBER, comparisons)
