"""Order labels: floats that stand for the values of bounds and have their order.

A float cannot hold a string, nor every integer beyond 2**53. But to decide `name < 'm'` exactly it
is enough to know where a value lies among the bounds that occur in filters. So each bound gets a
*label*, an even whole number, in the order of the bounds; and the value of an event gets the label
of the bound that it equals, or else the odd number after the label of the next lower bound:

    bounds          'b'       'm'             event 'a'    1     below all
    labels           2         8              event 'b'    2     equal
                                              event 'c'    3     between: above 'b', below 'm'
                                              event 'z'    9     above all

Kernels then compare whole numbers, with bitmaps and hash keys as for any other channel. Events are
labelled when they are encoded, under the lock, so labels may come and go in between; the label of a
bound stays as long as the bound is there, because entries have it.

A new bound is put into the gap between its neighbours: in the middle, or close to a neighbour that
is new itself, since bounds often rise or fall step by step. Where a gap has no room left, the bound
gets no label and is *crowded*: the caller has to verify it, until all bounds of the attribute are
labelled anew.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Generic, TypeVar

V = TypeVar("V", str, int | float)
"""Strings; or numbers, integers and floats, which Python compares by their exact values."""

LABEL_MAX = 2**52
"""Labels lie between minus this and this, so that the numbers around them are exact floats."""

_STEP = 2**24
"""How far from the last bound one beyond it is put: there is room for millions of them."""

_RUN_SHIFT, _RECENT = 8, 16
"""Which part of its gap (1/256) a bound takes that follows upon one of so many last new ones."""

_BULK = 64
"""From so many values on, changing the sorted list is left to one sort."""


class OrderLabels(Generic[V]):
    """The labels of some bounds.

    >>> labels = OrderLabels(["b", "m"])
    >>> [labels.place("b") < labels.place(each) < labels.place("m") for each in ("c", "a", "m")]
    [True, False, False]
    >>> labels.place("m") == labels.label("m")
    True
    """

    def __init__(self, values: Iterable[V] = (), labels: Iterable[int] = ()) -> None:
        self._labels: dict[V, int] = dict(zip(values, labels, strict=False))
        self._sorted: list[V] = sorted(self._labels)
        self._crowded: set[V] = set()
        self._recent: deque[V] = deque(maxlen=_RECENT)
        self.add([value for value in values if value not in self._labels])

    def __len__(self) -> int:
        return len(self._labels) + len(self._crowded)

    def __contains__(self, value: V) -> bool:
        return value in self._labels or value in self._crowded

    def __iter__(self) -> Iterator[V]:
        return chain(self._labels, self._crowded)

    @property
    def crowded(self) -> int:
        """How many bounds have no label."""
        return len(self._crowded)

    def label(self, value: V) -> int | None:
        """The label of a bound; None if it is crowded."""
        return self._labels.get(value)

    def place(self, value: V) -> int:
        """The number by which the value of an event compares with all labels."""
        label = self._labels.get(value)
        return self._label_below(bisect_left(self._sorted, value)) + 1 if label is None else label

    def _label_below(self, index: int) -> int:
        """The label of the bound before an index of the sorted ones, or one below all."""
        return self._labels[self._sorted[index - 1]] if index else -LABEL_MAX

    def add(self, values: Iterable[V]) -> list[V]:
        """Add bounds, of which some may be there; returns those that were not."""
        new = sorted({each for each in values if each not in self})
        placed: list[V] = []
        for index, group in groupby(new, key=lambda each: bisect_left(self._sorted, each)):
            placed += self._fill(index, list(group))
        if len(placed) < _BULK:
            for value in placed:
                insort(self._sorted, value)
        else:
            self._sorted = sorted(self._sorted + placed)
        self._recent.extend(placed[-_RECENT:])
        return new

    def _fill(self, index: int, values: Sequence[V]) -> Sequence[V]:
        """Label the values of one gap, ahead of the sorted bound at an index, if there is room."""
        below = self._label_below(index)
        is_last = index == len(self._sorted)
        above = LABEL_MAX if is_last else self._labels[self._sorted[index]]
        # labels are even: so many steps of two lead from one neighbour to the other
        steps = (above - below) // 2
        if steps <= len(values):
            self._crowded.update(values)
            return ()
        share = steps // (len(values) + 1)
        first = below + 2 * share
        if not self._sorted:  # keep a quarter of the room free at either end
            share = max(1, share // 2)
            first = -2 * share * (len(values) // 2)
        elif is_last:
            share = min(share, _STEP)
            first = below + 2 * share
        elif index == 0:
            share = min(share, _STEP)
            first = above - 2 * share * len(values)
        elif len(values) == 1:
            near = 2 * max(1, steps >> _RUN_SHIFT)
            match self._side(values[0], self._sorted[index - 1], self._sorted[index]):
                case -1:
                    first = below + near
                case 1:
                    first = above - near
        for number, value in enumerate(values):
            self._labels[value] = first + 2 * share * number
        return values

    def _side(self, value: V, below: V, above: V) -> int:
        """Which neighbour a new bound seems to follow: -1 for the lower one, 1; or 0 for none."""
        follows_below, follows_above = below in self._recent, above in self._recent
        if follows_below and follows_above:
            return -1 if _is_nearer(value, below, above) else 1
        return follows_above - follows_below

    def remove(self, values: Collection[V]) -> None:
        """Remove bounds, those of them that are there; no entry may have their labels any more."""
        gone = {each for each in values if self._labels.pop(each, None) is not None}
        self._crowded.difference_update(values)
        if len(gone) < _BULK:
            for value in gone:
                del self._sorted[bisect_left(self._sorted, value)]
        else:
            self._sorted = [each for each in self._sorted if each not in gone]

    def items(self) -> list[tuple[V, int]]:
        """The bounds that have a label, and their labels."""
        return list(self._labels.items())


def _is_nearer(value: V, one: V, other: V) -> bool:
    """Whether a value resembles one more than another: by difference, or by the common prefix."""
    if isinstance(value, str):
        return _common_length(value, one) >= _common_length(value, other)
    return abs(value - one) <= abs(value - other)


def _common_length(one: str, other: str) -> int:
    length = min(len(one), len(other))
    return next((index for index in range(length) if one[index] != other[index]), length)
