"""Evolving filters over an elapsed range: estimates that are static filters, and covering.

Rules. (1) An over-estimate matches whatever the filter matches at any `t` of the elapsed range. (2)
An under-estimate matches only what the filter matches at every `t` of it. (3) `covers_during` says
yes only if the wider filter covers the narrower one at every `t`. What is unknown (parameters,
variables of the broker, `now()`) may be anything.

Theory of operation. A predicate is estimated by the range of its operand (extremes.py): the
over-estimate of `x < f(t)` is `x < max f`, its under-estimate `x < min f`. `and` and `or` are
monotone and there is no `not` in a tree, so estimates of predicates make an estimate of the filter.

Covering is seen constraint by constraint, in two ways: one bound follows from another at every `t`
(ranges.py, `stays_at_most`), or the over-estimate of the narrower constraints on an attribute is
within the under-estimate of the wider one. It is not complete: bounds that touch at one `t`,
evolving timestamps, what only several disjuncts cover together, and what takes more than the budget
of work (work.py) are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType

from tidegate.language.algebra.extremes import tight_range_of
from tidegate.language.algebra.normal_form import NormalForm, desugared, disjuncts, is_ground
from tidegate.language.algebra.ranges import ANY_NUMBER, ElapsedRange, Range, stays_at_most
from tidegate.language.algebra.value_sets import ValueSet, union
from tidegate.language.algebra.work import STEPS_MAX, Budget, OutOfWorkError, spend
from tidegate.language.expressions import Constant, Elapsed, Expression
from tidegate.language.syntax import (
    Node,
    Operator,
    Predicate,
    Truth,
    all_of,
    any_of,
    expression_leaves,
    map_predicates,
)

ESTIMATING_STEPS_MAX = 4 * STEPS_MAX
"""The budget of an estimate: finding the extremes of a few sines takes many small steps."""
COVERING_STEPS_MAX = 2 * STEPS_MAX
"""The budget of ``covers_during``, which takes no other operation's work."""
_VALUES_STEPS = 25
"""The steps of making the value set of a predicate."""

_UPPER = (Operator.LESS, Operator.LESS_EQUAL)
_LOWER = (Operator.GREATER, Operator.GREATER_EQUAL)


def over_estimate(node: Node, elapsed: ElapsedRange) -> Node:
    """A static filter that matches whatever ``node`` matches at some `t` of the elapsed range."""
    with Budget(ESTIMATING_STEPS_MAX):
        return _estimated(node, elapsed, _over)


def under_estimate(node: Node, elapsed: ElapsedRange) -> Node:
    """A static filter that matches only what ``node`` matches at every `t` of the elapsed range."""
    with Budget(ESTIMATING_STEPS_MAX):
        return _estimated(node, elapsed, _under)


def relaxed(node: Node, unknown: type[Expression] | UnionType) -> Node:
    """A filter that matches whatever ``node`` matches for any values of the ``unknown`` leaves.

    A predicate with such a leaf only tests for presence; of a `between`, the known bound stays.
    """

    def relax(predicate: Predicate) -> Node:
        if not any(isinstance(leaf, unknown) for leaf in expression_leaves(predicate)):
            return predicate
        simpler = desugared(predicate)
        if simpler != predicate:
            return map_predicates(simpler, relax)
        return Predicate(predicate.attribute, Operator.PRESENT)

    return map_predicates(node, relax)


_Estimate = Callable[[str, Operator, Range | None], Node]
"""The estimate of a comparison, by attribute, operator and the range of its operand."""


def _estimated(node: Node, elapsed: ElapsedRange, of_range: _Estimate) -> Node:
    return map_predicates(node, lambda predicate: _estimate(predicate, elapsed, of_range))


def _estimate(predicate: Predicate, elapsed: ElapsedRange, of_range: _Estimate) -> Node:
    if all(is_ground(operand) for operand in predicate.operands):
        return predicate
    name, operands = predicate.attribute, predicate.operands
    match predicate.operator:
        case Operator.BETWEEN | Operator.NOT_BETWEEN:
            bounds = desugared(predicate)
            return map_predicates(bounds, lambda each: _estimate(each, elapsed, of_range))
        case Operator.IN | Operator.NOT_IN:
            is_in = predicate.operator is Operator.IN
            each_operator = Operator.EQUAL if is_in else Operator.NOT_EQUAL
            estimates = [
                _estimate(Predicate(name, each_operator, (operand,)), elapsed, of_range)
                for operand in operands
            ]
            return any_of(estimates) if is_in else all_of(estimates)
        case _:
            return of_range(name, predicate.operator, tight_range_of(operands[0], elapsed))


def _over(name: str, operator: Operator, values: Range | None) -> Node:
    """The over-estimate of a comparison; presence, where nothing is known of the operand."""
    if values is None or values == ANY_NUMBER:
        return Predicate(name, Operator.PRESENT)
    low, high = Constant(values.low), Constant(values.high)
    match operator:
        case Operator.LESS | Operator.LESS_EQUAL:
            return Predicate(name, operator, (high,))
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return Predicate(name, operator, (low,))
        case Operator.EQUAL:
            return Predicate(name, Operator.BETWEEN, (low, high))
        case Operator.NOT_EQUAL if values.low == values.high:
            return Predicate(name, operator, (low,))
        case Operator.NOT_EQUAL:  # any number; `is not null` would let other kinds in too
            return Predicate(name, Operator.GREATER_EQUAL, (Constant(float("-inf")),))
        case _:
            return Predicate(name, Operator.PRESENT)


