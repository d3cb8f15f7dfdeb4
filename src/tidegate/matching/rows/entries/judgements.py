"""Judgements: what an event and the broker say about a comparison before any subscription is asked.

`price > @limit` and `at >= now()` are the same for all subscriptions: whether they hold depends on
the event, its time and the broker's variables, and on no value of a row. So the comparison is made
once for an event, by the meaning of the language, exactly and for values of any kind; the result is
the value of a channel, and entries have constraints on that, which can be looked up and have
bitmaps like all others. An operand without values of a row is called *common*.

    form       channel's value                         constraint of an entry
    COMPARED   -1, 0 or 1: the attribute is less       `x > @v` is (1, infinity), as a comparison
               than, equal to, greater than @v         with 0 in whole numbers
    operator   1 if `s like @pattern` holds            (1, 1)
    DELAY      microseconds from `@v` to the           `x < now() - 60` is (-infinity, -60e6 - 1)
               attribute, both timestamps
    AHEAD      microseconds from `@v` to the end of    `@v + 60` needs (60e6, infinity), else it is
               the year 9999                           undefined
    BACK       microseconds since the year 1           `@v - 60` needs (60e6, infinity)

Microseconds from 2**53 on are cut off there; whoever adds or subtracts half as much or more is
verified instead. An absent attribute, an undefined operand, and one of another kind have NaN, which
satisfies nothing.

A `Periodic` or `Cached` filter sees another `now()` than that of the event, so this is for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tidegate.language.expressions import (
    Arithmetic,
    Expression,
    Now,
    Slot,
    Variable,
    children,
    leaves,
)
from tidegate.language.filters import parse
from tidegate.language.shapes import Shape
from tidegate.language.syntax import Predicate
from tidegate.language.values import Kind
from tidegate.matching.rows.kernels.cell_kinds import FLOAT, INTEGER, TIME

COMPARED, DELAY, AHEAD, BACK = "compared", "delay", "ahead", "back"
"""Forms of judgements, beside the texts of string operators."""

JUDGEMENTS_MAX = 128
"""Every event is judged as often; comparisons beyond that are verified when all else matches."""

SHIFT_MAX_US = 2**52
"""Timestamps that are shifted by so much are verified."""


class Judgement(NamedTuple):
    """What is compared: an attribute with a common operand, and in which form."""

    attribute: str
    form: str
    operand: Expression


class Shifts(NamedTuple):
    """A common operand to which numbers of seconds are added, or from which they are subtracted."""

    base: Expression
    steps: tuple[tuple[str, Expression], ...]
    """`+` or `-`, and an expression of constants, in the order in which they are computed."""


def is_common(operand: Expression) -> bool:
    """Whether an operand is computed from variables and `now()` alone."""
    return all(isinstance(leaf, (Variable, Now)) for leaf in leaves(operand))


def parse_operand(text: str) -> Expression:
    """The common operand that `format_expression` has written."""
    node = parse(f"x = {text}").node
    assert isinstance(node, Predicate)
    return node.operands[0]


def names_now(operand: Expression) -> bool:
    """Whether an operand depends on `now()`."""
    return any(isinstance(leaf, Now) for leaf in leaves(operand))


def depends_on_now(shape: Shape) -> bool:
    """Whether a shape has an operand that depends on `now()`."""
    return any(
        names_now(operand)
        for conjunction in shape.disjuncts
        for predicate in conjunction
        for operand in predicate.operands
    )


def shifts_of(operand: Expression) -> Shifts | None:
    """An operand such as `now() - :a` or `60 + @deadline`, taken apart; None for others."""
    match operand:
        case Arithmetic("+" | "-" as operator, left, right) if _is_constant(right):
            before = Shifts(left, ()) if is_common(left) else shifts_of(left)
            step = (operator, right)
        case Arithmetic("+", left, right) if _is_constant(left):
            before = Shifts(right, ()) if is_common(right) else shifts_of(right)
            step = ("+", left)
        case _:
            return None
    return None if before is None else Shifts(before.base, (*before.steps, step))


def _is_constant(expression: Expression) -> bool:
    return all(isinstance(leaf, Slot) for leaf in leaves(expression))


def bases_of(shape: Shape) -> frozenset[tuple[str, Expression]]:
    """The attributes and common operands for which entries of a shape may have judgements."""
    found: set[tuple[str, Expression]] = set()
    for conjunction in shape.disjuncts:
        for predicate in conjunction:
            for operand in predicate.operands:
                if is_common(operand):
                    found.add((predicate.attribute, operand))
                elif (shifts := shifts_of(operand)) is not None:
                    found.add((predicate.attribute, shifts.base))
    return frozenset(found)


def kinds_of(
    operand: Expression, cells: tuple[int, ...], variables: Mapping[str, frozenset[Kind]]
) -> frozenset[Kind]:
    """The kinds, NUMBER and TIME, that a computed operand can have; none if it is undefined.

    ``cells`` are the kinds of a row's cells, ``variables`` those of variables that are not numbers.
    """
    match operand:
        case Slot(index):
            return _OF_CELL.get(cells[index], _NONE)
        case Variable(name):
            return variables.get(name, _NUMBER)
        case Now():
            return _TIME
        case Arithmetic(operator, left, right):
            a, b = kinds_of(left, cells, variables), kinds_of(right, cells, variables)
            found = {Kind.NUMBER} if Kind.NUMBER in a & b else set()
            if operator == "-" and Kind.TIME in a & b:
                found.add(Kind.NUMBER)
            if operator in ("+", "-") and Kind.TIME in a and Kind.NUMBER in b:
                found.add(Kind.TIME)
            if operator == "+" and Kind.NUMBER in a and Kind.TIME in b:
                found.add(Kind.TIME)
            return frozenset(found)
    # `t`, negation and functions: numbers of numbers
    parts = [kinds_of(part, cells, variables) for part in children(operand)]
    return _NUMBER if all(Kind.NUMBER in part for part in parts) else _NONE


_NONE: frozenset[Kind] = frozenset()
_NUMBER, _TIME = frozenset([Kind.NUMBER]), frozenset([Kind.TIME])
_OF_CELL = {INTEGER: _NUMBER, FLOAT: _NUMBER, TIME: _TIME}
