"""Templates: the shape of some texts, and how to make the row of each from its literals.

Two texts that differ only in their literals parse alike: the grammar treats all strings alike and
all numbers alike, and a shape does not depend on the values (shapes.py). So what was learned from
one text, its shape and, for each slot, which literal fills it, holds for the other.

A literal can still be invalid by itself: of another kind, with a bad escape in a pattern, with too
many digits. Whatever looks unusual raises `UnusualLiteralError`, and the text is parsed in full; so
errors are the parser's own, and the converters below only need to know the common cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tidegate.errors import BadValueError
from tidegate.language.expressions import Constant, ParameterRef, Slot
from tidegate.language.parsing.tokens import TokenKind, unquote
from tidegate.language.parsing.value_parser import Literal
from tidegate.language.shapes import Row, Shape, row_of, shift_slots, sort_key
from tidegate.language.syntax import Operator, Predicate
from tidegate.language.values import Value, parse_timestamp, to_value

_INT_DIGITS_SAFE = 18  # any number of 18 digits fits in 64 bits; of 19 not all do
_INFINITY = float("inf")

Fill = tuple[int, int, Callable[[str], Value]]
"""A slot, the number of the literal that fills it, and the conversion from its text."""


class UnusualLiteralError(Exception):
    """A literal that only the full parser can convert or refuse."""


@dataclass(frozen=True, slots=True)
class Template:
    """The shape of some texts, and how the row of each is made from its literals.

    ``base`` is the row of the text it was learned from: it has the cells that are not literals
    (parameters, `true`, `infinity`), and ``fills`` overwrites the others.
    """

    shape: Shape
    base: Row
    fills: tuple[Fill, ...]

    @classmethod
    def of(
        cls, shape: Shape, filled: list[Constant | ParameterRef], literals: list[Literal]
    ) -> Template:
        """The template of a text that was parsed and split."""
        # By identity: equal constants at two places of a text are two literals.
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
        """The predicates of a template that is a conjunction, each as a term of its own."""
        terms: list[Term] = []
        begin = 0
        for predicate in self.shape.disjuncts[0]:
            end = begin + Shape(((predicate,),)).width
            fills = [
                (slot - begin, literal, convert)
                for slot, literal, convert in self.fills
                if begin <= slot < end
            ]
            alone = shift_slots(predicate, -begin)
            terms.append(Term(sort_key(predicate), alone, self.base[begin:end], tuple(fills)))
            begin = end
        return tuple(terms)


@dataclass(frozen=True, slots=True)
class Term:
    """A predicate that can be part of many conjunctions; its slots are counted from 0.

    ``_placed`` caches the predicate for each first slot that it had so far, so that its operands
    are not rebuilt for every text; a workload has few.
    """

    sort_key: tuple[str, str, list[str]]
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
            predicate = self._placed[slot] = shift_slots(self.predicate, slot)
        return predicate


def conjunction(terms: Iterable[tuple[Term, int]]) -> Template:
    """The template of terms joined by `and`, each with the number of literals before its own."""
    predicates: list[Predicate] = []
    base: list[Value | ParameterRef] = []
    fills: list[Fill] = []
    for term, before in sorted(terms, key=_sort_key):
        begin = len(base)
        predicates.append(term.placed(begin))
        base += term.base
        for slot, literal, convert in term.fills:
            fills.append((begin + slot, before + literal, convert))
    return Template(Shape((tuple(predicates),)), tuple(base), tuple(fills))


def _sort_key(placed: tuple[Term, int]) -> tuple[str, str, list[str]]:
    return placed[0].sort_key


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

# A later text may have a string where the first one had a number. Each converter checks that its
# literal has the form of the first one; what the parser must look at raises UnusualLiteralError.


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
    if "\\" in text:  # an escape, which may be malformed
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
