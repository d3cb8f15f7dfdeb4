"""A growing list of texts as an Arrow array, of which only what has changed is made anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOCK_TEXTS = 4_096


class TextColumn:
    """The texts of numbers as Arrow has them; ``texts`` gives those from one number to another.

    >>> names = ["a", "b"]
    >>> column = TextColumn(lambda begin, end: names[begin:end])
    >>> column.array(2).to_pylist()
    ['a', 'b']
    >>> names[1] = "c"
    >>> column.has_changed(np.array([1]))
    >>> column.array(2).to_pylist()
    ['a', 'c']
    """

    def __init__(
        self, texts: Callable[[int, int], Sequence[str | None]], known: Any = None
    ) -> None:
        self._texts = texts
        self._array: Any = pa.array([], pa.string()) if known is None else known
        self._changed: set[int] = set()

    def has_changed(self, numbers: npt.NDArray[Any]) -> None:
        """Note that numbers have other texts now."""
        self._changed.update(np.unique(numbers // BLOCK_TEXTS).tolist())

    def array(self, count: int) -> pa.StringArray:
        """The texts of all numbers below ``count``."""
        if self._changed or len(self._array) != count:
            old = len(self._array) // BLOCK_TEXTS  # blocks that are whole
            blocks: list[Any] = []
            for block in range(-(-count // BLOCK_TEXTS)):
                begin, end = block * BLOCK_TEXTS, min(count, (block + 1) * BLOCK_TEXTS)
                if block < old and block not in self._changed:
                    blocks.append(self._array.slice(begin, end - begin))
                else:
                    blocks.append(pa.array(self._texts(begin, end), pa.string()))
            self._array = pa.concat_arrays(blocks) if blocks else pa.array([], pa.string())
            self._changed.clear()
        array: pa.StringArray = self._array
        return array
