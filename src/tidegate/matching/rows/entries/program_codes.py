"""The code of all programs, one after the other; a program is known by where it begins.

A dropped program leaves room for another one of its length. Programs stay where they are, because
motions of entries refer to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tidegate.matching.arrays import I32

Code = tuple[int, ...]
"""The code of a program, see kernels/programs.py."""


class ProgramCodes:
    """Programs by their code. ``starts`` are those that exist already, ``free`` is what is free
    between them: starts, and lengths.

    >>> codes = ProgramCodes()
    >>> codes.add((1, 2, 0)), codes.add((3, 0)), codes.add((1, 2, 0))
    (0, 3, 0)
    >>> codes.drop((1, 2, 0))
    >>> codes.add((4, 5, 0)), codes.array.tolist()
    (0, [4, 5, 0, 3, 0, 0])
    """

    def __init__(
        self, starts: Mapping[Code, int] | None = None, free: Iterable[tuple[int, int]] = ()
    ) -> None:
        self._starts = dict(starts or {})
        self._free: dict[int, list[int]] = {}  # starts of dropped programs, by length
        for start, length in free:
            self._free.setdefault(length, []).append(start)
        words = {start: code for code, start in self._starts.items()}
        words |= {start: (0,) * length for start, length in self.free()}
        self._words = [word for start in sorted(words) for word in words[start]]
        self._array: I32 | None = None

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, code: Code) -> int:
        """Where a program begins; it is added if it is new."""
        start = self._starts.get(code)
        if start is None:
            free = self._free.get(len(code))
            if free:
                start = free.pop()
                self._words[start : start + len(code)] = code
            else:
                start = len(self._words)
                self._words.extend(code)
            self._starts[code] = start
            self._array = None
        return start

    def drop(self, code: Code) -> None:
        """Drop a program, if it was added."""
        start = self._starts.pop(code, None)
        if start is not None:
            self._free.setdefault(len(code), []).append(start)

    def starts(self) -> Mapping[Code, int]:
        """All programs, and where they begin."""
        return self._starts

    def free(self) -> list[tuple[int, int]]:
        """Where dropped programs began, and how long they were."""
        return [(start, length) for length, starts in self._free.items() for start in starts]

    @property
    def array(self) -> I32:
        """The code, and one word behind it; after an addition it is another array."""
        if self._array is None:
            self._array = np.array([*self._words, 0], np.int32)
        return self._array
