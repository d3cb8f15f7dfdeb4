"""Operands of predicates as programs: which have one, its code, and where its constants come from.

An operand that is a function of time or of the broker's variables becomes a program (see
kernels/programs.py, which runs it), and its constants come from the cells of a row. So does an
operand that is computed from constants alone, where a bound is rewritten in place (see
rows/update_plans.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tidegate.language.expressions import (
    Arithmetic,
    Call,
    Elapsed,
    Expression,
    Negated,
    Slot,
    Variable,
    leaves,
)
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import Kind
from tidegate.matching.rows.entries.channels import Channels, ShapeNeeds
from tidegate.matching.rows.entries.judgements import bases_of, is_common, kinds_of
from tidegate.matching.rows.entries.program_codes import Code
from tidegate.matching.rows.kernels import programs as k
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER
from tidegate.matching.rows.kernels.motion import LINEAR, SHIFTED

COMPARISONS = {
    Operator.EQUAL: k.C_EQUAL,
    Operator.NOT_EQUAL: k.C_NOT_EQUAL,
    Operator.LESS: k.C_LESS,
    Operator.LESS_EQUAL: k.C_LESS_EQUAL,
    Operator.GREATER: k.C_GREATER,
    Operator.GREATER_EQUAL: k.C_GREATER_EQUAL,
}
_OPERATIONS = {
    "+": k.P_ADD, "-": k.P_SUBTRACT, "*": k.P_MULTIPLY, "/": k.P_DIVIDE, "%": k.P_REMAINDER,
    "min": k.P_MIN, "max": k.P_MAX, "abs": k.P_ABS, "floor": k.P_FLOOR, "ceil": k.P_CEIL,
    "sqrt": k.P_SQRT, "exp": k.P_EXP, "ln": k.P_LN, "sin": k.P_SIN, "cos": k.P_COS,
}  # fmt: skip


CELL_CODE = [k.P_CONSTANT, k.P_END]
"""The program of a bare cell."""


def write_program(operand: Expression, channels: Channels) -> int:
    """Where the program of an operand begins in the code of the channels; LINEAR if it needs none.

    With the bit SHIFTED if the operand is `a + f(t)`: then the program is only `f(t)`, which is
    computed once for both ends of `x between a + f(t) and b + f(t)`.
    """
    if _linear_slots(operand) is not None:
        return LINEAR
    shift, rest = _shifted(operand)
    code: list[int] = []
    _emit(rest, code, channels)
    start = channels.add_program((*code, k.P_END))
    return start if shift is None else start | SHIFTED


def needs_of(shape: Shape, channels: Channels) -> ShapeNeeds:
    """What entries of a shape may refer to; its variables are numbered if they are new.

    Which operands become programs depends on the kinds of cells, so all that may are counted.
    """
    programs: set[Code] = set()
    variables: set[str] = set()
    for conjunction in shape.disjuncts:
        moving = moving_attributes(conjunction)
        for predicate in conjunction:
            for operand in predicate.operands:
                if is_common(operand):
                    continue  # judged for each event, see judgements.py
                for leaf in leaves(operand):
                    if isinstance(leaf, Variable):
                        variables.add(leaf.name)
                        channels.variable(leaf.name)
                code: list[int] = []
                if (
                    predicate.attribute in moving
                    and _linear_slots(operand) is None
                    and _emit(_shifted(operand)[1], code, channels)
                ):
                    programs.add((*code, k.P_END))
    attributes = {each.attribute for conjunction in shape.disjuncts for each in conjunction}
    return ShapeNeeds(
        frozenset(attributes), frozenset(variables), frozenset(programs), bases_of(shape)
    )


def code_of(operand: Expression) -> list[int] | None:
    """The program of an operand that is computed from constants alone; None for other operands."""
    code: list[int] = []
    if not _emit(operand, code, None) or _stack_needed(operand) > k.STACK_MAX:
        return None
    return [*code, k.P_END]


def _emit(expression: Expression, code: list[int], variables: Channels | None) -> bool:
    """Append the program of an expression in postfix order: operands first, then the operation.

    Returns False if it has none, because it mentions something else than constants, `t` and
    variables; the latter two count only with ``variables``.
    """
    match expression:
        case Slot():
            code.append(k.P_CONSTANT)
        case Elapsed() if variables is not None:
            code.append(k.P_ELAPSED)
        case Variable(name) if variables is not None:
            code += [k.P_VARIABLE, variables.variable(name)]
        case Negated(operand):
            if not _emit(operand, code, variables):
                return False
            code.append(k.P_NEGATE)
        case Arithmetic(operator, left, right):
            if not (_emit(left, code, variables) and _emit(right, code, variables)):
                return False
            code.append(_OPERATIONS[operator])
        case Call(function, arguments):
            # min and max of several arguments are applied to two at a time
            for index, argument in enumerate(arguments):
                if not _emit(argument, code, variables):
                    return False
                if index > 0 or len(arguments) == 1:
                    code.append(_OPERATIONS[function])
        case _:
            return False
    return True


def moving_attributes(conjunction: tuple[Predicate, ...]) -> frozenset[str]:
    """The attributes that are compared with functions of time or of the broker's variables.

    All numbers that such an attribute is compared with become programs, constants too: the still
    constraint on its channel is the envelope of them all, and nothing else may write to it.
    """
    return frozenset(
        predicate.attribute
        for predicate in conjunction
        if any(_changes(operand) for operand in predicate.operands)
    )


def is_program(
    operand: Expression,
    kinds: Sequence[int],
    variables: Mapping[str, frozenset[Kind]],
    *,
    moves: bool,
) -> bool:
    """Whether an operand is compiled to a program.

    ``moves`` says whether its attribute is one of the ``moving_attributes``. Programs compute with
    floats, so the operand must be computed from nothing but numbers; ``variables`` are the kinds of
    those variables that are none, or not always.
    """
    return (
        (moves or _changes(operand))
        and not is_common(operand)
        and all(
            kinds[leaf.index] in (INTEGER, FLOAT)
            if isinstance(leaf, Slot)
            else kinds_of(leaf, (), variables) == _NUMBER
            for leaf in leaves(operand)
        )
        and _stack_needed(operand) <= k.STACK_MAX
    )


_NUMBER = frozenset([Kind.NUMBER])


def program_slots(operand: Expression) -> list[int | None]:
    """The slots of the constants of an operand's program, in its order; None is the number 1."""
    linear = _linear_slots(operand)
    if linear is not None:
        return linear
    shift, rest = _shifted(operand)
    slots = [leaf.index for leaf in leaves(rest) if isinstance(leaf, Slot)]
    return [*slots] if shift is None else [shift, *slots]


