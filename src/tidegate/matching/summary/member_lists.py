"""Lists of members that grow and shrink in place, in one pool of blocks.

A block has room for a power of two of members. A list that is full moves to a block of twice the
size, and the one it leaves is used again for another list. So the pool is never compacted, and a
change costs what it changes.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tidegate.matching.arrays import F64, I32, I64, U8
from tidegate.matching.summary.kernels.lists import append_members, gather, remove_term

_FIRST_CLASS = 1
"""The smallest block has room for two members."""

Array = TypeVar("Array", I32, I64, F64, U8)


def grown(array: Array, length: int) -> Array:
    """An array of at least some length: itself, or a copy with room for as much again."""
    if len(array) >= length:
        return array
    longer = np.zeros(max(length, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


class MemberLists:
    """Lists of members, by number."""

    def __init__(self) -> None:
        self.pool: I32 = np.zeros(64, np.int32)
        self.start: I64 = np.zeros(16, np.int64)
        self.length: I32 = np.zeros(16, np.int32)
        self.capacity: I32 = np.zeros(16, np.int32)
        self._used = 0
        self._pool_used = 0
        self._free_lists: list[int] = []
        self._free_blocks: dict[int, list[int]] = {}

    @property
    def reserved(self) -> int:
        """Members that all blocks have room for, in use or not."""
        return self._pool_used

    def new(self, members: I32 | None = None) -> int:
        """A new list."""
        if self._free_lists:
            number = self._free_lists.pop()
        else:
            number = self._used
            self._used += 1
            self.start = grown(self.start, self._used)
            self.length = grown(self.length, self._used)
            self.capacity = grown(self.capacity, self._used)
        count = 0 if members is None else len(members)
        self._allocate(number, count)
        if members is not None:
            self._write(number, members)
        return number

    def free(self, number: int) -> None:
        """Give a list back, with its block."""
        self._free_block(number)
        self.length[number] = self.capacity[number] = 0
        self._free_lists.append(number)

    def members(self, number: int) -> I32:
        """The members of a list: a view that the next change invalidates."""
        begin = self.start[number]
        return self.pool[begin : begin + self.length[number]]

    def replace(self, number: int, members: I32) -> None:
        """Give a list other members, which are no view of the pool."""
        if len(members) > self.capacity[number]:
            self._free_block(number)
            self._allocate(number, len(members))
        self._write(number, members)

    def append(self, lists: I64, members: I32) -> None:
        """Append a member to each of some lists."""
        done = 0
        while True:
            done = append_members(
                self.pool, self.start, self.length, self.capacity, lists, members, done
            )
            if done == len(lists):
                return
            full = int(lists[done])
            kept = self.members(full).copy()
            self._free_block(full)
            self._allocate(full, len(kept) + 1)
            self._write(full, kept)

    def remove(self, lists: I64, term: int) -> U8:
        """Remove a term from each of some lists; returns the bits of the members."""
        bits: U8 = np.empty(len(lists), np.uint8)
        remove_term(self.pool, self.start, self.length, lists, term, bits)
        return bits

    def terms_of(self, lists: I64) -> I32:
        """The terms of some lists, one list after the other."""
        terms: I32 = np.empty(int(self.length[lists].sum()), np.int32)
        gather(self.pool, self.start, self.length, lists, terms)
        return terms

    def _write(self, number: int, members: I32) -> None:
        begin = self.start[number]
        self.pool[begin : begin + len(members)] = members
        self.length[number] = len(members)

    def _allocate(self, number: int, count: int) -> None:
        size_class = max(_FIRST_CLASS, (count - 1).bit_length())
        free = self._free_blocks.get(size_class)
        if free:
            self.start[number] = free.pop()
        else:
            self.start[number] = self._pool_used
            self._pool_used += 1 << size_class
            self.pool = grown(self.pool, self._pool_used)
        self.capacity[number] = 1 << size_class

    def _free_block(self, number: int) -> None:
        size_class = int(self.capacity[number]).bit_length() - 1
        self._free_blocks.setdefault(size_class, []).append(int(self.start[number]))


class Terms:
    """The terms of the constraints of entries: one interval, or one string pattern, each.

    ``entry`` is the entry that a term belongs to, ``low`` and ``high`` its first and last value,
    and ``loose`` is 1 if it is wider than the constraint itself. A pattern has no bounds.
    """

    def __init__(self) -> None:
        self.entry: I32 = np.zeros(16, np.int32)
        self.low: F64 = np.zeros(16)
        self.high: F64 = np.zeros(16)
        self.loose: U8 = np.zeros(16, np.uint8)
        self._marks: I64 = np.full(16, -1, np.int64)
        self._used = 0
        self._free: list[int] = []

    def add(self, entry: int, low: float, high: float, *, loose: bool) -> int:
        """The number of a new term."""
        if self._free:
            number = self._free.pop()
        else:
            number = self._used
            self._used += 1
            self.entry = grown(self.entry, self._used)
            self.low = grown(self.low, self._used)
            self.high = grown(self.high, self._used)
            self.loose = grown(self.loose, self._used)
        self.entry[number], self.low[number], self.high[number] = entry, low, high
        self.loose[number] = loose
        return number

    def free(self, number: int) -> None:
        """Give a term back."""
        self._free.append(number)

    def marks(self) -> I64:
        """Scratch space with an element for each term, all of them -1."""
        if len(self._marks) < len(self.entry):
            self._marks = np.empty(len(self.entry), np.int64)
        self._marks.fill(-1)
        return self._marks
