"""Numbers that are given out again: how often each is used, and which ones nobody uses.

Strings, shapes and lists of parameter names are numbered, and rows refer to them by number. A
number whose last use has ended keeps its meaning until it is *forgotten*: in the middle of a change
it may still be in an entry that the same change replaces, and what comes back soon is found again.
So owners of tables forget at the end of a change, the numbers first that were unused longest.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator

FORGOTTEN = -1
"""In a list of counts: the number is free, it means nothing."""


class UseCounts:
    """Numbers from 0 on, with the count of the uses of each.

    ``counts`` are those of numbers that exist already, FORGOTTEN for free ones.

    >>> uses = UseCounts()
    >>> first, second = uses.new(), uses.new()
    >>> uses.add([first, second, second])
    >>> uses.remove([first, second])
    >>> uses.forget()
    [0]
    >>> uses.new()
    0
    """

    def __init__(self, counts: Iterable[int] = ()) -> None:
        self._counts = list(counts)
        self._unused = {number: None for number, count in enumerate(self._counts) if count == 0}
        """The numbers that are not used but not forgotten, those that ended first at first."""
        self._free = [number for number, count in enumerate(self._counts) if count == FORGOTTEN]

    def __len__(self) -> int:
        """How many numbers mean something."""
        return len(self._counts) - len(self._free)

    @property
    def end(self) -> int:
        """The number after the largest that was ever given out."""
        return len(self._counts)

    @property
    def unused(self) -> int:
        """How many numbers are not used, but not forgotten either."""
        return len(self._unused)

    def new(self) -> int:
        """A number that means nothing so far; unused."""
        if self._free:
            number = self._free.pop()
            self._counts[number] = 0
        else:
            number = len(self._counts)
            self._counts.append(0)
        self._unused[number] = None
        return number

    def add(self, numbers: Iterable[int]) -> None:
        """Count one more use for each of some numbers, which may repeat."""
        counts = self._counts
        for number, count in Counter(numbers).items():
            if not counts[number]:
                del self._unused[number]
            counts[number] += count

    def add_one(self, number: int) -> None:
        """Count one more use of a number."""
        if not self._counts[number]:
            del self._unused[number]
        self._counts[number] += 1

    def remove(self, numbers: Iterable[int]) -> None:
        """Count one use less for each of some numbers, which may repeat."""
        for number in numbers:
            self._counts[number] -= 1
            if not self._counts[number]:
                self._unused[number] = None

    def forget(self, keep: int = 0) -> list[int]:
        """Free the unused numbers, but for the ``keep`` that ended last; returns them.

        Who calls this removes what the numbers have meant. They may be given out again at once.
        """
        count = len(self._unused) - keep
        if count <= 0:
            return []
        forgotten = [number for number, _ in zip(self._unused, range(count), strict=False)]
        for number in forgotten:
            del self._unused[number]
            self._counts[number] = FORGOTTEN
        self._free += forgotten
        return forgotten

    def counts(self) -> list[int]:
        """The counts of all numbers, FORGOTTEN for free ones."""
        return self._counts


class FreeNumbers:
    """Numbers that are free, of which the lowest is given out first.

    >>> free = FreeNumbers([5, 2])
    >>> free.add(3)
    >>> free.take(), free.remove(5), free.take(), free.take()
    (2, True, 3, None)
    """

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._numbers = set(numbers)
        self._heap = sorted(self._numbers)
        """The same, and some that were removed since."""

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._numbers))

    def add(self, number: int) -> None:
        """Add a number that is free now."""
        self._numbers.add(number)
        heapq.heappush(self._heap, number)

    def take(self) -> int | None:
        """Remove and return the lowest number; None if none is free."""
        while self._heap:
            number = heapq.heappop(self._heap)
            if number in self._numbers:
                self._numbers.remove(number)
                return number
        return None

    def remove(self, number: int) -> bool:
        """Remove a number; returns whether it was free."""
        if number not in self._numbers:
            return False
        self._numbers.remove(number)
        if not self._numbers:
            self._heap.clear()
        return True
