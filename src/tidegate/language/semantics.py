"""When an event matches a filter: the meaning of the language, evaluated as it is written.

Everything else in Tidegate that decides a match (indexes, covering, Spark) has to agree with this
module, which is kept simple enough to be checked by reading. It is the oracle of the tests; speed
is the business of the indexes.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.language.algebra.like import Glob, GlobError
from tidegate.language.expressions import Environment, evaluate
from tidegate.language.syntax import And, Node, Operator, Or, Predicate, Truth
from tidegate.language.values import Value, kind_of


def holds(node: Node, attributes: Mapping[str, Value], environment: Environment) -> bool:
    """Whether an event with these attributes matches the filter."""
    match node:
        case Truth():
            return node.value
        case And(parts):
            return all(holds(part, attributes, environment) for part in parts)
        case Or(parts):
            return any(holds(part, attributes, environment) for part in parts)
        case Predicate():
            value = attributes.get(node.attribute)
            if value is None:
                return False
            operands = [evaluate(operand, environment) for operand in node.operands]
            return satisfies(value, node.operator, operands)


def satisfies(value: Value, operator: Operator, operands: list[Value | None]) -> bool:
    """Whether the value of a present attribute satisfies `operator operands`.

    An operand that is None is undefined and satisfies nothing.
    """
    match operator:
        case Operator.PRESENT:
            return True
        case Operator.IN:
            return any(compares(value, Operator.EQUAL, each) for each in operands)
        case Operator.NOT_IN:
            return all(compares(value, Operator.NOT_EQUAL, each) for each in operands)
        case Operator.BETWEEN:
            low, high = operands
            return compares(value, Operator.GREATER_EQUAL, low) and compares(
                value, Operator.LESS_EQUAL, high
            )
        case Operator.NOT_BETWEEN:
            low, high = operands
            return compares(value, Operator.LESS, low) or compares(value, Operator.GREATER, high)
        case _:
            return compares(value, operator, operands[0])


def compares(value: Value, operator: Operator, operand: Value | None) -> bool:
    """Whether a value satisfies an operator with one operand; false for different kinds."""
    if operand is None or kind_of(value) is not kind_of(operand):
        return False
    # Python compares ints with floats by their mathematical value, also beyond 2**53, and strings
    # by code point: exactly what the language promises.
    match operator:
        case Operator.EQUAL:
            return value == operand
        case Operator.NOT_EQUAL:
            return value != operand
        case Operator.LESS:
            return value < operand  # type: ignore[operator]
        case Operator.LESS_EQUAL:
            return value <= operand  # type: ignore[operator]
        case Operator.GREATER:
            return value > operand  # type: ignore[operator]
        case Operator.GREATER_EQUAL:
            return value >= operand  # type: ignore[operator]
        case _:
            return (
                isinstance(value, str)
                and isinstance(operand, str)
                and _satisfies_string_operator(value, operator, operand)
            )


def _satisfies_string_operator(value: str, operator: Operator, operand: str) -> bool:
    match operator:
        case Operator.STARTS_WITH:
            return value.startswith(operand)
        case Operator.NOT_STARTS_WITH:
            return not value.startswith(operand)
        case Operator.ENDS_WITH:
            return value.endswith(operand)
        case Operator.NOT_ENDS_WITH:
            return not value.endswith(operand)
        case Operator.CONTAINS:
            return operand in value
        case Operator.NOT_CONTAINS:
            return operand not in value
    try:
        matches = Glob.parse(operand).matches(value)
    except GlobError:  # from a parameter; neither `like` nor `not like` holds then
        return False
    return matches if operator is Operator.LIKE else not matches
