"""Filters that move, over a stretch of time: estimates without time in them, and covering.

An over-estimate matches whatever the filter matches at any `t` of the stretch; an under-estimate
matches only what the filter matches at every `t` of it. Parameters must have been bound before;
what still is not known (variables of the broker, `now()`) is taken to be anything.

Covering is sound and not complete: it is seen constraint by constraint, where one bound follows
from another at every moment, or where the over-estimate of the one is within the under-estimate of
the other. Bounds that touch, times that move and what only several disjuncts cover are not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from types import UnionType

from tidegate.language.algebra.extremes import tight_range_of
from tidegate.language.algebra.normal_form import NormalForm, disjuncts, is_ground, plainly
from tidegate.language.algebra.ranges import ANY_NUMBER, ElapsedRange, Range, stays_at_most
from tidegate.language.algebra.value_sets import ValueSet, union
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

_UPPER = (Operator.LESS, Operator.LESS_EQUAL)
_LOWER = (Operator.GREATER, Operator.GREATER_EQUAL)


def over_estimate(node: Node, stretch: ElapsedRange) -> Node:
    """A filter of constants that matches whatever ``node`` matches during the stretch."""
    return map_predicates(node, lambda predicate: _estimate(predicate, stretch, _over))


def under_estimate(node: Node, stretch: ElapsedRange) -> Node:
    """A filter of constants that matches only what ``node`` matches all through the stretch."""
    return map_predicates(node, lambda predicate: _estimate(predicate, stretch, _under))


def relaxed(node: Node, unknown: type[Expression] | UnionType) -> Node:
    """A filter that matches whatever ``node`` does, whatever some leaves of expressions may be."""

    def relax(predicate: Predicate) -> Node:
        if not any(isinstance(leaf, unknown) for leaf in expression_leaves(predicate)):
            return predicate
        plain = plainly(predicate)
        if plain != predicate:
            return map_predicates(plain, relax)
        return Predicate(predicate.attribute, Operator.PRESENT)

    return map_predicates(node, relax)


_Estimate = Callable[[str, Operator, Range | None], Node]


def _estimate(predicate: Predicate, stretch: ElapsedRange, of_range: _Estimate) -> Node:
    if all(is_ground(operand) for operand in predicate.operands):
        return predicate
    name, operands = predicate.attribute, predicate.operands
    match predicate.operator:
        case Operator.BETWEEN | Operator.NOT_BETWEEN:
            plain = plainly(predicate)
            return map_predicates(plain, lambda each: _estimate(each, stretch, of_range))
        case Operator.IN | Operator.NOT_IN:
            isin = predicate.operator is Operator.IN
            each_operator = Operator.EQUAL if isin else Operator.NOT_EQUAL
            each = [
                _estimate(Predicate(name, each_operator, (operand,)), stretch, of_range)
                for operand in operands
            ]
            return any_of(each) if isin else all_of(each)
        case _:
            return of_range(name, predicate.operator, tight_range_of(operands[0], stretch))


def _over(name: str, operator: Operator, values: Range | None) -> Node:
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
        case Operator.NOT_EQUAL:
            return Predicate(name, Operator.GREATER_EQUAL, (Constant(float("-inf")),))
        case _:
            return Predicate(name, Operator.PRESENT)


def _under(name: str, operator: Operator, values: Range | None) -> Node:
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


def covers_during(wide: Node, narrow: Node, stretch: ElapsedRange, lead: float = 0.0) -> bool:
    """Whether, at every moment of the stretch, ``wide`` surely matches whatever ``narrow`` does.

    The stretch is told by the clock of ``wide``; that of ``narrow`` is ``lead`` seconds ahead.
    """
    wide_disjuncts = disjuncts(wide)
    return all(
        any(_conjunction_covers(each, conjunction, stretch, lead) for each in wide_disjuncts)
        or any(values.is_empty for values in _most(conjunction, stretch.shifted(lead)).values())
        for conjunction in disjuncts(narrow)
    )


_Predicates = tuple[Predicate, ...]


def _conjunction_covers(
    wide: _Predicates, narrow: _Predicates, stretch: ElapsedRange, lead: float
) -> bool:
    most = _most(narrow, stretch.shifted(lead))
    return all(
        any(_implies(each, predicate, stretch, lead) for each in narrow)
        or (
            predicate.attribute in most
            and most[predicate.attribute].within(_values(under_estimate(predicate, stretch)))
        )
        for predicate in wide
    )


def _most(conjunction: _Predicates, stretch: ElapsedRange) -> dict[str, ValueSet]:
    """The values that each attribute can have at some moment of the stretch."""
    most: dict[str, ValueSet] = {}
    for predicate in conjunction:
        values = _values(over_estimate(predicate, stretch))
        name = predicate.attribute
        most[name] = most[name].intersect(values) if name in most else values
    return most


def _values(estimate: Node) -> ValueSet:
    """The values that satisfy a constraint on a single attribute."""
    forms = NormalForm.of(estimate).conjunctions
    return union(values for conjunction in forms for values in conjunction.sets.values())


def _implies(narrow: Predicate, wide: Predicate, stretch: ElapsedRange, lead: float) -> bool:
    """Whether a comparison follows from another on the same attribute, at every moment."""
    if narrow == wide and (lead == 0.0 or not _uses_elapsed(wide)):
        return True
    if narrow.attribute != wide.attribute or len(narrow.operands) != 1 or len(wide.operands) != 1:
        return False
    inner, outer = narrow.operands[0], wide.operands[0]

    def below(operators: tuple[Operator, ...]) -> bool:
        return narrow.operator in operators and stays_at_most(inner, outer, stretch, a_lead=lead)

    def above(operators: tuple[Operator, ...]) -> bool:
        return narrow.operator in operators and stays_at_most(outer, inner, stretch, b_lead=lead)

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


def _uses_elapsed(predicate: Predicate) -> bool:
    return any(isinstance(leaf, Elapsed) for leaf in expression_leaves(predicate))
