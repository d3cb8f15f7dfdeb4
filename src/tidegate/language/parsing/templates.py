"""Templates: how to make the shape and row of a text from its literals.

Two texts that differ only in their literals parse alike, because the grammar treats all strings
alike and all numbers alike. So what was learned from one text, its shape and, for each slot, which
literal fills it, is good for the other. What is unusual about a literal (another kind, an escape in
a pattern, too many digits) is left to the parser, so that errors are the parser's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidegate.errors import BadValueError
from tidegate.language.expressions import Constant, ParameterRef, Slot
from tidegate.language.parsing.tokens import TokenKind, unquote
from tidegate.language.parsing.value_parser import Literal
from tidegate.language.shapes import Row, Shape, order, row_of, shifted
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import Value, parse_timestamp, to_value

_INT_DIGITS_SAFE = 18  # always fit in 64 bits
_INFINITY = float("inf")

Fill = tuple[int, int, Callable[[str], Value]]
"""A slot, the number of the literal that fills it, and how that is converted."""


class UnusualLiteralError(Exception):
    """A literal that the parser has to look at."""


@dataclass(frozen=True, slots=True)
class Template:
    """The shape of some texts, and how the row of each is made from its literals."""

    shape: Shape
    base: Row
    fills: tuple[Fill, ...]

    @classmethod
    def of(
        cls, shape: Shape, filled: list[Constant | ParameterRef], literals: list[Literal]
    ) -> Template:
        """What is learned from a text that was parsed and split."""
        places = {id(literal.constant): index for index, literal in enumerate(literals)}
        patterns = _slots_of_patterns(shape)
        fills: list[Fill] = []
        for slot, leaf in enumerate(filled):
            place = places.get(id(leaf))
            if place is not None:
                fills.append((slot, place, _converter(literals[place], slot in patterns)))
        return cls(shape, row_of(filled), tuple(fills))

    def row(self, literals: Sequence[str]) -> Row:
        """The row of a text with these literals; raises UnusualLiteralError."""
        row = list(self.base)
        for slot, literal, convert in self.fills:
            row[slot] = convert(literals[literal])
        return tuple(row)

    def terms(self) -> tuple[Term, ...]:
        """The predicates of a template that is a conjunction, each by itself."""
        terms: list[Term] = []
        begin = 0
        for predicate in self.shape.disjuncts[0]:
            end = begin + Shape(((predicate,),)).width
            fills = [
                (slot - begin, literal, convert)
                for slot, literal, convert in self.fills
                if begin <= slot < end
            ]
            alone = shifted(predicate, -begin)
            terms.append(Term(order(predicate), alone, self.base[begin:end], tuple(fills)))
            begin = end
        return tuple(terms)


@dataclass(frozen=True, slots=True)
class Term:
    """A predicate that can be part of many conjunctions; its slots are counted from 0."""

    order: tuple[str, str, list[str]]
    predicate: Predicate
    base: Row
    fills: tuple[Fill, ...]
    _placed: dict[int, Predicate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def placed(self, slot: int) -> Predicate:
        """The predicate with its slots counted from ``slot``."""
        predicate = self._placed.get(slot)
        if predicate is None:
            predicate = self._placed[slot] = shifted(self.predicate, slot)
        return predicate


def conjunction(terms: Iterable[tuple[Term, int]]) -> Template:
    """The template of terms joined by `and`, each with how many literals stand before its own."""
    predicates: list[Predicate] = []
    base: list[Value | ParameterRef] = []
    fills: list[Fill] = []
    for term, before in sorted(terms, key=_order):
        begin = len(base)
        predicates.append(term.placed(begin))
        base += term.base
        for slot, literal, convert in term.fills:
            fills.append((begin + slot, before + literal, convert))
    return Template(Shape((tuple(predicates),)), tuple(base), tuple(fills))


def _order(placed: tuple[Term, int]) -> tuple[str, str, list[str]]:
    return placed[0].order


def _slots_of_patterns(shape: Shape) -> set[int]:
    return {
        operand.index
        for conjunction in shape.disjuncts
        for predicate in conjunction
        if predicate.operator in (Operator.LIKE, Operator.NOT_LIKE)
        for operand in predicate.operands
        if isinstance(operand, Slot)
    }


# -- from literals to values ------------------------------------------------------------------


def _converter(literal: Literal, is_pattern: bool) -> Callable[[str], Value]:
    if literal.timestamp:
        return _timestamp
    if literal.token.kind is TokenKind.STRING:
        return _pattern if is_pattern else _string
    return _negative_number if literal.negated else _number


def _string(text: str) -> str:
    mark = text[0]
    if mark not in "'\"":
        raise UnusualLiteralError
    inner = text[1:-1]
    if mark in inner:
        inner = unquote(text)
    try:
        return inner if inner.isascii() else str(to_value(inner))
    except BadValueError:
        raise UnusualLiteralError from None


def _pattern(text: str) -> str:
    if "\\" in text:
        raise UnusualLiteralError
    return _string(text)


def _timestamp(text: str) -> Value:
    try:
        return parse_timestamp(_string(text))
    except BadValueError:
        raise UnusualLiteralError from None


def _number(text: str) -> int | float:
    if text.isdecimal():
        if len(text) > _INT_DIGITS_SAFE:
            raise UnusualLiteralError
        return int(text)
    try:
        number = float(text)
    except ValueError:
        raise UnusualLiteralError from None
    if number == _INFINITY:
        raise UnusualLiteralError
    return number


def _negative_number(text: str) -> int | float:
    return -_number(text)
