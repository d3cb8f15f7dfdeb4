"""Planning updates in place: what to write into an entry when cells of its row get other values.

Which bounds and which words of a motion follow from a cell depends on the shape, and on whether the
cells are numbers, timestamps or booleans, but not on their values. So it is worked out once for a
shape, kinds of cells and changed slots, and encoded as a plan (kernels/rewrite_plan.py), which a
kernel carries out for any row, whatever the size of the index.

A row may have several entries, one for each disjunct and each choice from its `in` lists. Each of
those that a changed slot concerns has a plan of its own, under its ordinal (entries/expansion.py).

The number of a string pattern is no value of a cell. So before such a plan is carried out, the
pattern gets its number, and that is handed to the kernel as one cell more behind the row's.

There is no plan, and the entries are replaced by new ones, if

- the shape has so many entries that a look at each would not be quick;
- a changed attribute has several patterns, or `!=` beside other comparisons: then its channel has
  several constraints, and nothing tells which is whose;
- a changed value is in a list that is only verified, or in a `not in` list;
- its cells are of several kinds, or strings that ask for more than equality: bounds are numbers of
  strings, which do not have their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tidegate.language.expressions import Expression, Slot, leaves
from tidegate.language.shapes import Shape
from tidegate.language.syntax import STRING_OPERATORS, Operator, Predicate
from tidegate.matching.arrays import I32, I64, U8
from tidegate.matching.rows.entries.channels import (
    CHANNEL_KIND,
    NUMBER,
    PATTERNS,
    POSITIVE,
    Channels,
)
from tidegate.matching.rows.entries.constraints import COMPARISONS_MAX
from tidegate.matching.rows.entries.expansion import entry_predicates
from tidegate.matching.rows.entries.judgements import is_common
from tidegate.matching.rows.entries.operands import (
    CELL_CODE,
    COMPARISONS,
    code_of,
    is_program,
    moving_attributes,
    program_slots,
)
from tidegate.matching.rows.kernels.cell_kinds import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    NUMBERS,
    STRING,
    TIME,
)
from tidegate.matching.rows.kernels.motion import MOTION_WORDS, R_CONSTANTS
from tidegate.matching.rows.kernels.plan_values import CellArrays, PlannedRows
from tidegate.matching.rows.kernels.programs import C_EQUAL, C_NOT_EQUAL, STACK_MAX
from tidegate.matching.rows.kernels.rewrite_plan import (
    DONE,
    NO_PLAN,
    NOT_IN_PLACE,
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

    def rewrite_each(
        self, number: int, plans: Mapping[int, I32], kinds: U8, cells: I64, row: int
    ) -> int:
        """Change entries of a subscription, each by the plan of its ordinal; returns an outcome.

        Its only entry is changed by the only plan. New bounds may be the outside of others, and on
        channels of sets. NOT_IN_PLACE if the index cannot do that.
        """
        ...


SHAPE_PLANS_MAX = 256
"""Plans that are kept for one shape, which may have one for each set of its slots."""

PLANNED_ENTRIES_MAX = 64
"""Rows with more entries than this have no plans."""

PLANNED_CELLS_MAX = 256
"""Nor have rows with patterns that have more cells, with the numbers of patterns that change."""


class PatternCell(NamedTuple):
    """A pattern whose number a plan needs, and the slot of its text."""

    attribute: str
    operator: Operator
    slot: int


class UpdatePlan(NamedTuple):
    """What to write into the entries of a row whose cells are of these kinds."""

    kinds: tuple[int, ...]
    alone: I32 = NO_PLAN
    """For the only entry of a row, where bounds are insides only."""
    entries: Mapping[int, I32] = MappingProxyType({})
    """Else, by ordinal, for each entry that changes."""
    patterns: tuple[PatternCell, ...] = ()
    """The patterns whose numbers are in the cells behind the row's."""


