"""The values of subscriptions: a row of cells for each subscription, without Python objects.

A cell is a kind (see kernels/cell_kinds.py) and 64 bits: an integer, the bits of a float,
microseconds, a boolean, or the number of a string in a pool. So a million subscriptions cost tens
of bytes each. A cell whose value comes from a parameter holds the parameter's current value.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from datetime import datetime

import numpy as np
import numpy.typing as npt

from tidegate.language.values import Value, from_us, to_us
from tidegate.matching.rows.kernels.cell_kinds import (
    BOOLEAN,
    FLOAT,
    INTEGER,
    NUMBERS,
    STRING,
    TIME,
    UNDEFINED,
)
from tidegate.matching.rows.kernels.flags import EXACT_MAX
from tidegate.matching.rows.store.snapshot_file import SectionReader, SectionWriter
from tidegate.matching.rows.store.uses import FORGOTTEN, UseCounts

SPARSE_MIN = 4_096
"""Fewer cells of removed rows than this are not worth moving the others together."""

_KIND_OF: dict[type, int] = {
    type(None): UNDEFINED,
    bool: BOOLEAN,
    int: INTEGER,
    float: FLOAT,
    str: STRING,
    datetime: TIME,
}

_PACK_FLOAT, _UNPACK_FLOAT = struct.Struct("<d").pack, struct.Struct("<d").unpack
_PACK_INT, _UNPACK_INT = struct.Struct("<q").pack, struct.Struct("<q").unpack

Kinds = npt.NDArray[np.uint8]
Cells = npt.NDArray[np.int64]


_NO_TEXT = ""
"""In place of the text of a number that is free."""


class StringPool:
    """Strings by number: equal strings have equal numbers, from 0 on.

    A string is in the pool as long as ``uses`` counts cells with its number; ``forget`` removes
    those without any, and their numbers are given out again. ``uses`` are the counts of ``texts``;
    without them these stay for ever.
    """

    def __init__(self, texts: Sequence[str] = (), uses: Sequence[int] | None = None) -> None:
        self._texts = list(texts)
        self.uses = UseCounts([1] * len(texts) if uses is None else uses)
        self._numbers = {
            text: number
            for number, text in enumerate(self._texts)
            if uses is None or uses[number] != FORGOTTEN
        }

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, text: str) -> int:
        """The number of a string, which is added, without uses, if it is new."""
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = self.uses.new()
            if number == len(self._texts):
                self._texts.append(text)
            else:
                self._texts[number] = text
        return number

    def find(self, text: str) -> int:
        """The number of a string; -1 if it is not in the pool."""
        return self._numbers.get(text, -1)

    def text(self, number: int) -> str:
        """The string with a number."""
        return self._texts[number]

    def texts(self) -> list[str]:
        """All strings, in the order of their numbers; an empty one for a free number."""
        return self._texts

    def forget(self) -> list[str]:
        """Remove the strings that no cell has; returns them."""
        forgotten: list[str] = []
        for number in self.uses.forget():
            forgotten.append(self._texts[number])
            del self._numbers[self._texts[number]]
            self._texts[number] = _NO_TEXT
        return forgotten


def encode(value: Value | None, pool: StringPool) -> tuple[int, int]:
    """A value as a kind and a cell."""
    if value is None:
        return UNDEFINED, 0
    if isinstance(value, bool):  # before int, of which it is a subclass
        return BOOLEAN, int(value)
    if isinstance(value, int):
        return INTEGER, value
    if isinstance(value, float):
        return FLOAT, _UNPACK_INT(_PACK_FLOAT(value))[0]
    if isinstance(value, str):
        return STRING, pool.number(value)
    return TIME, to_us(value)


def decode(kind: int, cell: int, pool: StringPool) -> Value | None:
    """The value of a cell, which ``encode`` wrote; None for UNDEFINED."""
    if kind == BOOLEAN:
        return bool(cell)
    if kind == INTEGER:
        return int(cell)
    if kind == FLOAT:
        return float(_UNPACK_FLOAT(_PACK_INT(cell))[0])
    if kind == STRING:
        return pool.text(cell)
    if kind == TIME:
        time: datetime | None = from_us(int(cell))
        return time
    return None


def encode_all(values: Sequence[Value | None], pool: StringPool) -> tuple[Kinds, Cells]:
    """Many values as kinds and cells: as ``encode`` for each, but a kind at a time and quicker."""
    kinds: Kinds = np.fromiter(map(_KIND_OF.__getitem__, map(type, values)), np.uint8, len(values))
    cells: Cells = np.zeros(len(values), np.int64)
    objects: npt.NDArray[np.object_] = np.empty(len(values), np.object_)
    objects[:] = values
    for kind in {_KIND_OF[each] for each in set(map(type, values))}:
        chosen = kinds == kind
        some = objects[chosen]
        if kind == FLOAT:
            cells[chosen] = some.astype(np.float64).view(np.int64)
        elif kind == STRING:
            cells[chosen] = [pool.number(text) for text in some]
        elif kind == TIME:
            cells[chosen] = [to_us(time) for time in some]
        elif kind != UNDEFINED:
            cells[chosen] = some.astype(np.int64)
    return kinds, cells


class RowHeap:
    """The cells of all rows, one row after the other; a row is known by where it begins.

    One heap for all shapes, because there may be as many shapes as subscriptions. The cells of a
    removed row are used again for a row of the same width: workloads have few widths, so that
    wastes little and needs no search for a gap that fits. Cells of strings are counted as uses of
    these by the ``pool``; cells of removed rows are UNDEFINED.
    """

    def __init__(self, pool: StringPool) -> None:
        self._pool = pool
        self.kinds: Kinds = np.zeros(64, np.uint8)
        self.cells: Cells = np.zeros(64, np.int64)
        self._length = 0
        self._free: dict[int, list[int]] = {}  # starts of removed rows, by width
        self.free_cells = 0

    def append(self, kinds: Kinds, cells: Cells) -> Cells:
        """Add rows of one width, given as matrices; returns where each begins."""
        count, width = kinds.shape
        self._pool.uses.add(cells[kinds == STRING].tolist())
        free = self._free.get(width, [])
        reused = [free.pop() for _ in range(min(len(free), count))]
        self.free_cells -= len(reused) * width
        fresh = np.arange(count - len(reused)) * width + self._length
        self._length += len(fresh) * width
        self._reserve(self._length)
        starts = np.concatenate([np.array(reused, np.int64), fresh.astype(np.int64)])
        cells_at = starts[:, None] + np.arange(width)
        self.kinds[cells_at], self.cells[cells_at] = kinds, cells
        return starts

    def write(self, at: int, kind: int, cell: int) -> bool:
        """Write a cell; returns whether its kind stays: the same one, or both are numbers.

        Integers and floats share a channel, so the entry can be rewritten in place.
        """
        before = self.kinds.item(at)
        if kind == STRING:
            self._pool.uses.add_one(cell)
        if before == STRING:
            self._pool.uses.remove([self.cells.item(at)])
        self.kinds[at] = kind
        self.cells[at] = cell
        return before == kind or (before in NUMBERS and kind in NUMBERS)

    def write_all(self, at: Cells, kinds: Kinds, cells: Cells) -> npt.NDArray[np.bool_]:
        """As ``write`` for many distinct cells."""
        before = self.kinds[at]
        self._pool.uses.add(cells[kinds == STRING].tolist())
        self._pool.uses.remove(self.cells[at[before == STRING]].tolist())
        self.kinds[at], self.cells[at] = kinds, cells
        same: npt.NDArray[np.bool_] = before == kinds
        return same | (np.isin(before, NUMBERS) & np.isin(kinds, NUMBERS))

    def remove(self, start: int, width: int) -> None:
        """Free the cells of a row for reuse."""
        kinds, cells = self.kinds[start : start + width], self.cells[start : start + width]
        self._pool.uses.remove(cells[kinds == STRING].tolist())
        kinds[:] = UNDEFINED
        self._free.setdefault(width, []).append(start)
        self.free_cells += width

    def long_numbers(self) -> set[int | float]:
        """The numbers in all cells whose absolute value is 2**53 or more; times in microseconds."""
        kinds, cells = self.kinds[: self._length], self.cells[: self._length]
        whole = cells[(kinds == INTEGER) | (kinds == TIME)]
        floats = cells[kinds == FLOAT].view(np.float64)
        return {
            *whole[(whole >= EXACT_MAX) | (whole <= -EXACT_MAX)].tolist(),
            *floats[np.abs(floats) >= EXACT_MAX].tolist(),
        }

    def is_sparse(self) -> bool:
        """Whether most of the cells are those of removed rows."""
        return self.free_cells > max(SPARSE_MIN, self._length - self.free_cells)

    def compact(self, starts: Cells, widths: npt.NDArray[np.int64]) -> Cells:
        """Move all rows together, given where they begin; returns where each begins now."""
        moved = np.cumsum(widths) - widths
        length = int(widths.sum())
        which = np.repeat(starts - moved, widths) + np.arange(length)
        self.kinds, self.cells = self.kinds[which], self.cells[which]
        self._length, self._free, self.free_cells = length, {}, 0
        return moved

    def save(self, into: SectionWriter, left_out: Sequence[tuple[int, int]] = ()) -> None:
        """Add the rows, and the strings that they use, to a snapshot.

        ``left_out`` are rows, by start and width, that count as removed there.
        """
        kinds, cells = self.kinds[: self._length], self.cells[: self._length]
        free = {width: list(starts) for width, starts in self._free.items()}
        if left_out:
            kinds = kinds.copy()
        for start, width in left_out:
            kinds[start : start + width] = UNDEFINED
            free.setdefault(width, []).append(start)
        into.array("row.kinds", kinds)
        into.array("row.cells", cells)
        into.note("row.free", sorted(free.items()))
        texts = self._pool.texts()
        uses = np.bincount(cells[kinds == STRING], minlength=len(texts))
        into.texts("strings", texts)
        into.array("strings.uses", np.where(uses == 0, FORGOTTEN, uses).astype(np.int64))

    @classmethod
    def load(cls, source: SectionReader) -> RowHeap:
        """The rows of a snapshot, with a pool of their strings."""
        uses = source.array("strings.uses").tolist()
        heap = cls(StringPool(source.texts("strings").to_pylist(), uses))
        heap.kinds, heap.cells = source.array("row.kinds"), source.array("row.cells")
        heap._length = len(heap.kinds)
        heap._free = dict(source.note("row.free"))
        heap.free_cells = sum(width * len(starts) for width, starts in heap._free.items())
        return heap

    @property
    def pool(self) -> StringPool:
        """The strings of the cells."""
        return self._pool

    def _reserve(self, length: int) -> None:
        if length <= len(self.kinds):
            return
        capacity = max(length, 2 * len(self.kinds))
        for name in ("kinds", "cells"):
            old = getattr(self, name)
            new = np.zeros(capacity, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)
