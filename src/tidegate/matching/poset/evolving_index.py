"""The evolving index: evolving filters, found by over-estimates that hold for some time.

Rules. (1) A filter that an event matches at its publication time is always returned. (2) A filter
that the event does not match may be returned, if its subscriber allows estimates, and only if the
event matches it at some time near.

Theory of operation ("Self-Evolving Subscriptions", 4). A broker that only forwards events must lose
none between two evaluations of a filter, so it matches with an over-estimate for a time window; the
subscriber's own broker then evaluates exactly (4.1). The evolve mode says how long the window is:

- `Lazy` (4.2) has no estimate: the filter is evaluated at each event that it could ever match,
  which the over-estimate for all times finds.
- `Periodic` (4.1) has the over-estimate of a period in the index. A queue, ordered by the end of
  the periods (5.2), says which are to be replaced. An estimate covers the period before, too, for
  events that were on their way when the period began.
- `Cached` (4.3) makes an over-estimate at an event, and keeps it until it expires.

What counts is the publication time of events, which may come out of order. An event older than the
estimate in use is matched exactly.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Periodic
from tidegate.language.filters import Filter
from tidegate.matching.poset.boxes import Box, box_of, box_of_event
from tidegate.matching.poset.covering_index import CoveringIndex
from tidegate.matching.poset.wanted_filter import EvolvingFilter, event_us

K = TypeVar("K", bound=Hashable)

_STALE_MIN = 16
"""Stale elements that the queue may hold besides as many as there are estimates."""


@dataclass(frozen=True, slots=True)
class TimedEstimate:
    """The over-estimate of a filter for a time window, both ends included."""

    estimate: Filter
    begin_us: int
    end_us: int
    number: int = 0
    """The number of its element in the queue; 0 if it is not queued."""


class EvolvingIndex(Generic[K]):
    """Evolving filters by key.

    >>> from tidegate.language.filters import parse
    >>> from tidegate.language.values import from_us
    >>> index = EvolvingIndex()
    >>> index.add("window", EvolvingFilter(parse("x between t and t + 1"), 0, Periodic(2.0)))
    >>> index.matching(Event({"x": 2.5}, from_us(0)))  # within the period it will match
    ['window']
    """

    def __init__(self) -> None:
        self._filters: dict[K, EvolvingFilter] = {}
        self._index: CoveringIndex[K] = CoveringIndex(more_is_narrower=True)
        self._estimates: dict[K, TimedEstimate] = {}
        # Elements are (end_us, number, key). An element is stale if its filter was removed or
        # replaced; it stays until it is popped, because a heap cannot remove from the middle.
        self._queue: list[tuple[int, int, K]] = []
        self._last_number = 0
        self._newest_us = 0
        """The latest begin of any periodic estimate so far; no younger event needs `_exact`."""

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def add(self, key: K, evolving: EvolvingFilter) -> None:
        """Add a filter under a key that is not in the index."""
        self._filters[key] = evolving
        if isinstance(evolving.evolve, Periodic):
            self._drop_stale()
            self._start_period(key, evolving, evolving.origin_us, evolving.evolve)
        else:
            self._index.add(key, _boxes(evolving.over_estimate_ever), evolves=True)

    def remove(self, key: K) -> None:
        """Remove a filter; raises KeyError if it is not in the index."""
        del self._filters[key]
        self._estimates.pop(key, None)
        self._index.remove(key)

    def matching(self, event: Event) -> list[K]:
        """The keys of filters that an event matches, or may match by their estimates."""
        time_us = event_us(event)
        self._start_due_periods(time_us)
        _, candidates = self._index.wider([box_of_event(event)])
        found = [key for key in candidates if self._may_match(key, event, time_us)]
        if time_us < self._newest_us:
            found += self._exact(event, time_us)
        return found

    def _may_match(self, key: K, event: Event, time_us: int) -> bool:
        evolving = self._filters[key]
        match evolving.evolve:
            case Periodic():
                estimate = self._estimates[key]
                # An event from before the window is left to `_exact`, so that none is found twice.
                return estimate.begin_us <= time_us and estimate.estimate.matches(event)
            case Cached(threshold):
                estimate = self._cached(key, evolving, time_us, round(threshold * 1e6))
                if estimate.begin_us <= time_us:
                    return estimate.estimate.matches(event)
        return evolving.matches(event)

    # -- periodic estimates -------------------------------------------------------------------

    def _start_due_periods(self, time_us: int) -> None:
        """Replace all periodic estimates that have expired."""
        queue = self._queue
        while queue and queue[0][0] < time_us:
            _, number, key = heapq.heappop(queue)
            if self._is_current(number, key):
                evolving = self._filters[key]
                assert isinstance(evolving.evolve, Periodic)
                self._index.remove(key)
                self._start_period(key, evolving, time_us, evolving.evolve)

    def _start_period(self, key: K, evolving: EvolvingFilter, time_us: int, mode: Periodic) -> None:
        """Index the estimate of the period that contains a time, and of the period before."""
        interval_us = max(1, round(mode.interval * 1e6))
        period = (time_us - evolving.origin_us) // interval_us
        begin_us = evolving.origin_us + (period - 1) * interval_us
        end_us = begin_us + 2 * interval_us
        estimate = evolving.over_estimate_during(begin_us, end_us)
        self._last_number += 1
        self._estimates[key] = TimedEstimate(estimate, begin_us, end_us, self._last_number)
        self._index.add(key, _boxes(estimate), evolves=True)
        self._newest_us = max(self._newest_us, begin_us)
        heapq.heappush(self._queue, (end_us, self._last_number, key))

    def _exact(self, event: Event, time_us: int) -> list[K]:
        """The periodic filters that match an event older than their estimates.

        Their boxes in the index are of a later time, so all of them are looked at.
        """
        return [
            key
            for key, estimate in self._estimates.items()
            if estimate.begin_us > time_us
            and isinstance(self._filters[key].evolve, Periodic)
            and self._filters[key].matches(event)
        ]

    def _drop_stale(self) -> None:
        """Drop stale elements of the queue if they are many: each update of a filter leaves one."""
        if len(self._queue) > 2 * len(self._estimates) + _STALE_MIN:
            self._queue = [each for each in self._queue if self._is_current(*each[1:])]
            heapq.heapify(self._queue)

    def _is_current(self, number: int, key: K) -> bool:
        estimate = self._estimates.get(key)
        return estimate is not None and estimate.number == number

    # -- cached estimates ---------------------------------------------------------------------

    def _cached(
        self, key: K, evolving: EvolvingFilter, time_us: int, threshold_us: int
    ) -> TimedEstimate:
        """The kept estimate of a filter; a new one from this time on if that has expired."""
        estimate = self._estimates.get(key)
        if estimate is None or estimate.end_us < time_us:
            end_us = time_us + threshold_us
            during = evolving.over_estimate_during(time_us, end_us)
            estimate = self._estimates[key] = TimedEstimate(during, time_us, end_us)
        return estimate


def _boxes(filter: Filter) -> list[Box]:
    return [box_of(conjunction.sets) for conjunction in filter.resolved_form().conjunctions]