class Rewriter:
    """Changes the entries of a table's subscriptions in place, by plans that it keeps.

    One plan is kept for a shape and the slots that change. A row whose cells are of other kinds
    replaces it, because the rows of a shape nearly always have cells of the same kinds.
    """

    def __init__(self, table: SubscriptionTable, channels: Channels) -> None:
        self._table = table
        self._channels = channels
        self._plans: dict[int, dict[tuple[int, ...], UpdatePlan]] = {}
        """By number of a shape and slots. A shape that is forgotten takes its plans along: they
        contain channels, and another shape may get its number."""
        self._cells = np.zeros(PLANNED_CELLS_MAX, np.uint8), np.zeros(PLANNED_CELLS_MAX, np.int64)
        """The cells of a row, and behind them the numbers of patterns."""

    def rewrite(self, index: RewritableIndex, number: int, slots: tuple[int, ...]) -> bool:
        """Write the bounds that depend on changed cells; False if that is not possible in place.

        The cells have their new values already.
        """
        table = self._table
        shape, row = table.columns.shape.item(number), table.columns.row.item(number)
        plans = self._plans.get(shape)
        plan = None if plans is None else plans.get(slots)
        outcome = OTHER_KINDS if plan is None else self._carry_out(plan, index, number, row)
        if outcome == OTHER_KINDS:
            # the first update of this shape and slots, or of a row with cells of other kinds
            kinds = table.rows.kinds[row : row + table.width(shape)].tolist()
            plan = plan_update(table.shapes[shape], kinds, slots, self._channels)
            plans = self._plans.setdefault(shape, {})
            if len(plans) >= SHAPE_PLANS_MAX:
                plans.clear()  # rows with many parameters, in ever new combinations
            plans[slots] = plan
            outcome = self._carry_out(plan, index, number, row)
        return outcome == DONE

    def _carry_out(self, plan: UpdatePlan, index: RewritableIndex, number: int, row: int) -> int:
        """Carry out a plan for the row that begins at ``row``; returns the outcome."""
        kinds, cells = self._table.rows.kinds, self._table.rows.cells
        if len(plan.alone):
            return index.rewrite(number, plan.alone, kinds, cells, row)
        width = len(plan.kinds)
        if not plan.entries:
            fits = kinds[row : row + width].tolist() == [*plan.kinds]
            return NOT_IN_PLACE if fits else OTHER_KINDS
        if not plan.patterns:
            return index.rewrite_each(number, plan.entries, kinds, cells, row)
        own_kinds, own_cells = self._cells
        own_kinds[:width] = kinds[row : row + width]
        own_cells[:width] = cells[row : row + width]
        for place, (attribute, operator, slot) in enumerate(plan.patterns, width):
            if own_kinds.item(slot) != STRING:
                return OTHER_KINDS
            text = self._table.pool.text(own_cells.item(slot))
            pattern = self._channels.pattern(attribute, operator, text)
            if pattern is None:
                return NOT_IN_PLACE  # malformed: it matches nothing
            own_kinds[place], own_cells[place] = INTEGER, pattern
        outcome = index.rewrite_each(number, plan.entries, own_kinds, own_cells, 0)
        self._channels.flush()  # no entry is pending that would have the next match do it
        return outcome

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
        plans = [self._plan_alone(*key) for key in plan_numbers]
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

    def _plan_alone(self, shape: int, slots: tuple[int, ...]) -> I32:
        plan = self._plans.get(shape, {}).get(slots)
        return NO_PLAN if plan is None else plan.alone


def plan_update(
    shape: Shape, kinds: Sequence[int], slots: Sequence[int], channels: Channels
) -> UpdatePlan:
    """The plan for changes of some slots, in rows of a shape and of these kinds."""
    no_plan = UpdatePlan(tuple(kinds))
    comparisons_max = COMPARISONS_MAX // max(1, len(shape.disjuncts))
    if any(len(conjunction) > comparisons_max for conjunction in shape.disjuncts):
        return no_plan  # not all of them are constraints
    planner = _Planner(kinds, slots, channels)
    changes: dict[int, _EntryChanges] = {}
    ordinal = 0
    for conjunction, predicates in entry_predicates(shape, tuple(kinds)):
        ordinal += 1
        if ordinal > PLANNED_ENTRIES_MAX:
            return no_plan
        if any(_mentions(each, slots) for each in predicates):
            change = planner.changes(conjunction, predicates)
            if change is None:
                return no_plan
            changes[ordinal] = change
    if len(kinds) + len(planner.patterns) > PLANNED_CELLS_MAX and planner.patterns:
        return no_plan
    # numbers of patterns are integers, for which a plan has FLOAT
    all_kinds = [FLOAT if kind in NUMBERS else kind for kind in kinds]
    all_kinds += [FLOAT] * len(planner.patterns)
    plans = {number: encode_plan(all_kinds, *each) for number, each in changes.items()}
    has_lists = any(each.operator is Operator.IN for part in shape.disjuncts for each in part)
    if ordinal == 1 and plans and planner.insides_only and not has_lists:
        return UpdatePlan(tuple(kinds), alone=plans[1])
    return UpdatePlan(tuple(kinds), entries=plans, patterns=tuple(planner.patterns))


