"""Shapes by number: equal shapes have equal numbers, from 0 on.

A shape that no subscription has is forgotten, and its number given to another one, once enough of
them are unused: one that comes and goes with a single subscription is likely to come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tidegate.language.expressions import ParameterRef
from tidegate.language.limits import Limits
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.shapes import Row, Shape, split
from tidegate.matching.rows.store.uses import FORGOTTEN, UseCounts

_NO_LIMITS = Limits(10**9, 1000, 10**9, 10**9)
"""For texts of snapshots: their filters were accepted before, perhaps with other limits."""


_NO_SHAPE = Shape(())
"""In place of the shape of a number that is free."""

UNUSED_SHAPES_MAX = 32
"""Default number of shapes that are kept though no subscription has them."""


class ShapeNumbers:
    """The shapes of a table's subscriptions, by number, with the widths of their rows.

    ``uses`` counts the subscriptions of each. ``texts`` are those of shapes with given counts.
    """

    def __init__(
        self,
        texts: Sequence[str] = (),
        counts: Sequence[int] = (),
        *,
        unused_max: int = UNUSED_SHAPES_MAX,
    ) -> None:
        self._unused_max = unused_max
        self.uses = UseCounts(counts)
        self.shapes: list[Shape] = []
        self.widths: list[int] = []
        self._numbers: dict[Shape, int] = {}
        for number, (text, count) in enumerate(zip(texts, counts, strict=True)):
            shape = _NO_SHAPE if count == FORGOTTEN else shape_from_text(text)
            self.shapes.append(shape)
            self.widths.append(shape.width)
            if count != FORGOTTEN:
                self._numbers[shape] = number

    def __len__(self) -> int:
        return len(self._numbers)

    def items(self) -> Iterator[tuple[int, Shape]]:
        """All shapes, each with its number."""
        return ((number, shape) for shape, number in self._numbers.items())

    def numbers(self, split: Iterable[tuple[Shape, Row]]) -> list[int]:
        """The numbers of shapes, given with a row each; new shapes are added, without uses.

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
        number = self._numbers.get(shape)
        if number is None:
            number = self._numbers[shape] = self.uses.new()
            if number == len(self.shapes):
                self.shapes.append(shape)
                self.widths.append(width)
            else:
                self.shapes[number], self.widths[number] = shape, width
        return number

    def forget(self, keep: int | None = None) -> list[int]:
        """Forget the shapes that were unused longest, if they are too many; returns their numbers.

        ``keep`` is how many are not, in place of ``unused_max``.

        What is known of the numbers elsewhere has to be forgotten before another one is added.
        """
        forgotten = self.uses.forget(self._unused_max if keep is None else keep)
        for number in forgotten:
            del self._numbers[self.shapes[number]]
            self.shapes[number], self.widths[number] = _NO_SHAPE, 0
        return forgotten

    def texts(self) -> list[str]:
        """All shapes as texts, in the order of their numbers; empty for a free number."""
        return ["" if each is _NO_SHAPE else shape_text(each) for each in self.shapes]


def shape_text(shape: Shape) -> str:
    """A shape as the text of a filter, with a parameter for each slot."""
    return str(shape.fill(tuple(ParameterRef(f"s{slot}") for slot in range(shape.width))))


def shape_from_text(text: str) -> Shape:
    """The shape that ``shape_text`` wrote."""
    shape, _ = split(parse_filter(text, _NO_LIMITS))
    return shape
