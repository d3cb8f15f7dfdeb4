"""Shapes by number: equal shapes have equal numbers, from 0 on."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.language.expressions import ParameterRef
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import Row, Shape, split

_NO_LIMITS = Limits(10**9, 1000, 10**9, 10**9)
"""For texts of snapshots: their filters were accepted before, perhaps with other limits."""


class ShapeNumbers:
    """The shapes of a table's subscriptions, by number, with the widths of their rows."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.shapes: list[Shape] = []
        self.widths: list[int] = []
        self._numbers: dict[Shape, int] = {}
        for text in texts:
            shape = shape_from_text(text)
            self._number(shape, shape.width)

    def numbers(self, split: Iterable[tuple[Shape, Row]]) -> list[int]:
        """The numbers of shapes, given with a row each; new shapes are added.

        Looked up by identity first, because hashing a shape walks over all of it, and of filters
        that are read in bulk many have the same shape object.
        """
        known: dict[int, int] = {}
        numbers: list[int] = []
        for shape, row in split:
            number = known.get(id(shape))
            if number is None:
                number = known[id(shape)] = self._number(shape, len(row))
            numbers.append(number)
        return numbers

    def _number(self, shape: Shape, width: int) -> int:
        number = self._numbers.setdefault(shape, len(self.shapes))
        if number == len(self.shapes):
            self.shapes.append(shape)
            self.widths.append(width)
        return number

    def texts(self) -> list[str]:
        """All shapes as texts, in the order of their numbers."""
        return [shape_text(shape) for shape in self.shapes]


def shape_text(shape: Shape) -> str:
    """A shape as the text of a filter, with a parameter for each slot."""
    return str(shape.fill(tuple(ParameterRef(f"s{slot}") for slot in range(shape.width))))


def shape_from_text(text: str) -> Shape:
    """The shape that ``shape_text`` wrote."""
    shape, _ = split(parse_filter(text, _NO_LIMITS))
    return shape