class _EntryChanges(NamedTuple):
    """What of an entry changes."""

    bounds: list[BoundChange]
    words: list[WordChange]


class _Planner:
    """Plans the changes of the entries of rows whose cells are of some kinds."""

    def __init__(self, kinds: Sequence[int], slots: Sequence[int], channels: Channels) -> None:
        self._kinds = kinds
        self._slots = slots
        self._channels = channels
        self.patterns: list[PatternCell] = []
        self.insides_only = True
        """Whether all new bounds are insides, of channels of values."""

    def changes(
        self, conjunction: tuple[Predicate, ...], predicates: Sequence[Predicate]
    ) -> _EntryChanges | None:
        """The changes of an entry with some predicates; None if it cannot be changed in place."""
        moving = moving_attributes(conjunction)
        if any(
            each.operator in (Operator.IN, Operator.NOT_IN) and each.attribute in moving
            for each in predicates
        ):
            return None  # its values are as many programs, or none
        words, static = _word_changes(predicates, moving, self._kinds, self._slots, self._channels)
        bounds: list[BoundChange] = []
        for attribute in dict.fromkeys(e.attribute for e in static if self._mentions(e)):
            mine = [each for each in static if each.attribute == attribute]
            patterns = [each for each in mine if each.operator in STRING_OPERATORS]
            # all comparisons of the attribute, also those that do not change: they share its bounds
            others = [
                each
                for each in mine
                if each.operator not in STRING_OPERATORS and each.operator is not Operator.PRESENT
            ]
            for change, predicates_of_it in (
                (self._pattern_change, patterns),
                (self._bound_change, others),
            ):
                if any(map(self._mentions, predicates_of_it)):
                    found = change(predicates_of_it)
                    if found is None:
                        return None
                    bounds.append(found)
        return _EntryChanges(bounds, words)

    def _mentions(self, predicate: Predicate) -> bool:
        return _mentions(predicate, self._slots)

    def _pattern_change(self, predicates: list[Predicate]) -> BoundChange | None:
        """The new bounds on the patterns of an attribute: the number of its only one."""
        if len(predicates) != 1:
            return None
        (predicate,) = predicates
        (operand,) = predicate.operands
        if not isinstance(operand, Slot) or self._kinds[operand.index] != STRING:
            return None
        cell = PatternCell(predicate.attribute, predicate.operator, operand.index)
        if cell not in self.patterns:
            self.patterns.append(cell)
        self.insides_only = False
        operator = C_EQUAL if predicate.operator in POSITIVE else C_NOT_EQUAL
        place = len(self._kinds) + self.patterns.index(cell)
        channel = self._channels.channel(predicate.attribute, PATTERNS)
        return BoundChange(channel, True, [Comparison(operator, [place], CELL_CODE)])

    def _bound_change(self, predicates: list[Predicate]) -> BoundChange | None:
        """The new bounds of one attribute, from all that it is compared with."""
        if any(each.operator is Operator.NOT_EQUAL for each in predicates):
            if len(predicates) > 1:
                return None
            self.insides_only = False
        return _bound_change(predicates, self._kinds, self._channels)


def _mentions(predicate: Predicate, slots: Sequence[int]) -> bool:
    """Whether a predicate is compared with one of these slots."""
    return any(slot in slots for operand in predicate.operands for slot in _slots(operand))


def _slots(operand: Expression) -> Iterator[int]:
    return (leaf.index for leaf in leaves(operand) if isinstance(leaf, Slot))


def _word_changes(
    predicates: Sequence[Predicate],
    moving: frozenset[str],
    kinds: Sequence[int],
    slots: Sequence[int],
    channels: Channels,
) -> tuple[list[WordChange], list[Predicate]]:
    """The words of the motion that slots are written to, and the predicates that do not move.

    Judgements (entries/judgements.py) are left out: no cell has anything to do with them.

    Walks along the motion as ``write_motions`` writes it: a record for each moving predicate, in
    the order in which the entry was made.
    """
    words: list[WordChange] = []
    static: list[Predicate] = []
    word = MOTION_WORDS
    for predicate in predicates:
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
        if predicate.operator not in COMPARISONS:
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
        if kind == STRING and predicate.operator not in (Operator.EQUAL, Operator.NOT_EQUAL):
            return None
        comparisons.append(Comparison(COMPARISONS[predicate.operator], slots, code))
    channel = channels.channel(predicates[0].attribute, kind)
    return BoundChange(channel, kind != NUMBER, comparisons)
