"""A set that is walked in the order in which its members came.

Python's own set is walked in the order of hashes, which differ from run to run where members are
strings. What a broker sends must not.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, MutableSet
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


class OrderedSet(MutableSet[T]):
    """A set in order of insertion; it equals any set with the same members.

    >>> found = OrderedSet(["b", "a", "b"])
    >>> found.add("c")
    >>> list(found), found - {"a"}
    (['b', 'a', 'c'], OrderedSet(['b', 'c']))
    """

    __slots__ = ("_members",)

    def __init__(self, members: Iterable[T] = ()) -> None:
        self._members = dict.fromkeys(members)

    def add(self, value: T) -> None:
        """Put a member at the end, if it is not there already."""
        self._members[value] = None

    def discard(self, value: T) -> None:
        """Take a member out, if it is there."""
        self._members.pop(value, None)

    def __contains__(self, value: object) -> bool:
        return value in self._members

    def __iter__(self) -> Iterator[T]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._members)})"
