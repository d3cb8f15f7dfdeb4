"""The kinds of value that an expression can have, found without evaluating it.

`3 + t` is a number whatever `t` is, and `now() - :since` is a number or a timestamp until the kind
of `:since` is known. A parameter without a value, and a variable of the broker, can be of any kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Constant,
    Elapsed,
    Expression,
    Negated,
    Now,
    ParameterRef,
    Slot,
    Variable,
)
from tidegate.language.shapes import Row
from tidegate.language.values import Kind, Value, kind_of

Kinds = frozenset[Kind]

_ANY: Kinds = frozenset(Kind)
_NO_KIND: Kinds = frozenset()
_ONLY: Mapping[Kind, Kinds] = {kind: frozenset([kind]) for kind in Kind}


def kinds_of(expression: Expression, row: Row, parameters: Mapping[str, Value | None]) -> Kinds:
    """The kinds of value that an expression can have; none if it is undefined in any case.

    ``row`` fills the slots of an expression of a shape.
    """
    match expression:
        case Slot(index):
            cell = row[index]
            if isinstance(cell, ParameterRef):
                return kinds_of(cell, row, parameters)
            return _ONLY[kind_of(cell)]
        case Constant(value):
            return _ONLY[kind_of(value)]
        case ParameterRef(name):
            bound = parameters.get(name)
            return _ANY if bound is None else _ONLY[kind_of(bound)]
        case Variable():
            return _ANY
        case Elapsed():
            return _ONLY[Kind.NUMBER]
        case Now():
            return _ONLY[Kind.TIME]
        case Negated(operand):
            return _number_if_numbers([kinds_of(operand, row, parameters)])
        case Call(_, arguments):
            return _number_if_numbers(kinds_of(each, row, parameters) for each in arguments)
        case Arithmetic(operator, left, right):
            a, b = kinds_of(left, row, parameters), kinds_of(right, row, parameters)
            return _number_if_numbers([a, b]) | _kinds_of_times(operator, a, b)


def _number_if_numbers(operands: Iterable[Kinds]) -> Kinds:
    return _ONLY[Kind.NUMBER] if all(Kind.NUMBER in each for each in operands) else _NO_KIND


def _kinds_of_times(operator: str, a: Kinds, b: Kinds) -> Kinds:
    """As `expressions._combine_times`: a time plus or minus seconds, the difference of two."""
    kinds: set[Kind] = set()
    if operator in "+-" and Kind.TIME in a and Kind.NUMBER in b:
        kinds.add(Kind.TIME)
    if operator == "+" and Kind.NUMBER in a and Kind.TIME in b:
        kinds.add(Kind.TIME)
    if operator == "-" and Kind.TIME in a and Kind.TIME in b:
        kinds.add(Kind.NUMBER)
    return frozenset(kinds)
