"""Algorithm 1 on arrays: which entries an event matches, given the lists of the rows it is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from tidegate.language.values import Value
from tidegate.matching.arrays import I32, I64, U8, Bools
from tidegate.matching.summary.channels import KIND_OF_TYPE, as_float, is_exact
from tidegate.matching.summary.kernels.counting import count_event
from tidegate.matching.summary.kernels.lists import LOOSE
from tidegate.matching.summary.member_lists import grown
from tidegate.matching.summary.tables import ChannelKind


class FoundEntries(NamedTuple):
    """Entries that an event matches according to a summary.

    ``sure`` is true for those that it matches in fact: no row in which they were counted is wider
    than what they ask for.
    """

    entries: I32
    sure: Bools


class Lists(Protocol):
    """Lists of members in one pool."""

    pool: I32
    start: I64
    length: I32


class RangeFinder(Protocol):
    """The range rows of one attribute and kind."""

    def find(self, value: float, into: list[int]) -> None:
        """Append the lists that a value satisfies, shifted by one bit for LOOSE."""
        ...


class StringFinder(Protocol):
    """The string rows of one attribute."""

    def find(self, text: str, into: list[int]) -> None:
        """Append the lists that a text satisfies, shifted by one bit for LOOSE."""
        ...


class AttributeRows(NamedTuple):
    """The tables of one attribute; an event's value concerns the one of its kind."""

    ranges: dict[ChannelKind, RangeFinder]
    strings: StringFinder | None


class SatisfiedLists:
    """The lists that an event satisfies, grouped by attribute."""

    def __init__(self) -> None:
        self.lists: list[int] = []
        self.ends: list[int] = []

    def add(self, rows: AttributeRows, value: Value) -> None:
        """Add the lists that the value of an attribute satisfies."""
        kind = KIND_OF_TYPE[type(value)]
        first = len(self.lists)
        if kind is ChannelKind.STRING:
            if rows.strings is not None:
                rows.strings.find(str(value), self.lists)
        elif kind in rows.ranges and value == value:
            number = as_float(value)
            rows.ranges[kind].find(number, self.lists)
            if not is_exact(number):  # what rounds to the number may be in no row of it
                self.lists[first:] = [each | LOOSE for each in self.lists[first:]]
        self.end()

    def end(self) -> None:
        """End the lists of an attribute."""
        begin = self.ends[-1] if self.ends else 0
        if len(self.lists) > begin:
            self.ends.append(len(self.lists))


def satisfied_lists(
    attributes: Mapping[str, Value], rows: Mapping[str, AttributeRows]
) -> SatisfiedLists:
    """The lists that an event satisfies."""
    satisfied = SatisfiedLists()
    for name, value in attributes.items():
        of_attribute = rows.get(name)
        if of_attribute is not None and value is not None:
            satisfied.add(of_attribute, value)
    return satisfied


class EntryCounter:
    """Counts the satisfied attributes of entries; one call at a time, because it reuses its memory.

    An entry matches when it was counted at as many attributes as ``needed`` says.
    """

    def __init__(self) -> None:
        self._seen: I64 = np.zeros(0, np.int64)
        self._counted: I32 = np.zeros(0, np.int32)
        self._loose: U8 = np.zeros(0, np.uint8)
        self._found: I32 = np.zeros(0, np.int32)
        self._sure: U8 = np.zeros(0, np.uint8)
        self._stamp = 1

    def count(
        self, lists: Lists, entry_of: I32, needed: I32, satisfied: SatisfiedLists
    ) -> FoundEntries:
        """The entries that an event matches."""
        size = len(needed)
        if len(self._seen) < size:
            self._seen, self._counted = grown(self._seen, size), grown(self._counted, size)
            self._loose, self._sure = grown(self._loose, size), grown(self._sure, size)
            self._found = grown(self._found, size)
        total = count_event(
            lists.pool, lists.start, lists.length, entry_of, needed,
            np.array(satisfied.lists, np.int64), np.array(satisfied.ends, np.int64),
            self._seen, self._counted, self._loose, self._stamp, self._found, self._sure,
        )  # fmt: skip
        self._stamp += len(satisfied.ends) + 1
        return FoundEntries(self._found[:total].copy(), self._sure[:total].astype(np.bool_))