def _shifted(operand: Expression) -> tuple[int | None, Expression]:
    """The slot of `a` and `f(t)`, if an operand is `a + f(t)` or `f(t) + a`; else None and all.

    In floats `a + b` and `b + a` are the same, so both may be computed alike.
    """
    match operand:
        case Arithmetic("+", Slot(a), rest) | Arithmetic("+", rest, Slot(a)):
            return a, rest
        case _:
            return None, operand


def _linear_slots(operand: Expression) -> list[int | None] | None:
    """The slots of `a` and `b` if an operand is `a + b * t` or `a + t`; None if it is neither."""
    match operand:
        case Arithmetic("+", Slot(a), Elapsed()) | Arithmetic("+", Elapsed(), Slot(a)):
            return [a, None]
        case Arithmetic("+", Slot(a), Arithmetic("*", Slot(b), Elapsed())):
            return [a, b]
        case Arithmetic("+", Slot(a), Arithmetic("*", Elapsed(), Slot(b))):
            return [a, b]
        case _:
            return None


def _changes(operand: Expression) -> bool:
    """Whether an operand is a function of time or of variables, and not of those alone."""
    return not is_common(operand) and any(
        isinstance(leaf, (Elapsed, Variable)) for leaf in leaves(operand)
    )


def _stack_needed(expression: Expression) -> int:
    """How many values the program of an expression has on its stack at most."""
    match expression:
        case Negated(operand):
            return _stack_needed(operand)
        case Arithmetic(_, left, right):
            return max(_stack_needed(left), 1 + _stack_needed(right))
        case Call(_, arguments):
            return max(_stack_needed(each) + (index > 0) for index, each in enumerate(arguments))
        case _:
            return 1
