"""Finds the string rows that a text satisfies.

Equalities are looked up by hash, and a row that every text satisfies is kept apart: a LIKE row may
be the same pattern, and the same pattern has one number. The other rows are found by
`string_patterns.py`, which numbers patterns and never takes a number back. So a row that is removed
leaves its number behind; when more numbers are left behind than in use, the patterns are numbered
anew, which costs no more for each removal than adding a row does.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from tidegate.language.algebra.like import escape
from tidegate.language.syntax import Operator
from tidegate.matching.string_patterns import StringPatterns
from tidegate.matching.summary.row_patterns import outline_of, pieces_of
from tidegate.matching.summary.tables import RowKind, RowPattern

_UNUSED_MIN = 64
"""Fewer numbers than this are left behind without more ado."""

T = TypeVar("T")

_OPERATORS = {
    RowKind.PREFIX: Operator.STARTS_WITH,
    RowKind.SUFFIX: Operator.ENDS_WITH,
    RowKind.CONTAINS: Operator.CONTAINS,
}


class RowFinder(Generic[T]):
    """Items by the row pattern that finds them, one for each pattern.

    >>> finder = RowFinder[int]()
    >>> finder.add(RowPattern(RowKind.PREFIX, ("tide",)), 1)
    >>> finder.add(RowPattern(RowKind.EQUAL, ("tidegate",)), 2)
    >>> finder.find("tidegate")
    [2, 1]
    """

    def __init__(self) -> None:
        self._equal: dict[str, T] = {}
        self._any: list[T] = []
        self._general: dict[RowPattern, T] = {}
        self._patterns = StringPatterns()
        self._pattern_of: list[RowPattern] = []
        self._unused = 0
        self._flushed = True

    def add(self, pattern: RowPattern, item: T) -> None:
        """Add a pattern with its item; it must not be there yet."""
        if pattern.kind is RowKind.EQUAL:
            self._equal[pattern.parts[0]] = item
            return
        if pattern.kind is RowKind.ANY:
            self._any = [item]
            return
        self._general[pattern] = item
        self._number(pattern)

    def _number(self, pattern: RowPattern) -> None:
        operator = _OPERATORS.get(pattern.kind)
        if operator is None:
            like = "%".join(map(escape, pieces_of(pattern)))
            number = self._patterns.number(Operator.LIKE, like)
        else:
            number = self._patterns.number(operator, pattern.parts[0])
        if number == len(self._pattern_of):
            self._pattern_of.append(pattern)
            self._flushed = False
        else:
            self._unused -= 1  # it was left behind

    def remove(self, pattern: RowPattern) -> None:
        """Remove a pattern and its item."""
        if pattern.kind is RowKind.EQUAL:
            del self._equal[pattern.parts[0]]
            return
        if pattern.kind is RowKind.ANY:
            self._any = []
            return
        del self._general[pattern]
        self._unused += 1
        if self._unused > max(_UNUSED_MIN, len(self._general)):
            self._patterns, self._pattern_of, self._unused = StringPatterns(), [], 0
            for each in self._general:
                self._number(each)

    def find(self, text: str) -> list[T]:
        """The items of all patterns that a text satisfies."""
        items = [self._equal[text]] if text in self._equal else []
        items += self._any
        if self._general:
            items += self._found(text)
        return items

    def covering(self, pattern: RowPattern) -> list[T]:
        """The items of all patterns that cover one."""
        if pattern.kind is RowKind.EQUAL:
            return self.find(pattern.parts[0])
        return self._any + self._found(outline_of(pattern))

    def _found(self, text: str) -> list[T]:
        if not self._flushed:
            self._patterns.flush()
            self._flushed = True
        general, pattern_of = self._general, self._pattern_of
        numbers = self._patterns.satisfied(text).tolist()
        found = (pattern_of[number] for number in numbers)
        return [general[pattern] for pattern in found if pattern in general]
