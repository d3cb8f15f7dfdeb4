"""Filters split into the part that stands still and the part that moves.

The still part can be indexed like any other filter. It is the filter with `x is not null` in place
of each predicate on `x` that moves. Whatever matches the filter at some moment matches that, too: a
predicate that holds has its attribute, and `and` and `or` only ever gain by it.
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
"""Sets of attributes; an event that has all of one set is meant."""


def split_still(filter: Filter) -> tuple[Filter, Node]:
    """The part of a filter that stands still, and what of it is still to be asked after that.

    >>> from tidegate.language.filters import parse
    >>> still, moving = split_still(parse("symbol = 'IBM' and price < 5 + t and price > 0"))
    >>> print(still), print(moving)
    symbol = 'IBM' and price is not null and price > 0
    price < 5 + t
    (None, None)
    """
    node = filter.node
    moving = node
    if isinstance(node, And):
        moving = all_of(part for part in node.parts if _moves(part))
    return Filter(map_predicates(node, _still)), moving


def _still(predicate: Predicate) -> Node:
    return Predicate(predicate.attribute, Operator.PRESENT) if _moves(predicate) else predicate


def _moves(node: Node) -> bool:
    return any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in expression_leaves(node))


@lru_cache(maxsize=16_384)
def triggers_of(shape: Shape) -> Triggers:
    """The attributes that an event must have for what moves with time to matter to it.

    Those of all predicates with `t` or `now()` in one disjunct, for each disjunct that has some.
    """
    found = (
        frozenset(each.attribute for each in conjunction if _is_timed(each))
        for conjunction in shape.disjuncts
    )
    return frozenset(filter(None, found))


def _is_timed(predicate: Predicate) -> bool:
    return any(is_time(leaf) for leaf in expression_leaves(predicate))


def is_time(leaf: Expression) -> bool:
    """Whether a leaf of a value expression is `t` or `now()`."""
    return isinstance(leaf, (Elapsed, Now))
