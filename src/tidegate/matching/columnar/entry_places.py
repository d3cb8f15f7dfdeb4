"""Where the entries of each subscription are: in which part of an index, and at which places there.

A subscription with several entries has all of them in one part, because they are added together and
parts are merged as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.matching.arrays import I32, I64, Bools
from tidegate.matching.rows.kernels.flags import GONE, SHARED

NO_ENTRY = -1
"""In place of an entry's place: the subscription has no entry in the index."""


class EntryPlaces:
    """The parts and places of entries, by number of their subscription."""

    def __init__(self, part_of: I32, entry_of: I32) -> None:
        self.part_of = part_of
        self.entry_of = entry_of
        """The place of the only entry of each subscription; of its last one, if it has several."""
        self.several: dict[int, list[int]] = {}
        """The places of the entries of subscriptions that have several."""

    def reserve(self, count: int) -> None:
        """Make room for subscriptions with numbers below ``count``."""
        if count > len(self.part_of):
            more = np.full(count - len(self.part_of), NO_ENTRY, np.int32)
            self.part_of = np.concatenate([self.part_of, more])
            self.entry_of = np.concatenate([self.entry_of, more])

    def part(self, number: int) -> int:
        """The number of the part with the entries of a subscription, which must have some."""
        return self.part_of.item(number)

    def only(self, number: int) -> int:
        """The place of the only entry of a subscription; NO_ENTRY if it has none, or several."""
        return NO_ENTRY if number in self.several else self.entry_of.item(number)

    def all(self, number: int) -> list[int]:
        """The places of all entries of a subscription; empty if it has none."""
        if number in self.several:
            return self.several[number]
        only = self.entry_of.item(number)
        return [] if only == NO_ENTRY else [only]

    def alone(self, numbers: I32) -> Bools:
        """Which of some subscriptions have just one entry."""
        alone: Bools = self.entry_of[numbers] != NO_ENTRY
        if self.several:
            alone &= np.array([each not in self.several for each in numbers.tolist()], np.bool_)
        return alone

    def by_part(self, numbers: I32) -> Iterator[tuple[int, I64]]:
        """The places of the entries of subscriptions, part by part, in ascending order."""
        entries = self.entry_of[numbers].astype(np.int64)
        parts = self.part_of[numbers]
        for part in np.unique(parts[entries != NO_ENTRY]).tolist():
            mine = (parts == part) & (entries != NO_ENTRY)
            found = entries[mine]
            if self.several:
                shared = [self.several.get(number, []) for number in numbers[mine].tolist()]
                found = np.unique([*found.tolist(), *(entry for each in shared for entry in each)])
            yield part, np.sort(found)

    def enter(self, part: int, owners: I32, flags: I32, begin: int = 0) -> None:
        """Note where entries are: all of a part, or those appended to it from ``begin`` on."""
        self.part_of[owners] = part
        self.entry_of[owners] = np.arange(begin, begin + len(owners))
        self.note_several(owners, flags, begin)

    def note_several(self, owners: I32, flags: I32, begin: int = 0) -> None:
        """As ``enter``, where only the places of several entries are not known yet."""
        shared = np.flatnonzero((flags & (SHARED | GONE)) == SHARED)
        numbers = owners[shared].tolist()
        if not begin:
            for number in numbers:
                self.several[number] = []
        # not anew where entries are appended: those before may have come just before
        for entry, number in zip((begin + shared).tolist(), numbers, strict=True):
            self.several.setdefault(number, []).append(entry)

    def replace(self, part: int, owners: I32, entries: I64, several: dict[int, list[int]]) -> None:
        """Note where entries that were copied to another part are now."""
        self.part_of[owners], self.entry_of[owners] = part, entries
        self.several.update(several)

    def forget(self, number: int) -> None:
        """Forget where the entries of a subscription are; its number may be given to another."""
        self.several.pop(number, None)
        self.entry_of[number] = NO_ENTRY

    def renumber(self, behind: int, less: int) -> None:
        """Lower the numbers of the parts from ``behind`` on."""
        self.part_of[self.part_of >= behind] -= less