def _under(name: str, operator: Operator, values: Range | None) -> Node:
    """The under-estimate of a comparison; `false`, where the operand may be undefined."""
    if values is None or values.partial:
        return Truth(False)
    low, high = Constant(values.low), Constant(values.high)
    match operator:
        case Operator.LESS | Operator.LESS_EQUAL:
            return Predicate(name, operator, (low,))
        case Operator.GREATER | Operator.GREATER_EQUAL:
            return Predicate(name, operator, (high,))
        case Operator.EQUAL if values.low == values.high:
            return Predicate(name, operator, (low,))
        case Operator.NOT_EQUAL:
            return Predicate(name, Operator.NOT_BETWEEN, (low, high))
        case _:
            return Truth(False)


def covers_during(wide: Node, narrow: Node, elapsed: ElapsedRange, lead: float = 0.0) -> bool:
    """Whether ``wide`` surely covers ``narrow`` at every `t` of the elapsed range.

    `t` is that of ``wide``; the `t` of ``narrow`` is ``lead`` seconds ahead.
    """
    try:
        with Budget(COVERING_STEPS_MAX):
            wides = [_Wide(each, elapsed) for each in disjuncts(wide)]
            narrows = (_Narrow(each, elapsed, lead) for each in disjuncts(narrow))
            # Equal conjunctions are found without work, however many there are.
            same = {frozenset(each.predicates) for each in wides if _agrees(each.predicates, lead)}
            return all(
                each.known in same or any(map(each.is_within, wides)) or each.is_empty
                for each in narrows
            )
    except OutOfWorkError:
        return False


_Predicates = tuple[Predicate, ...]


@dataclass(frozen=True)
class _Wide:
    """A conjunction that may cover others."""

    predicates: _Predicates
    elapsed: ElapsedRange
    _under_estimates: dict[Predicate, ValueSet] = field(default_factory=dict)

    def values(self, predicate: Predicate) -> ValueSet:
        """An under-estimate of the values that satisfy a predicate at every `t`."""
        known = self._under_estimates.get(predicate)
        if known is None:
            known = _values(_estimated(predicate, self.elapsed, _under))
            self._under_estimates[predicate] = known
        return known


@dataclass(frozen=True)
class _Narrow:
    """A conjunction that another one may cover; its `t` is ``lead`` seconds ahead."""

    predicates: _Predicates
    elapsed: ElapsedRange
    lead: float

    @cached_property
    def known(self) -> frozenset[Predicate]:
        """Its predicates, to look them up."""
        return frozenset(self.predicates)

    @cached_property
    def by_attribute(self) -> dict[str, list[Predicate]]:
        """Its predicates on each attribute."""
        grouped: dict[str, list[Predicate]] = {}
        for predicate in self.predicates:
            grouped.setdefault(predicate.attribute, []).append(predicate)
        return grouped

    @cached_property
    def values(self) -> dict[str, ValueSet]:
        """An over-estimate of the values that each attribute can have at some `t`."""
        elapsed = self.elapsed.shifted(self.lead)
        sets = {
            name: [_values(_estimated(each, elapsed, _over)) for each in constraints]
            for name, constraints in self.by_attribute.items()
        }
        return {name: values[0].intersect(*values[1:]) for name, values in sets.items()}

    @property
    def is_empty(self) -> bool:
        """Whether surely no event matches it at any `t`."""
        return any(each.is_empty for each in self.values.values())

    def is_within(self, wide: _Wide) -> bool:
        """Whether the wide conjunction surely covers this one at every `t`."""
        return all(
            self._is_implied(each)
            or (
                each.attribute in self.by_attribute
                and self.values[each.attribute].within(wide.values(each))
            )
            for each in wide.predicates
        )

    def _is_implied(self, wide: Predicate) -> bool:
        """Whether a predicate follows from a single one of these at every `t`."""
        spend()
        if wide in self.known and _agrees((wide,), self.lead):
            return True
        constraints = self.by_attribute.get(wide.attribute, ())
        return any(_implies(each, wide, self.elapsed, self.lead) for each in constraints)


def _values(estimate: Node) -> ValueSet:
    """The values that satisfy a constraint on a single attribute."""
    spend(_VALUES_STEPS)
    forms = NormalForm.of(estimate).conjunctions
    return union(values for conjunction in forms for values in conjunction.sets.values())


def _implies(narrow: Predicate, wide: Predicate, elapsed: ElapsedRange, lead: float) -> bool:
    """Whether ``wide`` follows from ``narrow``, both on the same attribute, at every `t`."""
    if len(narrow.operands) != 1 or len(wide.operands) != 1:
        return False
    spend()
    inner, outer = narrow.operands[0], wide.operands[0]

    def below(operators: tuple[Operator, ...]) -> bool:
        return narrow.operator in operators and stays_at_most(inner, outer, elapsed, a_lead=lead)

    def above(operators: tuple[Operator, ...]) -> bool:
        return narrow.operator in operators and stays_at_most(outer, inner, elapsed, b_lead=lead)

    # `x = f` implies `x <= g` if f <= g; it does not imply `x < g`, because f may equal g.
    match wide.operator:
        case Operator.LESS:
            return below((Operator.LESS,))
        case Operator.LESS_EQUAL:
            return below((*_UPPER, Operator.EQUAL))
        case Operator.GREATER:
            return above((Operator.GREATER,))
        case Operator.GREATER_EQUAL:
            return above((*_LOWER, Operator.EQUAL))
        case Operator.NOT_EQUAL:
            return below((Operator.LESS,)) or above((Operator.GREATER,))
        case _:
            return False


def _agrees(predicates: _Predicates, lead: float) -> bool:
    """Whether equal predicates have equal values: their clocks agree, or do not matter."""
    return lead == 0.0 or not any(
        isinstance(leaf, Elapsed) for each in predicates for leaf in expression_leaves(each)
    )
