"""Which of many ranges a value lies in, while ranges come, go and change.

The ranges stand in runs, ordered by their low ends and then by their high ones, and a run knows how
far its ranges reach. A value passes by the runs that begin behind it, and those that do not reach
it; ranges that are narrow or bounded on one side only are found without looking at many others. A
run has a bounded length, so a change costs the same however many ranges there are, but for the list
of runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Generic, TypeVar

from tidegate.language.algebra.intervals import Endpoint as Bound

T = TypeVar("T")

RUN_MAX = 256
"""A run that has grown longer is cut in two."""

_RangeKey = tuple[Any, bool, Any]
"""The low end, whether nothing bounds the range above, and the high end."""


class _RangeRun(Generic[T]):
    """Neighbouring ranges. ``reach`` is the greatest of their high ends, None if one has none."""

    __slots__ = ("items", "keys", "reach")

    def __init__(self, keys: list[_RangeKey], items: list[T]) -> None:
        self.keys = keys
        self.items = items
        self.measure()

    def measure(self) -> None:
        is_open = any(unbounded for _, unbounded, _ in self.keys)
        self.reach = None if is_open else max(high for _, _, high in self.keys)


class RangeIndex(Generic[T]):
    """Ranges of one kind of value, no two of them alike, each with an item.

    >>> bands = Bands[str]()
    >>> bands.add(1, 5, "low")
    >>> bands.add(3, None, "open")
    >>> bands.containing(2), bands.containing(4), bands.containing(5)
    (['low'], ['low', 'open'], ['open'])
    """

    __slots__ = ("_firsts", "_runs", "_size")

    def __init__(self) -> None:
        self._runs: list[_RangeRun[T]] = []
        self._firsts: list[_RangeKey] = []  # of each run, the first range
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, low: Bound, high: Bound | None, item: T) -> None:
        """Take in the range from ``low`` on and before ``high``; None bounds nothing."""
        key = (low, high is None, high)
        self._size += 1
        if not self._runs:
            self._runs.append(_RangeRun([key], [item]))
            self._firsts.append(key)
            return
        number = max(0, bisect_right(self._firsts, key) - 1)
        run = self._runs[number]
        place = bisect_left(run.keys, key)
        run.keys.insert(place, key)
        run.items.insert(place, item)
        if run.reach is not None and (high is None or high > run.reach):
            run.reach = high
        if len(run.keys) > RUN_MAX:
            half = len(run.keys) // 2
            self._runs.insert(number + 1, _RangeRun(run.keys[half:], run.items[half:]))
            self._firsts.insert(number + 1, run.keys[half])
            self._runs[number] = _RangeRun(run.keys[:half], run.items[:half])
        self._firsts[number] = run.keys[0]

    def remove(self, low: Bound, high: Bound | None) -> None:
        """Forget a range. KeyError if it is not there."""
        key = (low, high is None, high)
        number = bisect_right(self._firsts, key) - 1
        run = self._runs[number] if number >= 0 else None
        place = -1 if run is None else bisect_left(run.keys, key)
        if run is None or run.keys[place : place + 1] != [key]:
            raise KeyError(key)
        del run.keys[place], run.items[place]
        self._size -= 1
        following = self._runs[number + 1] if number + 1 < len(self._runs) else None
        if not run.keys:
            del self._runs[number], self._firsts[number]
        elif following is not None and len(run.keys) + len(following.keys) < RUN_MAX // 2:
            joined = _RangeRun(run.keys + following.keys, run.items + following.items)
            self._runs[number : number + 2] = [joined]
            self._firsts[number : number + 2] = [joined.keys[0]]
        else:
            self._firsts[number] = run.keys[0]
            if high is None or high == run.reach:
                run.measure()

    def containing(self, value: Bound) -> list[T]:
        """The items of the ranges that a value of their kind lies in."""
        found: list[T] = []
        behind = (value, True, None)  # every range that begins at the value
        for run in self._runs[: bisect_right(self._firsts, behind)]:
            if run.reach is None or value < run.reach:
                end = bisect_right(run.keys, behind)
                found += [
                    item
                    for (_, unbounded, high), item in zip(run.keys[:end], run.items, strict=False)
                    if unbounded or value < high
                ]
        return found
