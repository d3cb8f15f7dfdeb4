"""Filters that move, found by estimates that stand still for a while.

A broker away from the subscriber must lose nothing between two evaluations of a filter, so it goes
by an estimate that matches whatever the filter matches in a stretch of time; the subscriber's own
broker is exact ("Self-Evolving Subscriptions", 4.1). How long the stretch is, the subscriber says:

- `Lazy`: no estimate; the filter is evaluated at each event that it could ever match.
- `Periodic`: the estimate of a period stands in an index; a queue, ordered by when periods end,
  says which are to be replaced. It holds for the period before too: events are on their way.
- `Cached`: an estimate is made at an event, and kept until it expires.

What counts is the time of events. One that is older than the estimate at hand is judged exactly.
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

_QUEUED_MIN = 16
"""A queue is cleared of what has gone when that is more than half of it, and more than this."""


@dataclass(frozen=True, slots=True)
class TimedEstimate:
    """What a filter is taken for from one time to another, both included."""

    estimate: Filter
    begin_us: int
    end_us: int
    number: int = 0
    """By which the queue knows it; 0 if it is not there."""


class EvolvingIndex(Generic[K]):
    """Filters that move, by a key."""

    def __init__(self) -> None:
        self._filters: dict[K, EvolvingFilter] = {}
        self._index: CoveringIndex[K] = CoveringIndex(more_is_narrower=True)
        self._versions: dict[K, TimedEstimate] = {}
        self._queue: list[tuple[int, int, K]] = []
        """The versions of periodic filters by when they end; some may have gone meanwhile."""
        self._queued = 0
        self._newest_us = 0
        """When the newest version of a periodic filter begins."""

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, key: K) -> bool:
        return key in self._filters

    def add(self, key: K, moving: EvolvingFilter) -> None:
        """Take a filter in."""
        self._filters[key] = moving
        if isinstance(moving.evolve, Periodic):
            self._clear_queue()
            self._evolve_to(key, moving, moving.origin_us, moving.evolve)
        else:
            self._index.add(key, _boxes(moving.widest), moves=True)

    def remove(self, key: K) -> None:
        """Forget a filter; KeyError if it is not there."""
        del self._filters[key]
        self._versions.pop(key, None)
        self._index.remove(key)

    def matching(self, event: Event) -> list[K]:
        """The filters that an event matches, or may match by their estimates."""
        time_us = event_us(event)
        self._evolve(time_us)
        _, candidates = self._index.wider([box_of_event(event)])
        found = [key for key in candidates if self._may_match(key, event, time_us)]
        if time_us < self._newest_us:
            found += [key for key in self._younger(time_us) if self._filters[key].matches(event)]
        return found

    def _may_match(self, key: K, event: Event, time_us: int) -> bool:
        moving = self._filters[key]
        match moving.evolve:
            case Periodic():
                version = self._versions[key]
                return version.begin_us <= time_us and version.estimate.matches(event)
            case Cached(threshold):
                version = self._cached(key, moving, time_us, round(threshold * 1e6))
                if version.begin_us <= time_us:
                    return version.estimate.matches(event)
        return moving.matches(event)

    # -- periods ------------------------------------------------------------------------------

    def _evolve(self, time_us: int) -> None:
        """Replace all versions that have ended."""
        queue = self._queue
        while queue and queue[0][0] < time_us:
            _, number, key = heapq.heappop(queue)
            if self._is_current(number, key):
                moving = self._filters[key]
                assert isinstance(moving.evolve, Periodic)
                self._index.remove(key)
                self._evolve_to(key, moving, time_us, moving.evolve)

    def _clear_queue(self) -> None:
        """Forget versions that have gone, if they are many: what changes often leaves one each."""
        if len(self._queue) > 2 * len(self._versions) + _QUEUED_MIN:
            self._queue = [each for each in self._queue if self._is_current(*each[1:])]
            heapq.heapify(self._queue)

    def _is_current(self, number: int, key: K) -> bool:
        version = self._versions.get(key)
        return version is not None and version.number == number

    def _evolve_to(self, key: K, moving: EvolvingFilter, time_us: int, policy: Periodic) -> None:
        interval_us = max(1, round(policy.interval * 1e6))
        number = (time_us - moving.origin_us) // interval_us
        begin_us = moving.origin_us + (number - 1) * interval_us
        end_us = begin_us + 2 * interval_us
        estimate = moving.during(begin_us, end_us)
        self._queued += 1
        self._versions[key] = TimedEstimate(estimate, begin_us, end_us, self._queued)
        self._index.add(key, _boxes(estimate), moves=True)
        self._newest_us = max(self._newest_us, begin_us)
        heapq.heappush(self._queue, (end_us, self._queued, key))

    def _younger(self, time_us: int) -> list[K]:
        """The periodic filters whose versions begin after an event."""
        return [
            key
            for key, version in self._versions.items()
            if version.begin_us > time_us and isinstance(self._filters[key].evolve, Periodic)
        ]

    # -- what is kept for a while -------------------------------------------------------------

    def _cached(
        self, key: K, moving: EvolvingFilter, time_us: int, threshold_us: int
    ) -> TimedEstimate:
        version = self._versions.get(key)
        if version is None or version.end_us < time_us:
            end_us = time_us + threshold_us
            version = TimedEstimate(moving.during(time_us, end_us), time_us, end_us)
            self._versions[key] = version
        return version


def _boxes(filter: Filter) -> list[Box]:
    return [box_of(each.sets) for each in filter.resolved_form().conjunctions]
