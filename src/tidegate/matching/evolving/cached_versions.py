"""Which version each cached filter goes by ("Self-Evolving Subscriptions", 4.3 and 5.4).

Rules. (1) An event of time T that has the attributes of what moves makes a version of T, unless
there is one of a time v that is still good: T <= v + threshold. (2) An event of an earlier time
than the version makes none. (3) Nothing is made of a filter before its subscription begins.

Theory of operation. Filters that wait for the same attributes and have the same threshold see the
same events. Those that got their versions from the same event are a *cohort*, and expire together;
so an event has to look at the oldest cohort only, however many filters there are.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import count

from tidegate.matching.arrays import NO_TIME
from tidegate.matching.evolving.splitting import Triggers

NEVER = 2**63 - 1

_serials = count()  # heaps must not compare what cannot be compared


@dataclass(slots=True, eq=False)
class _Cohort:
    """Filters that go by versions of one time."""

    held: int
    ids: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class CacheGroup:
    """All filters that the same events concern, and that keep their versions equally long."""

    triggers: Triggers
    threshold: int
    count: int = 0
    waiting: dict[str, int] = field(default_factory=dict)
    """Filters that have no version yet, and from when on they are there."""
    _waiting: list[tuple[int, str]] = field(default_factory=list)
    """The same as a heap, and in it some that wait no more."""
    _cohorts: list[tuple[int, int, _Cohort]] = field(default_factory=list)
    """By their times: a heap, and in it some that are empty."""

    def is_concerned(self, attributes: Collection[str]) -> bool:
        """Whether an event with such attributes may make versions."""
        return any(all(name in attributes for name in each) for each in self.triggers)

    def wait(self, id: str, since: int) -> None:
        """Take in a filter without a version."""
        self.waiting[id] = since
        heapq.heappush(self._waiting, (since, id))

    def take(self, cohort: _Cohort) -> None:
        """Take in filters with their version."""
        heapq.heappush(self._cohorts, (cohort.held, next(_serials), cohort))

    @property
    def due_from(self) -> int:
        """The first time of an event that makes versions, if it has the attributes."""
        while self._waiting and not self._waits(*self._waiting[0]):
            heapq.heappop(self._waiting)
        while self._cohorts and not self._cohorts[0][2].ids:
            heapq.heappop(self._cohorts)
        waiting = self._waiting[0][0] if self._waiting else NEVER
        return min(waiting, self._cohorts[0][0] + self.threshold + 1 if self._cohorts else NEVER)

    def _waits(self, since: int, id: str) -> bool:
        return self.waiting.get(id) == since

    def waiting_at(self, time_us: int) -> list[str]:
        """Those that have no version and are there at a time; they no longer wait."""
        found: list[str] = []
        while self._waiting and self._waiting[0][0] <= time_us:
            since, id = heapq.heappop(self._waiting)
            if self._waits(since, id):
                del self.waiting[id]
                found.append(id)
        return found

    def expired_at(self, time_us: int) -> list[_Cohort]:
        """Those whose versions are too old at a time; they are no longer in here."""
        found: list[_Cohort] = []
        while self._cohorts and self._cohorts[0][0] + self.threshold < time_us:
            found.append(heapq.heappop(self._cohorts)[2])
        return found


class CachedVersions:
    """The times of the versions of all cached filters."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Triggers, int], CacheGroup] = {}
        self._kind_of: dict[str, CacheGroup] = {}
        self._since: dict[str, int] = {}
        self._cohort_of: dict[str, _Cohort] = {}

    def __len__(self) -> int:
        return len(self._kind_of)

    def __contains__(self, id: str) -> bool:
        return id in self._kind_of

    @property
    def kinds(self) -> Iterable[CacheGroup]:
        """All kinds of filters that there are."""
        return self._kinds.values()

    def add(self, id: str, triggers: Triggers, threshold: int, since: int | None) -> CacheGroup:
        """Take in a filter that has no version yet; gives of what kind it is."""
        kind = self._kinds.setdefault((triggers, threshold), CacheGroup(triggers, threshold))
        kind.count += 1
        self._kind_of[id] = kind
        self._since[id] = int(NO_TIME) + 1 if since is None else since
        kind.wait(id, self._since[id])
        return kind

    def resume(self, ids: Iterable[str], held: int) -> None:
        """Let filters that were taken in, all of one kind, have versions of a time."""
        cohort = _Cohort(held)
        for id in ids:
            del self._kind_of[id].waiting[id]
            cohort.ids[id] = None
            self._cohort_of[id] = cohort
        self._kind_of[id].take(cohort)

    def remove(self, id: str) -> None:
        """Forget a filter."""
        kind = self._kind_of.pop(id)
        del self._since[id]
        kind.waiting.pop(id, None)
        cohort = self._cohort_of.pop(id, None)
        if cohort is not None:
            del cohort.ids[id]
        kind.count -= 1
        if not kind.count:
            del self._kinds[kind.triggers, kind.threshold]

    def drop(self, id: str) -> None:
        """Let a filter have no version, until the next event makes one."""
        cohort = self._cohort_of.pop(id, None)
        if cohort is not None:
            del cohort.ids[id]
            self._kind_of[id].wait(id, self._since[id])

    def renew(self, attributes: Collection[str], time_us: int) -> list[str]:
        """Let an event make versions; gives the filters that go by a version of its time now."""
        found: list[str] = []
        for kind in self._kinds.values():
            if time_us >= kind.due_from and kind.is_concerned(attributes):
                found += self._renew(kind, time_us)
        return found

    def _renew(self, kind: CacheGroup, time_us: int) -> list[str]:
        """Let all filters of a kind that have no good version get one of a time."""
        expired = kind.expired_at(time_us)
        cohort = max(expired, key=lambda each: len(each.ids), default=_Cohort(time_us))
        joining = [id for each in expired if each is not cohort for id in each.ids]
        for id in [*joining, *kind.waiting_at(time_us)]:
            cohort.ids[id] = None
            self._cohort_of[id] = cohort
        cohort.held = time_us
        kind.take(cohort)
        return list(cohort.ids)
