"""The tree of a filter: predicates on attributes, joined by `and` and `or`.

There is no node for `not`: the parser replaces each predicate below a `not` by its complement, and
swaps `and` and `or` (De Morgan). A tree with a `not` node would have to distinguish "does not hold"
from "holds for no absent attribute" at every level; without one, an absent attribute satisfies no
predicate, and every node can be judged by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from tidegate.language.expressions import Expression, format_expression, leaves, rebuild


class Operator(Enum):
    """How a predicate compares an attribute with its operands, spelled as in a filter."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER_EQUAL = ">="
    GREATER = ">"
    LESS_EQUAL = "<="
    BETWEEN = "between"
    NOT_BETWEEN = "not between"
    IN = "in"
    NOT_IN = "not in"
    LIKE = "like"
    NOT_LIKE = "not like"
    STARTS_WITH = "starts with"
    NOT_STARTS_WITH = "not starts with"
    ENDS_WITH = "ends with"
    NOT_ENDS_WITH = "not ends with"
    CONTAINS = "contains"
    NOT_CONTAINS = "not contains"
    PRESENT = "is not null"


_PAIRS = [
    (Operator.EQUAL, Operator.NOT_EQUAL),
    (Operator.LESS, Operator.GREATER_EQUAL),
    (Operator.GREATER, Operator.LESS_EQUAL),
    (Operator.BETWEEN, Operator.NOT_BETWEEN),
    (Operator.IN, Operator.NOT_IN),
    (Operator.LIKE, Operator.NOT_LIKE),
    (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH),
    (Operator.ENDS_WITH, Operator.NOT_ENDS_WITH),
    (Operator.CONTAINS, Operator.NOT_CONTAINS),
]
COMPLEMENT = dict(_PAIRS) | {b: a for a, b in _PAIRS}

STRING_OPERATORS = frozenset(
    operator for operator in Operator if re.search("like|with|contains", operator.value)
)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A constraint on one attribute: `price < :limit`."""

    attribute: str
    operator: Operator
    operands: tuple[Expression, ...] = ()

    def __str__(self) -> str:
        return f"{format_attribute(self.attribute)} {self._constraint()}"

    def _constraint(self) -> str:
        texts = [format_expression(operand) for operand in self.operands]
        word = self.operator.value
        match self.operator:
            case Operator.PRESENT:
                return word
            case Operator.BETWEEN | Operator.NOT_BETWEEN:
                return f"{word} {texts[0]} and {texts[1]}"
            case Operator.IN | Operator.NOT_IN:
                return f"{word} ({', '.join(texts)})"
            case _:
                return f"{word} {texts[0]}"


@dataclass(frozen=True, slots=True)
class And:
    """All of two or more parts, none of them an `And`."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " and ".join(f"({p})" if isinstance(p, Or) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """Any of two or more parts, none of them an `Or`."""

    parts: tuple[Node, ...]

    def __str__(self) -> str:
        return " or ".join(str(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Truth:
    """`true`, which every event matches, or `false`, which none does."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


Node = Predicate | And | Or | Truth


def all_of(parts: Iterable[Node]) -> Node:
    """The conjunction of parts, flattened; `true` is dropped, and one `false` makes it `false`.

    >>> print(all_of([Truth(True), Predicate("price", Operator.PRESENT)]))
    price is not null
    """
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Truth):
            if not part.value:
                return part
        elif isinstance(part, And):
            flat += part.parts
        else:
            flat.append(part)
    if not flat:
        return Truth(True)
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: Iterable[Node]) -> Node:
    """The disjunction of parts, flattened; `false` is dropped, and one `true` makes it `true`."""
    flat: list[Node] = []
    for part in parts:
        if isinstance(part, Truth):
            if part.value:
                return part
        elif isinstance(part, Or):
            flat += part.parts
        else:
            flat.append(part)
    if not flat:
        return Truth(False)
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def predicates(node: Node) -> Iterator[Predicate]:
    """Every predicate of a tree, in the order of the text."""
    if isinstance(node, Predicate):
        yield node
    elif isinstance(node, (And, Or)):
        for part in node.parts:
            yield from predicates(part)


def expression_leaves(node: Node) -> Iterator[Expression]:
    """Every constant, parameter, variable and time in a tree, in the order of the text."""
    for predicate in predicates(node):
        for operand in predicate.operands:
            yield from leaves(operand)


def map_predicates(node: Node, change: Callable[[Predicate], Node]) -> Node:
    """The tree with each predicate replaced by ``change(predicate)``."""
    match node:
        case Predicate():
            return change(node)
        case And(parts):
            return all_of(map_predicates(part, change) for part in parts)
        case Or(parts):
            return any_of(map_predicates(part, change) for part in parts)
        case Truth():
            return node


def map_leaves(node: Node, change: Callable[[Expression], Expression]) -> Node:
    """The tree with each leaf of its value expressions replaced by ``change(leaf)``."""

    def with_changed_leaves(predicate: Predicate) -> Node:
        operands = tuple(rebuild(operand, change) for operand in predicate.operands)
        return Predicate(predicate.attribute, predicate.operator, operands)

    return map_predicates(node, with_changed_leaves)


_CONNECTIVES = {"and", "or", "not", "then", "within"}
_OPERATOR_WORDS = {"between", "in", "like", "is", "null", "starts", "ends", "with", "contains"}
RESERVED = frozenset(_CONNECTIVES | _OPERATOR_WORDS | {"true", "false"})
"""Words that can be the name of an attribute only in backticks."""

PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")


def format_attribute(name: str) -> str:
    """The name of an attribute as it is written in a filter, in backticks where it must be.

    >>> print(format_attribute("quote.price"), format_attribute("content-type"))
    quote.price `content-type`
    """
    if PLAIN_NAME.fullmatch(name) and name.lower() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"
