"""The time at which each `Cached` filter is pinned ("Self-Evolving Subscriptions", 4.3 and 5.4).

Rules. (1) An event of time T that has the trigger attributes of a filter makes a version as of T,
unless the filter has a version of a time v that has not expired: v <= T <= v + threshold. (2) An
event of an earlier time than the version makes none. (3) No version is made before the subscription
begins.

Theory of operation. Filters with the same triggers and the same threshold are a *group*: the same
events make versions for them. Those of a group that got their versions from the same event are a
*cohort*, and expire together. So an event looks at the oldest cohort of each group only, however
many filters there are; a filter is touched when its version changes and never otherwise.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import count

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.evolving.splitting import Triggers

NEVER = 2**63 - 1
"""A time in microseconds that no event has."""

STALE_MIN = 64
"""Invalid elements that a heap may have besides as many as there are valid ones."""

_serials = count()  # break ties in heaps, which would compare cohorts otherwise


@dataclass(slots=True, eq=False)
class _Cohort:
    """Filters with versions of one time."""

    pinned_at_us: int
    ids: dict[str, None] = field(default_factory=dict)
    """An ordered set, so that runs are the same each time."""


@dataclass(slots=True, eq=False)
class CacheGroup:
    """All filters with the same triggers and the same threshold."""

    triggers: Triggers
    threshold_us: int
    count: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Filters without a version, each with the beginning of its subscription."""
    _waiting_heap: list[tuple[int, str]] = field(default_factory=list)
    """The same as (beginning, id). Entries of filters that got a version or were removed stay until
    they come first, or are most of the heap; an entry is valid if ``waiting`` has it."""
    _cohorts: list[tuple[int, int, _Cohort]] = field(default_factory=list)
    """A heap of (time of the version, serial, cohort). Cohorts that became empty stay until they
    come first, or are most of the heap."""

    def is_triggered_by(self, attributes: Collection[str]) -> bool:
        """Whether an event with these attributes may make versions."""
        return any(all(name in attributes for name in each) for each in self.triggers)

    def wait(self, id: str, since_us: int) -> None:
        """Add a filter without a version."""
        self.waiting[id] = since_us
        heapq.heappush(self._waiting_heap, (since_us, id))
        if len(self._waiting_heap) > 2 * len(self.waiting) + STALE_MIN:
            self._waiting_heap = [(since_us, id) for id, since_us in self.waiting.items()]
            heapq.heapify(self._waiting_heap)

    def take(self, cohort: _Cohort) -> None:
        """Add filters with their version."""
        heapq.heappush(self._cohorts, (cohort.pinned_at_us, next(_serials), cohort))
        if len(self._cohorts) > 2 * self.count + STALE_MIN:
            self._cohorts = [each for each in self._cohorts if each[2].ids]
            heapq.heapify(self._cohorts)

    @property
    def due_from_us(self) -> int:
        """The earliest time at which an event with the trigger attributes makes a version."""
        while self._waiting_heap and not self._waits(*self._waiting_heap[0]):
            heapq.heappop(self._waiting_heap)
        while self._cohorts and not self._cohorts[0][2].ids:
            heapq.heappop(self._cohorts)
        begun_us = self._waiting_heap[0][0] if self._waiting_heap else NEVER
        # the last microsecond of a version is pinned_at_us + threshold_us, inclusive
        expired_us = self._cohorts[0][0] + self.threshold_us + 1 if self._cohorts else NEVER
        return min(begun_us, expired_us)

    def _waits(self, since_us: int, id: str) -> bool:
        return self.waiting.get(id) == since_us

    def pop_waiting(self, time_us: int) -> list[str]:
        """Remove and return the filters without a version whose subscriptions have begun."""
        found: list[str] = []
        while self._waiting_heap and self._waiting_heap[0][0] <= time_us:
            since_us, id = heapq.heappop(self._waiting_heap)
            if self._waits(since_us, id):
                del self.waiting[id]
                found.append(id)
        return found

    def pop_expired(self, time_us: int) -> list[_Cohort]:
        """Remove and return the cohorts whose versions have expired at a time."""
        found: list[_Cohort] = []
        while self._cohorts and self._cohorts[0][0] + self.threshold_us < time_us:
            found.append(heapq.heappop(self._cohorts)[2])
        return found


class CachedVersions:
    """The times of the versions of all `Cached` filters."""

    def __init__(self) -> None:
        self._groups: dict[tuple[Triggers, int], CacheGroup] = {}
        self._group_of: dict[str, CacheGroup] = {}
        self._since_us: dict[str, int] = {}
        self._cohort_of: dict[str, _Cohort] = {}

    def __len__(self) -> int:
        return len(self._group_of)

    def __contains__(self, id: str) -> bool:
        return id in self._group_of

    @property
    def groups(self) -> Iterable[CacheGroup]:
        """All groups of filters."""
        return self._groups.values()

    def add(
        self, id: str, triggers: Triggers, threshold_us: int, since_us: int | None
    ) -> CacheGroup:
        """Add a filter without a version; returns its group."""
        key = (triggers, threshold_us)
        group = self._groups.setdefault(key, CacheGroup(triggers, threshold_us))
        group.count += 1
        self._group_of[id] = group
        # just after NO_TIME: an event without a time is before every beginning
        self._since_us[id] = int(NO_TIME) + 1 if since_us is None else since_us
        group.wait(id, self._since_us[id])
        return group

    def resume(self, ids: Iterable[str], pinned_at_us: int) -> None:
        """Begin a version, pinned at a time, of waiting filters of one group."""
        cohort = _Cohort(pinned_at_us)
        for id in ids:
            del self._group_of[id].waiting[id]
            cohort.ids[id] = None
            self._cohort_of[id] = cohort
        self._group_of[id].take(cohort)

    def remove(self, id: str) -> None:
        """Remove a filter."""
        group = self._group_of.pop(id)
        del self._since_us[id]
        group.waiting.pop(id, None)
        cohort = self._cohort_of.pop(id, None)
        if cohort is not None:
            del cohort.ids[id]
        group.count -= 1
        if not group.count:
            del self._groups[group.triggers, group.threshold_us]

    def drop(self, id: str) -> None:
        """Drop the version of a filter, if it has one; the next trigger event makes another."""
        cohort = self._cohort_of.pop(id, None)
        if cohort is not None:
            del cohort.ids[id]
            self._group_of[id].wait(id, self._since_us[id])

    def renew(self, attributes: Collection[str], time_us: int) -> list[str]:
        """Make the versions that an event makes; returns the filters whose version is new."""
        found: list[str] = []
        for group in self._groups.values():
            if time_us >= group.due_from_us and group.is_triggered_by(attributes):
                found += self._renew(group, time_us)
        return found

    def _renew(self, group: CacheGroup, time_us: int) -> list[str]:
        """Give all filters of a group without a good version one of a time."""
        expired = group.pop_expired(time_us)
        # the largest cohort is reused and the others join it: a filter is moved only if it must be
        cohort = max(expired, key=lambda each: len(each.ids), default=_Cohort(time_us))
        joining = [id for each in expired if each is not cohort for id in each.ids]
        for id in [*joining, *group.pop_waiting(time_us)]:
            cohort.ids[id] = None
            self._cohort_of[id] = cohort
        cohort.pinned_at_us = time_us
        group.take(cohort)
        return list(cohort.ids)
