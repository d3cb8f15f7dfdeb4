"""Finding the links of an event with an index of entries, as `LinkMatcher` defines it.

An index finds most links by itself. What it cannot decide, it returns as entries: those that have
the link COLLECTED, whose subscriptions are wanted themselves, and those that need verification.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tidegate.language.events import Event
from tidegate.matching.arrays import F64, I32, I64
from tidegate.matching.matcher import COLLECTED, LinkMatches
from tidegate.matching.rows.encoding import Encoded
from tidegate.matching.rows.event_matching import EventMatching, is_match
from tidegate.matching.rows.found_pairs import EntryPairs
from tidegate.matching.rows.kernels.flags import VERIFY
from tidegate.matching.rows.store.table import SubscriptionTable
from tidegate.matching.subscription import Moment


class LinkIndex(Protocol):
    """An index of entries that have links."""

    def find_links(
        self, encoded: Encoded, times_us: I64, variables: F64, mask: int
    ) -> tuple[int, EntryPairs, int]:
        """The links of one event that are found, the entries to look at, and the steps."""
        ...

    def links_of(self, numbers: I32) -> list[int]:
        """The links of subscriptions, by their numbers."""
        ...


def match_links(
    matching: EventMatching,
    table: SubscriptionTable,
    index: LinkIndex,
    event: Event,
    moment: Moment,
    mask: int,
) -> LinkMatches:
    """The links in ``mask`` over which a subscription that matches an event is reached."""
    with matching.ready_for(event, moment) as ready:
        if not table.columns.all_alive(ready.times.begin, ready.times.end):
            # an index that finds links knows nothing of lifetimes
            _, numbers, _ = matching.matching_pairs(ready, lambda _: (event, moment))
            found, collected = _links_of(index, table, numbers, mask)
            return LinkMatches(found, collected, len(table))
        found, (_, numbers, flags), steps = index.find_links(
            ready.encoded, ready.times_us, ready.variables, mask
        )
        if not len(numbers):
            return LinkMatches(found, [], steps)
        doubtful = np.flatnonzero(flags & VERIFY)
        if len(doubtful):
            matching_ones = np.ones(len(numbers), np.bool_)
            for place, links in zip(
                doubtful.tolist(), index.links_of(numbers[doubtful]), strict=True
            ):
                # it need not be verified if all its links are found already
                matching_ones[place] = bool(links & mask & (~found | COLLECTED)) and is_match(
                    table.get(numbers.item(place)), event, moment
                )
                if matching_ones[place]:
                    found |= links & mask
            numbers = numbers[matching_ones]
        more, collected = _links_of(index, table, numbers, mask)
        return LinkMatches(found | more, collected, steps)


def _links_of(
    index: LinkIndex, table: SubscriptionTable, numbers: I32, mask: int
) -> tuple[int, list[str]]:
    """The links of subscriptions that match, and the ids of those that are collected, each once."""
    found = 0
    collected: dict[int, None] = {}
    for number, links in zip(numbers.tolist(), index.links_of(numbers), strict=True):
        found |= links & mask
        if links & mask & COLLECTED:
            collected[number] = None
    return found, table.ids_of(np.array(list(collected), np.int32))
