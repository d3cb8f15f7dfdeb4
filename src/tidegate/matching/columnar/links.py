"""The links over which subscriptions are reached, by their numbers."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I32, U64
from tidegate.matching.rows.link_words import LINK_BITS, as_int, as_words


class SubscriptionLinks:
    """Sets of links, by number of a subscription; they take no memory before one is set."""

    def __init__(self) -> None:
        self.width = 0
        """Links that there is room for; 0 if no subscription ever had one."""
        self._count = 0
        self._rows: U64 = np.zeros((0, 0), np.uint64)

    @property
    def all(self) -> int:
        """The set of all links that there is room for."""
        return (1 << self.width) - 1

    def reserve(self, count: int) -> None:
        """Make room for subscriptions with numbers below ``count``."""
        self._count = max(count, self._count)
        words = -(-self.width // LINK_BITS)
        rows, before = self._rows.shape
        if words > before or (words and self._count > rows):
            wider = np.zeros((self._count, words), np.uint64)
            wider[:rows, :before] = self._rows
            self._rows = wider

    def set(self, number: int, links: int) -> None:
        """Set the links of a subscription."""
        while self.width < links.bit_length():
            # at least doubled, because then the bits of all parts are made anew
            self.width = max(1, 2 * self.width)
        self.reserve(number + 1)
        if self.width:
            self._rows[number] = as_words(links, self._rows.shape[1])

    def words(self, numbers: I32) -> U64:
        """The links of subscriptions, a row of words for each."""
        rows: U64 = self._rows[numbers]
        return rows

    def of(self, numbers: I32) -> list[int]:
        """The links of subscriptions."""
        if not self.width:
            return [0] * len(numbers)
        words = self.words(numbers)
        if words.shape[1] == 1:
            single: list[int] = words[:, 0].tolist()
            return single
        return [as_int(row) for row in words]
