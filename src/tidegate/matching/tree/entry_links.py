"""The links of subscriptions, in the arrays of a tree and in its annotations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.matching.arrays import I64
from tidegate.matching.rows.link_words import LINK_BITS, all_as_words, as_words
from tidegate.matching.tree.entry_records import EntryRecords
from tidegate.matching.tree.kernels.trits import annotate_all, annotate_entry, forget_links_of
from tidegate.matching.tree.storage import TreeStorage


class EntryLinks:
    """Over which links each subscription is reached; a set of links is a set of bits."""

    def __init__(self, storage: TreeStorage, records: EntryRecords) -> None:
        self._storage = storage
        self._records = records
        self._links_of: dict[int, int] = {}

    def of(self, subscription: int) -> int:
        """The links over which a subscription is reached."""
        return self._links_of.get(subscription, 0)

    def set(self, subscription: int, links: int) -> None:
        """Set the links over which a subscription is reached."""
        lost = self.of(subscription) & ~links
        if links:
            self._links_of[subscription] = links
        else:
            self._links_of.pop(subscription, None)
        self._have_words(links)
        numbers = self._records.of(np.array([subscription], np.int32))
        self.write(numbers, [subscription] * len(numbers))
        for number in numbers.tolist():
            if lost:
                words = as_words(lost, self._storage.link_words)
                forget_links_of(self._storage.arrays, number, words)
            annotate_entry(self._storage.arrays, number)

    def take_over(self, other: EntryLinks) -> None:
        """Take over the links of all subscriptions from another tree."""
        self._links_of = other._links_of
        self._have_words(max(self._links_of.values(), default=0))
        if self._links_of:
            numbers, subscriptions = self._records.subscriptions()
            self.write(numbers, subscriptions.tolist())
            annotate_all(self._storage.arrays)

    def write(self, numbers: I64, subscriptions: Sequence[int]) -> None:
        """Write the links of subscriptions to their entries, without annotations."""
        words = self._storage.link_words
        if not words:
            return
        links = self._storage.arrays.links
        rows = links[: words * (len(links) // words)].reshape(-1, words)
        rows[numbers] = all_as_words(map(self.of, subscriptions), words)

    def _have_words(self, links: int) -> None:
        """Make room for the annotations of all links in a set."""
        if self._storage.reserve_links(-(-links.bit_length() // LINK_BITS)):
            annotate_all(self._storage.arrays)
