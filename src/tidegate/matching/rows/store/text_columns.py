"""A growing list of texts as an Arrow array that is rebuilt only where texts have changed.

Results of batches are dictionary arrays whose dictionary has the ids of all numbers. Building it
again for each batch would copy a million strings because of one new subscription.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

BLOCK_TEXTS = 4_096
"""Default number of texts that are rebuilt together."""


class TextColumn:
    """The texts of numbers as an Arrow array.

    ``texts`` returns the texts from one number to before another; ``known`` is an array of them, if
    there is one already. An array that was returned stays as it is: changes make another one.

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
        self,
        texts: Callable[[int, int], Sequence[str | None]],
        known: Any = None,
        *,
        block_texts: int = BLOCK_TEXTS,
    ) -> None:
        self._texts = texts
        self._block_texts = block_texts
        self._array: Any = pa.array([], pa.string()) if known is None else known
        self._changed: set[int] = set()  # blocks

    def has_changed(self, numbers: npt.NDArray[Any]) -> None:
        """Note that numbers have other texts now."""
        self._changed.update(np.unique(numbers // self._block_texts).tolist())

    def array(self, count: int) -> pa.StringArray:
        """The texts of all numbers below ``count``."""
        if self._changed or len(self._array) != count:
            size = self._block_texts
            whole = len(self._array) // size  # the block after these may have grown
            blocks: list[Any] = []
            for block in range(-(-count // size)):
                begin, end = block * size, min(count, (block + 1) * size)
                if block < whole and block not in self._changed:
                    blocks.append(self._array.slice(begin, end - begin))
                else:
                    blocks.append(pa.array(self._texts(begin, end), pa.string()))
            self._array = pa.concat_arrays(blocks) if blocks else pa.array([], pa.string())
            self._changed.clear()
        array: pa.StringArray = self._array
        return array
