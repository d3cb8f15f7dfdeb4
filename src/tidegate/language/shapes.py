"""Shapes and rows: a filter split into its structure and its values.

    symbol = 'IBM' and price < :limit and x >= -3 + t

has the shape `price < ? and symbol = ? and x >= ? + t` and the row `(:limit, 'IBM', -3)`. A million
subscriptions have a few hundred shapes; each is a row in the table of its shape, and an update of a
parameter or of a constant writes one cell.

Rule. Neither the shape nor the order of the slots depends on the values. Otherwise an update could
change the shape of a subscription, and a template (parsing/templates.py) learned from one text
would be wrong for another that differs only in its literals. So nothing is simplified:
`x in (1, 1)` has two slots, and so has `x > 1 and x > 3`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter

from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.expressions import (
    Constant,
    Elapsed,
    Expression,
    Now,
    ParameterRef,
    Slot,
    Variable,
    format_expression,
    leaves,
    rebuild,
)
from tidegate.language.parsing.parser import Size, size_of
from tidegate.language.syntax import (
    STRING_OPERATORS,
    Node,
    Operator,
    Predicate,
    all_of,
    any_of,
    map_leaves,
)
from tidegate.language.values import Value

Row = tuple[Value | ParameterRef, ...]
"""The values of a subscription, in the order of the shape's slots."""


Comparisons = tuple[tuple[str, tuple[tuple[Operator, int], ...]], ...]
"""For each attribute, the operators and the slots of the values it is compared with."""


@dataclass(frozen=True)
class Shape:
    """A filter without its values: a disjunction of conjunctions of predicates with slots.

    Predicates are in a fixed order, so that `a = 1 and b < 2` and `b < 3 and a = 4` have one
    shape.
    """

    disjuncts: tuple[tuple[Predicate, ...], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        # Tables look shapes up all the time, and tuples do not keep their hashes.
        return hash(self.disjuncts)

    @property
    def width(self) -> int:
        """The number of values in a row of this shape."""
        return sum(isinstance(leaf, Slot) for leaf in self._all_leaves())

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes it constrains."""
        names = [each.attribute for conjunction in self.disjuncts for each in conjunction]
        return tuple(dict.fromkeys(names))

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The names of the broker's variables it uses."""
        names = [leaf.name for leaf in self._all_leaves() if isinstance(leaf, Variable)]
        return tuple(dict.fromkeys(names))

    @cached_property
    def evolves(self) -> bool:
        """Whether the values of its filters depend on `t`, `now()` or variables."""
        return any(isinstance(leaf, (Elapsed, Now, Variable)) for leaf in self._all_leaves())

    def _all_leaves(self) -> list[Expression]:
        return [
            leaf
            for conjunction in self.disjuncts
            for predicate in conjunction
            for leaf in _leaves(predicate)
        ]

    @cached_property
    def length_chars(self) -> int:
        """The length of its text, in characters."""
        return len(str(self))

    @cached_property
    def size(self) -> Size:
        """The size of a filter of this shape, as `Limits` counts it."""
        return size_of(self.to_node())

    @cached_property
    def comparisons(self) -> Comparisons | None:
        """The comparisons of each attribute, if the shape is a conjunction of nothing else.

        None for every other shape. Such plain shapes, which most are, can be stored and compared
        column by column, without building a tree for each row.

        >>> from tidegate.language.filters import parse
        >>> shape, row = parse("x between 1 and 2 and a = 'b'").shape_and_row
        >>> for name, compared in shape.comparisons:
        ...     print(name, [(operator.value, row[slot]) for operator, slot in compared])
        a [('=', 'b')]
        x [('<=', 2), ('>=', 1)]
        """
        if len(self.disjuncts) != 1:
            return None
        by_name: dict[str, tuple[tuple[Operator, int], ...]] = {}
        for predicate in self.disjuncts[0]:
            operators = _BOUNDS.get(predicate.operator, (predicate.operator,))
            slots = [each.index for each in predicate.operands if isinstance(each, Slot)]
            if not len(operators) == len(slots) == len(predicate.operands):
                return None
            compared = tuple(zip(operators, slots, strict=True))
            by_name[predicate.attribute] = by_name.get(predicate.attribute, ()) + compared
        return tuple(by_name.items())

    @cached_property
    def has_string_operators(self) -> bool:
        """Whether a value must be a string, or a pattern of strings."""
        return any(
            predicate.operator in STRING_OPERATORS
            for conjunction in self.disjuncts
            for predicate in conjunction
        )

    def fill(self, row: Row) -> Node:
        """The filter that has this shape and row."""

        def value(leaf: Expression) -> Expression:
            if not isinstance(leaf, Slot):
                return leaf
            cell = row[leaf.index]
            return cell if isinstance(cell, ParameterRef) else Constant(cell)

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
    """The shape of a filter's tree, and the leaves of the tree that fill its slots, in their order.

    A leaf is the very object of the tree: templates find the literal that made it by identity.
    """
    keyed = [
        sorted(((sort_key(each), each) for each in conjunction), key=itemgetter(0))
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
        return _predicate(predicate.attribute, predicate.operator, operands)

    shape = Shape(tuple(tuple(slotted(each) for _, each in conjunction) for conjunction in keyed))
    return shape, filled


SHARED_NAME_CHARS_MAX, SHARED_OPERANDS_MAX = 256, 4
"""Predicates with longer names or more operands are not shared: few of them are equal, and those
that are kept to be shared must not take much memory."""


def _predicate(attribute: str, operator: Operator, operands: tuple[Expression, ...]) -> Predicate:
    """A predicate; one object for equal ones, unless they are large."""
    if len(operands) > SHARED_OPERANDS_MAX or len(attribute) > SHARED_NAME_CHARS_MAX:
        return Predicate(attribute, operator, operands)
    return _shared(attribute, operator, operands)


@lru_cache(maxsize=16_384)
def _shared(attribute: str, operator: Operator, operands: tuple[Expression, ...]) -> Predicate:
    """One object for equal predicates: a workload with many shapes has few different predicates."""
    return Predicate(attribute, operator, operands)


def shift_slots(predicate: Predicate, by: int) -> Predicate:
    """A predicate of a shape with ``by`` added to the index of each slot."""

    def shifted(leaf: Expression) -> Expression:
        return Slot(leaf.index + by) if isinstance(leaf, Slot) else leaf

    operands = tuple(rebuild(operand, shifted) for operand in predicate.operands)
    return _predicate(predicate.attribute, predicate.operator, operands)


def row_of(filled: list[Constant | ParameterRef]) -> Row:
    """The row of a list of leaves: the values of constants, and parameters as they are."""
    return tuple(leaf.value if isinstance(leaf, Constant) else leaf for leaf in filled)


def sort_key(predicate: Predicate) -> tuple[str, str, list[str]]:
    """The key that orders the predicates of a shape: everything but their values."""
    operands = [format_expression(rebuild(operand, _as_slot)) for operand in predicate.operands]
    return predicate.attribute, predicate.operator.value, operands


def _as_slot(leaf: Expression) -> Expression:
    return Slot(0) if isinstance(leaf, (Constant, ParameterRef)) else leaf
