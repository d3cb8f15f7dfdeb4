"""Finding the links of an event with an index of entries, as `LinkMatcher` defines it.

An index finds most links by itself. What it cannot decide, it returns as entries: those that have
the link COLLECTED, whose subscriptions are wanted themselves, and those that need verification.
"""

from __future__ import annotations

from dataclasses import replace
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

    def links_of(self, number: int) -> int:
        """The links of a subscription, by its number."""
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
            # annotations know nothing of lifetimes
            _, numbers, _ = matching.matching_pairs(ready, lambda _: (event, moment))
            return _links_of(index, table, numbers, mask, len(table))
        found, (_, numbers, flags), steps = index.find_links(
            ready.encoded, ready.times_us, ready.variables, mask
        )
        doubtful = np.flatnonzero(flags & VERIFY).tolist()
        matching_ones = np.ones(len(numbers), np.bool_)
        for place in doubtful:
            number = numbers.item(place)
            # it need not be verified if all its links are found already
            matching_ones[place] = bool(
                index.links_of(number) & mask & (~found | COLLECTED)
            ) and is_match(table.get(number), event, moment)
        others = _links_of(index, table, np.unique(numbers[matching_ones]), mask, steps)
        return replace(others, links=found | others.links)


def _links_of(
    index: LinkIndex, table: SubscriptionTable, numbers: I32, mask: int, steps: int
) -> LinkMatches:
    """The links of subscriptions that match."""
    found, collected = 0, []
    for number in numbers.tolist():
        links = index.links_of(number) & mask
        found |= links
        if links & COLLECTED:
            collected.append(number)
    return LinkMatches(found, table.ids_of(np.array(collected, np.int32)), steps)
