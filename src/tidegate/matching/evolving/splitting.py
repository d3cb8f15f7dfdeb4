"""Filters split into a static part, which an index can hold, and the evolving rest.

The static part is the filter with `x is not null` in place of each evolving predicate on `x`. It is
an over-estimate: whatever matches the filter at some moment matches the static part too, because a
predicate that holds has its attribute, and filters have no `not` above a predicate that could turn
"wider" into "narrower".
"""

from __future__ import annotations

from functools import lru_cache

from tidegate.language.expressions import Elapsed, Expression, Now, Variable
from tidegate.language.filters import Filter
from tidegate.language.shapes import Shape
from tidegate.language.syntax import (
    And,
    Node,
    Operator,
    Predicate,
    all_of,
    expression_leaves,
    map_predicates,
)

Triggers = frozenset[frozenset[str]]
"""Sets of attribute names. An event is a trigger if it has all attributes of one of the sets."""


def split_static(filter: Filter) -> tuple[Filter, Node]:
    """The static part of a filter, and the rest: an event matches the filter if it matches both.

    >>> from tidegate.language.filters import parse
    >>> static, rest = split_static(parse("symbol = 'IBM' and price < 5 + t and price > 0"))
    >>> print(static), print(rest)
    symbol = 'IBM' and price is not null and price > 0
    price < 5 + t
    (None, None)
    """
    node = filter.node
    rest = node
    if isinstance(node, And):
        # static conjuncts need not be checked twice; below an `or` only the whole can decide
        rest = all_of(part for part in node.parts if _evolves(part))
    return Filter(map_predicates(node, _widened)), rest


def _widened(predicate: Predicate) -> Node:
    return Predicate(predicate.attribute, Operator.PRESENT) if _evolves(predicate) else predicate


def _evolves(node: Node) -> bool:
    return any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in expression_leaves(node))


@lru_cache(maxsize=1_024)  # a shape may have hundreds of predicates
def triggers_of(shape: Shape) -> Triggers:
    """The attributes with which an event can depend on the time at which a filter is evaluated.

    For each disjunct with `t` or `now()`, the attributes of its predicates that use them. Variables
    do not count: they are always as of the event, in every evolve mode.
    """
    found = (
        frozenset(each.attribute for each in conjunction if _uses_time(each))
        for conjunction in shape.disjuncts
    )
    return frozenset(filter(None, found))


def _uses_time(predicate: Predicate) -> bool:
    return any(is_time(leaf) for leaf in expression_leaves(predicate))


def is_time(leaf: Expression) -> bool:
    """Whether a leaf of a value expression is `t` or `now()`."""
    return isinstance(leaf, (Elapsed, Now))
