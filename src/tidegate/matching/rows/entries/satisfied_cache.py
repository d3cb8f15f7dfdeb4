"""A cache of which patterns strings satisfy, bounded by the bytes that it takes.

Strings of events come from outside and may be long, so they are counted by bytes. There are two
generations: what is added or found goes to the young one, and when that has half of the bytes, it
becomes the old one, and the old one is dropped. So what comes again and again stays, without any
bookkeeping for each use.

Matches write to the cache while they share the lock. They all write the same for one string; when
two of them write at once, the count of bytes may miss some, which the next generation makes good.
"""

from __future__ import annotations

import sys

from tidegate.matching.arrays import I32

_ENTRY_BYTES = 200
"""What an element of a dictionary, its key and an array take besides text and numbers."""

_Key = tuple[str, str]


class SatisfiedCache:
    """The numbers of the patterns that strings satisfy, by attribute and string."""

    def __init__(self, bytes_max: int) -> None:
        self._half_bytes = bytes_max // 2
        self.clear()

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def clear(self) -> None:
        """Forget everything."""
        self._young: dict[_Key, I32] = {}
        self._old: dict[_Key, I32] = {}
        self._young_bytes = 0

    def get(self, attribute: str, text: str) -> I32 | None:
        """What was put for a string of an attribute; None if it is not known any more."""
        key = (attribute, text)
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is not None:
                self.put(attribute, text, found)
        return found

    def put(self, attribute: str, text: str, numbers: I32) -> None:
        """Remember the numbers of a string, unless they take more room than there is."""
        size = _ENTRY_BYTES + sys.getsizeof(text) + numbers.nbytes
        if size > self._half_bytes:
            return
        if self._young_bytes + size > self._half_bytes:
            self._old, self._young, self._young_bytes = self._young, {}, 0
        self._young[attribute, text] = numbers
        self._young_bytes += size
