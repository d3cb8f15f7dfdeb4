"""Shapes and rows: a filter split into what it asks and the values it asks with.

    symbol = 'IBM' and price < :limit and x >= -3 + t

has the shape `price < ? and symbol = ? and x >= ? + t` and the row `(:limit, 'IBM', -3)`. A million
subscriptions have a few hundred shapes; each is a row in the table of its shape, and a change of a
parameter or of a constant is a write to one cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter

from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.expressions import (
    Constant,
    Expression,
    ParameterRef,
    Slot,
    format_expression,
    leaves,
    rebuild,
)
from tidegate.language.parsing.parser import Size, size_of
from tidegate.language.syntax import Node, Operator, Predicate, all_of, any_of, map_leaves
from tidegate.language.values import Value

Row = tuple[Value | ParameterRef, ...]
"""The values of a subscription, in the order of the shape's slots."""


Comparisons = tuple[tuple[str, tuple[tuple[Operator, int], ...]], ...]
"""What is asked of each attribute: how it compares with the values of which slots."""


@dataclass(frozen=True)
class Shape:
    """A filter without its values: a disjunction of conjunctions of predicates with slots.

    Predicates stand in a fixed order, so that `a = 1 and b < 2` and `b < 3 and a = 4` have one
    shape.
    """

    disjuncts: tuple[tuple[Predicate, ...], ...]

    @property
    def width(self) -> int:
        """How many values a row of this shape has."""
        return sum(
            isinstance(leaf, Slot)
            for conjunction in self.disjuncts
            for predicate in conjunction
            for leaf in _leaves(predicate)
        )

    @cached_property
    def length_chars(self) -> int:
        """How long its text is."""
        return len(str(self))

    @cached_property
    def size(self) -> Size:
        """How large a filter of this shape is, as limits count it."""
        return size_of(self.to_node())

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """What is asked of each attribute, if that is to compare with bare values; else None.

        >>> from tidegate.language.filters import parse
        >>> shape, row = parse("x between 1 and 2 and a = 'b'").shape_and_row
        >>> for name, asked in shape.comparisons:
        ...     print(name, [(operator.value, row[slot]) for operator, slot in asked])
        a [('=', 'b')]
        x [('<=', 2), ('>=', 1)]
        """
        if len(self.disjuncts) != 1:
            return None
        found: dict[str, tuple[tuple[Operator, int], ...]] = {}
        for predicate in self.disjuncts[0]:
            operators = _BOUNDS.get(predicate.operator, (predicate.operator,))
            slots = [each.index for each in predicate.operands if isinstance(each, Slot)]
            if not len(operators) == len(slots) == len(predicate.operands):
                return None
            asked = tuple(zip(operators, slots, strict=True))
            found[predicate.attribute] = found.get(predicate.attribute, ()) + asked
        return tuple(found.items())

    def fill(self, row: Row) -> Node:
        """The filter that has this shape and row."""

        def value(leaf: Expression) -> Expression:
            if not isinstance(leaf, Slot):
                return leaf
            held = row[leaf.index]
            return held if isinstance(held, ParameterRef) else Constant(held)

        return map_leaves(self.to_node(), value)

    def to_node(self) -> Node:
        """The shape as a tree, with slots for values."""
        return any_of(all_of(conjunction) for conjunction in self.disjuncts)

    def __str__(self) -> str:
        return str(self.to_node())


_BOUNDS = {Operator.BETWEEN: (Operator.GREATER_EQUAL, Operator.LESS_EQUAL)}


def _leaves(predicate: Predicate) -> list[Expression]:
    return [leaf for operand in predicate.operands for leaf in leaves(operand)]


def split(node: Node) -> tuple[Shape, list[Constant | ParameterRef]]:
    """The shape of a filter's tree, and the leaves of the tree that fill its slots.

    Neither the shape nor the order of the leaves depends on the values.
    """
    keyed = [
        sorted(((order(each), each) for each in conjunction), key=itemgetter(0))
        for conjunction in disjuncts(node)
    ]
    keyed.sort(key=lambda conjunction: [key for key, _ in conjunction])
    filled: list[Constant | ParameterRef] = []

    def slot(leaf: Expression) -> Expression:
        if not isinstance(leaf, (Constant, ParameterRef)):
            return leaf
        filled.append(leaf)
        return Slot(len(filled) - 1)

    def slotted(predicate: Predicate) -> Predicate:
        operands = tuple(rebuild(operand, slot) for operand in predicate.operands)
        return _shared(predicate.attribute, predicate.operator, operands)

    shape = Shape(tuple(tuple(slotted(each) for _, each in conjunction) for conjunction in keyed))
    return shape, filled


@lru_cache(maxsize=16_384)
def _shared(attribute: str, operator: Operator, operands: tuple[Expression, ...]) -> Predicate:
    """One object for equal predicates, because many shapes are made of the same few of them."""
    return Predicate(attribute, operator, operands)


def shifted(predicate: Predicate, by: int) -> Predicate:
    """A predicate of a shape with its slots so many places further back."""

    def further(leaf: Expression) -> Expression:
        return Slot(leaf.index + by) if isinstance(leaf, Slot) else leaf

    operands = tuple(rebuild(operand, further) for operand in predicate.operands)
    return _shared(predicate.attribute, predicate.operator, operands)


def row_of(filled: list[Constant | ParameterRef]) -> Row:
    """The row that a list of leaves makes."""
    return tuple(leaf.value if isinstance(leaf, Constant) else leaf for leaf in filled)


def order(predicate: Predicate) -> tuple[str, str, list[str]]:
    """What the predicates of a shape are ordered by: all but their values."""
    operands = [format_expression(rebuild(operand, _hidden)) for operand in predicate.operands]
    return predicate.attribute, predicate.operator.value, operands


def _hidden(leaf: Expression) -> Expression:
    return Slot(0) if isinstance(leaf, (Constant, ParameterRef)) else leaf
