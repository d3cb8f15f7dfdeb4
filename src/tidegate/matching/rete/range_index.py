"""The range index: which of many ranges contain a value, while ranges are added and removed.

Rules. (1) Ranges are sorted by their low ends, then by their high ends, with no end last. (2) They
are stored in *runs* of bounded length, and each run knows its *reach*, the greatest of its high
ends.

Theory of operation. A lookup skips the runs that begin after the value, and those whose reach is
not beyond it. So ranges that are narrow, or bounded on one side only, are found without looking at
many others; long ranges among short ones cost a scan of their runs. An addition shifts at most a
run, so its cost does not depend on the number of ranges, except for the list of runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Generic, TypeVar

from tidegate.language.algebra.intervals import Endpoint

T = TypeVar("T")

RUN_MAX = 256
"""Default length above which a run is cut in two.

Two runs are joined again when both together are shorter than half of it, so that a range that is
added and removed over and over does not cut and join each time.
"""

_RangeKey = tuple[Any, bool, Any]
"""Low end, whether the range has no high end, high end; in this order ranges are sorted."""


class _RangeRun(Generic[T]):
    """Neighbouring ranges; ``reach`` is their greatest high end, None if one of them has none."""

    __slots__ = ("items", "keys", "reach")

    def __init__(self, keys: list[_RangeKey], items: list[T]) -> None:
        self.keys = keys
        self.items = items
        self.measure()

    def measure(self) -> None:
        """Compute the reach."""
        has_no_end = any(unbounded for _, unbounded, _ in self.keys)
        self.reach = None if has_no_end else max(high for _, _, high in self.keys)


class RangeIndex(Generic[T]):
    """Different ranges of one kind of value, each with an item.

    >>> ranges = RangeIndex[str]()
    >>> ranges.add(1, 5, "low")
    >>> ranges.add(3, None, "open")
    >>> ranges.containing(2), ranges.containing(4), ranges.containing(5)
    (['low'], ['low', 'open'], ['open'])
    """

    __slots__ = ("_firsts", "_run_max", "_runs", "_size")

    def __init__(self, *, run_max: int = RUN_MAX) -> None:
        self._run_max = run_max
        self._runs: list[_RangeRun[T]] = []
        self._firsts: list[_RangeKey] = []  # the first key of each run
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, low: Endpoint, high: Endpoint | None, item: T) -> None:
        """Add the range `low <= value < high`; None is no upper bound."""
        key = (low, high is None, high)
        self._size += 1
        if not self._runs:
            self._runs.append(_RangeRun([key], [item]))
            self._firsts.append(key)
            return
        # The last run that begins at or before the range; the first run if the range precedes all.
        number = max(0, bisect_right(self._firsts, key) - 1)
        run = self._runs[number]
        position = bisect_left(run.keys, key)
        run.keys.insert(position, key)
        run.items.insert(position, item)
        if run.reach is not None and (high is None or high > run.reach):
            run.reach = high
        if len(run.keys) > self._run_max:
            half = len(run.keys) // 2
            self._runs.insert(number + 1, _RangeRun(run.keys[half:], run.items[half:]))
            self._firsts.insert(number + 1, run.keys[half])
            self._runs[number] = _RangeRun(run.keys[:half], run.items[:half])
        self._firsts[number] = run.keys[0]

    def remove(self, low: Endpoint, high: Endpoint | None) -> None:
        """Remove a range; raises KeyError if it is not in the index."""
        key = (low, high is None, high)
        number = bisect_right(self._firsts, key) - 1
        run = self._runs[number] if number >= 0 else None
        position = -1 if run is None else bisect_left(run.keys, key)
        if run is None or run.keys[position : position + 1] != [key]:
            raise KeyError(key)
        del run.keys[position], run.items[position]
        self._size -= 1
        following = self._runs[number + 1] if number + 1 < len(self._runs) else None
        if not run.keys:
            del self._runs[number], self._firsts[number]
        elif following is not None and len(run.keys) + len(following.keys) < self._run_max // 2:
            joined = _RangeRun(run.keys + following.keys, run.items + following.items)
            self._runs[number : number + 2] = [joined]
            self._firsts[number : number + 2] = [joined.keys[0]]
        else:
            self._firsts[number] = run.keys[0]
            # Only a range that reaches as far as the run can shorten its reach.
            if high is None or high == run.reach:
                run.measure()

    def containing(self, value: Endpoint) -> list[T]:
        """The items of the ranges that contain a value of their kind."""
        found: list[T] = []
        # Sorts after all ranges that begin at the value: those without a high end are the last.
        last = (value, True, None)
        for run in self._runs[: bisect_right(self._firsts, last)]:
            if run.reach is None or value < run.reach:
                end = bisect_right(run.keys, last)
                found += [
                    item
                    for (_, unbounded, high), item in zip(run.keys[:end], run.items, strict=False)
                    if unbounded or value < high
                ]
        return found
