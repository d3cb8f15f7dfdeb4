"""A set that is iterated in insertion order.

Python's own set is iterated in the order of hashes, which differ from run to run for strings. The
order in which a broker sends messages must not depend on them: one seed is one simulated run.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class OrderedSet(MutableSet[T]):
    """A set in insertion order; it equals any set with the same members.

    >>> letters = OrderedSet(["b", "a", "b"])
    >>> letters.add("c")
    >>> list(letters), letters - {"a"}
    (['b', 'a', 'c'], OrderedSet(['b', 'c']))
    """

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._members = dict.fromkeys(members)

    def add(self, value: T) -> None:
        """Append a member; one that is already in the set keeps its position."""
        self._members[value] = None

    def discard(self, value: T) -> None:
        """Remove a member if it is in the set."""
        self._members.pop(value, None)

    def __contains__(self, value: object) -> bool:
        return value in self._members

    def __iter__(self) -> Iterator[T]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._members)})"
