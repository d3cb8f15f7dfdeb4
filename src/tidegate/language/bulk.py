"""Reading many filters: texts that differ only in their literals are parsed once.

Theory of operation. One regular expression cuts a text at its literals. What is left, the template,
decides how the text parses, because the grammar treats all strings alike and all numbers alike. The
first text of a template is parsed in full, and we keep its shape and, for each slot, which literal
fills it. For every later text the literals are converted and put in their slots. Whatever is
unusual (a literal of another kind, an escape in a pattern, a name in backticks) is parsed in full,
so that errors are the parser's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from tidegate.errors import BadValueError
from tidegate.language.expressions import Constant, Parameter, Slot
from tidegate.language.limits import DEFAULT_LIMITS, Limits
from tidegate.language.parser import Parser
from tidegate.language.shapes import Row, Shape, row_of, split
from tidegate.language.syntax import Operator
from tidegate.language.tokens import TokenKind, unquote
from tidegate.language.value_parser import Literal
from tidegate.language.values import Value, parse_timestamp, to_value

TEMPLATE_CHARS_MAX = 16_000_000
"""How much text of templates a parser keeps before it starts anew."""

# One character class first, because that lets the search skip all other characters quickly. A digit
# behind a letter, a dot, a colon or an @ belongs to a name.
_LITERAL = re.compile(
    r"""(['"0-9](?:
          (?<=')[^']*+(?:''[^']*+)*+'
        | (?<=")[^"]*+(?:""[^"]*+)*+"
        | (?<=[0-9])(?<![\w.:@].)[0-9]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?
    ))""",
    re.VERBOSE,
)
_INT_DIGITS_SAFE = 18  # always fit in 64 bits
_INFINITY = float("inf")


class _UnusualError(Exception):
    """A literal that the parser has to look at."""


@dataclass(frozen=True, slots=True)
class _Template:
    """How to make the row of a text from its literals."""

    shape: Shape
    base: Row
    fills: tuple[tuple[int, int, Callable[[str], Value]], ...]

    def row(self, literals: list[str]) -> Row:
        row = list(self.base)
        for slot, literal, convert in self.fills:
            row[slot] = convert(literals[literal])
        return tuple(row)


class BulkParser:
    """Splits filter texts into shapes and rows; the more they repeat, the faster.

    >>> parser = BulkParser()
    >>> shape, row = parser.read("price < 10 and symbol = 'IBM'")
    >>> print(shape, row)
    price < ? and symbol = ? (10, 'IBM')
    >>> parser.read("price < 12.5 and symbol = 'SUN'") == (shape, (12.5, 'SUN'))
    True
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._templates: dict[tuple[str, ...], _Template] = {}
        self._template_chars = 0
        self._shapes: dict[Shape, Shape] = {}

    def read(self, text: str) -> tuple[Shape, Row]:
        """The shape and row of one text; raises FilterError."""
        if isinstance(text, str) and len(text) <= self._limits.length_chars_max:
            pieces = _LITERAL.split(text)
            template = self._templates.get(tuple(pieces[::2]))
            if template is not None:
                try:
                    return template.shape, template.row(pieces[1::2])
                except _UnusualError:
                    pass
        return self._read_in_full(text)

    def read_many(self, texts: Iterable[str]) -> Iterator[tuple[Shape, Row]]:
        """The shapes and rows of many texts, in their order."""
        return map(self.read, texts)

    def _read_in_full(self, text: str) -> tuple[Shape, Row]:
        parser = Parser(text, self._limits)
        shape, filled = split(parser.filter())
        if _is_plain(text, filled, parser.literals):
            shape = self._keep(text, shape, filled, parser.literals)
        return shape, row_of(filled)

    def _keep(
        self,
        text: str,
        shape: Shape,
        filled: list[Constant | Parameter],
        literals: list[Literal],
    ) -> Shape:
        """Remember how texts like this one are read; gives the shape that all of them share."""
        self._template_chars += len(text)
        if self._template_chars > TEMPLATE_CHARS_MAX:
            self._templates.clear()
            self._shapes.clear()
            self._template_chars = len(text)
        shape = self._shapes.setdefault(shape, shape)
        self._templates[tuple(_LITERAL.split(text)[::2])] = _template(shape, filled, literals)
        return shape


def _is_plain(text: str, filled: list[Constant | Parameter], literals: list[Literal]) -> bool:
    """Whether the cut found the literals that the parser found, and each of them has a slot.

    One without a slot, as in `true or x < 1`, would go unchecked in later texts.
    """
    found = [cut.span() for cut in _LITERAL.finditer(text)]
    used = {id(leaf) for leaf in filled}
    return found == [(each.token.start, each.token.end) for each in literals] and all(
        id(each.constant) in used for each in literals
    )


def _template(
    shape: Shape, filled: list[Constant | Parameter], literals: list[Literal]
) -> _Template:
    places = {id(literal.constant): index for index, literal in enumerate(literals)}
    patterns = _slots_of_patterns(shape)
    fills: list[tuple[int, int, Callable[[str], Value]]] = []
    for slot, leaf in enumerate(filled):
        place = places.get(id(leaf))
        if place is not None:
            fills.append((slot, place, _converter(literals[place], slot in patterns)))
    return _Template(shape, row_of(filled), tuple(fills))


def _slots_of_patterns(shape: Shape) -> set[int]:
    return {
        operand.index
        for conjunction in shape.disjuncts
        for predicate in conjunction
        if predicate.operator in (Operator.LIKE, Operator.NOT_LIKE)
        for operand in predicate.operands
        if isinstance(operand, Slot)
    }


def _converter(literal: Literal, is_pattern: bool) -> Callable[[str], Value]:
    if literal.timestamp:
        return _timestamp
    if literal.token.kind is TokenKind.STRING:
        return _pattern if is_pattern else _string
    return _negative_number if literal.negated else _number


def _string(text: str) -> str:
    mark = text[0]
    if mark not in "'\"":
        raise _UnusualError
    inner = text[1:-1]
    if mark in inner:
        inner = unquote(text)
    try:
        return inner if inner.isascii() else str(to_value(inner))
    except BadValueError:
        raise _UnusualError from None


def _pattern(text: str) -> str:
    if "\\" in text:
        raise _UnusualError
    return _string(text)


def _timestamp(text: str) -> Value:
    try:
        return parse_timestamp(_string(text))
    except BadValueError:
        raise _UnusualError from None


def _number(text: str) -> int | float:
    if text.isdecimal():
        if len(text) > _INT_DIGITS_SAFE:
            raise _UnusualError
        return int(text)
    try:
        number = float(text)
    except ValueError:
        raise _UnusualError from None
    if number == _INFINITY:
        raise _UnusualError
    return number


def _negative_number(text: str) -> int | float:
    return -_number(text)
