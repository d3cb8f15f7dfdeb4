"""Subscriptions in columns: one table for each shape, one row for each subscription.

A cell is a kind and 64 bits: an integer, the bits of a float, microseconds, a boolean, or the
number of a string in a pool. So a million subscriptions cost tens of bytes each, and no Python
objects. A cell whose value comes from a parameter holds the parameter's current value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from tidegate.language.shapes import Shape
from tidegate.language.values import Value, from_micros, to_micros
from tidegate.matching.sections import SectionReader, SectionWriter

UNDEFINED, BOOLEAN, INTEGER, FLOAT, STRING, TIME = range(6)
"""Kinds of cells."""

_PACK_FLOAT = struct.Struct("<d").pack
_UNPACK_INT = struct.Struct("<q").unpack

Kinds = npt.NDArray[np.uint8]
Cells = npt.NDArray[np.int64]


class StringPool:
    """Strings by number: equal strings have equal numbers, from 0 on."""

    def __init__(self, texts: Sequence[str] = ()) -> None:
        self._texts = list(texts)
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def number(self, text: str) -> int:
        """The number of a string, which is taken in if it is new."""
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def find(self, text: str) -> int:
        """The number of a string, or -1."""
        return self._numbers.get(text, -1)

    def text(self, number: int) -> str:
        """The string with a number."""
        return self._texts[number]

    def texts(self) -> list[str]:
        """All strings, in the order of their numbers."""
        return self._texts


def encode(value: Value | None, pool: StringPool) -> tuple[int, int]:
    """A value as a kind and a cell."""
    if value is None:
        return UNDEFINED, 0
    if isinstance(value, bool):
        return BOOLEAN, int(value)
    if isinstance(value, int):
        return INTEGER, value
    if isinstance(value, float):
        return FLOAT, _UNPACK_INT(_PACK_FLOAT(value))[0]
    if isinstance(value, str):
        return STRING, pool.number(value)
    return TIME, to_micros(value)


def decode(kind: int, cell: int, pool: StringPool) -> Value | None:
    """The value that a kind and a cell stand for."""
    match kind:
        case 1:
            return bool(cell)
        case 2:
            return int(cell)
        case 3:
            return float(struct.unpack("<d", struct.pack("<q", cell))[0])
        case 4:
            return pool.text(cell)
        case 5:
            time: datetime | None = from_micros(int(cell))
            return time
        case _:
            return None


def encode_column(values: Sequence[Value | None], pool: StringPool) -> tuple[Kinds, Cells]:
    """Many values as kinds and cells; quick where all are of one type."""
    types = set(map(type, values))
    if types == {float}:
        return np.full(len(values), FLOAT, np.uint8), np.array(values, np.float64).view(np.int64)
    if types == {int}:
        return np.full(len(values), INTEGER, np.uint8), np.array(values, np.int64)
    if types == {str}:
        numbers = [pool.number(text) for text in values]  # type: ignore[arg-type]
        return np.full(len(values), STRING, np.uint8), np.array(numbers, np.int64)
    encoded = [encode(value, pool) for value in values]
    kinds, cells = zip(*encoded, strict=True)
    return np.array(kinds, np.uint8), np.array(cells, np.int64)


class ShapeTable:
    """The rows of all subscriptions of one shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.width = shape.width
        self.kinds: Kinds = np.zeros((4, self.width), np.uint8)
        self.cells: Cells = np.zeros((4, self.width), np.int64)
        self.names: npt.NDArray[np.int32] = np.zeros(4, np.int32)
        self.length = 0
        self._free: list[int] = []

    def append(
        self, kinds: Kinds, cells: Cells, names: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Add rows; gives their numbers."""
        count = len(names)
        reused = [self._free.pop() for _ in range(min(len(self._free), count))]
        fresh = count - len(reused)
        self._reserve(self.length + fresh)
        numbers = np.array([*reused, *range(self.length, self.length + fresh)], np.int32)
        self.length += fresh
        self.kinds[numbers], self.cells[numbers], self.names[numbers] = kinds, cells, names
        return numbers

    def write(self, row: int, slot: int, kind: int, cell: int) -> bool:
        """Write a cell; whether it has a value of the same kind as before."""
        before = self.kinds[row, slot]
        self.kinds[row, slot] = kind
        self.cells[row, slot] = cell
        numbers = (INTEGER, FLOAT)
        return bool(before == kind or (before in numbers and kind in numbers))

    def remove(self, number: int) -> None:
        """Give a row's place back."""
        self._free.append(number)

    def save(self, name: str, into: SectionWriter) -> None:
        """Add the rows to a snapshot."""
        into.array(f"{name}.kinds", self.kinds[: self.length])
        into.array(f"{name}.cells", self.cells[: self.length])
        into.array(f"{name}.names", self.names[: self.length])
        into.array(f"{name}.free", np.array(self._free, np.int32))

    @classmethod
    def load(cls, shape: Shape, name: str, source: SectionReader) -> ShapeTable:
        """The rows of a snapshot."""
        table = cls(shape)
        table.names = source.array(f"{name}.names")
        table.length = len(table.names)
        table.kinds = source.array(f"{name}.kinds").reshape(table.length, table.width)
        table.cells = source.array(f"{name}.cells").reshape(table.length, table.width)
        table._free = source.array(f"{name}.free").tolist()
        return table

    def _reserve(self, length: int) -> None:
        if length <= len(self.names):
            return
        capacity = max(length, 2 * len(self.names), 4)
        for name in ("kinds", "cells", "names"):
            old = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
