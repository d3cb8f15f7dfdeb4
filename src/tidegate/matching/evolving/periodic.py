"""Periodic evolution ("Self-Evolving Subscriptions", 4.1 and 5.2): evaluated at fixed intervals.

Rules. (1) Version k of a filter is in force from k intervals after its beginning on, with the `t`
of that time. (2) So the answer for an event depends on its time alone, not on the events before it.

Theory of operation. The inner matcher has one version of each filter, as a static filter: `t` and
`now()` are parameters of it, under names that no text can have, and an evolution is an update of
these parameters. A queue, ordered by when the next evolution is due, is processed up to the time
of each event; no thread and no clock is needed. If several evolutions of a filter were missed, only
the last is made. Evolution never goes back: an event of an earlier time than the version inside
(late, or out of order in a batch) is judged for that filter alone, by the language's semantics.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.expressions import Elapsed, Expression, Now, ParameterRef
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import expression_leaves, map_leaves
from tidegate.language.values import Value
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.evolving.splitting import is_time
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import PinningMatcher, match_each
from tidegate.matching.subscription import Moment, Subscription

STALE_MIN = 64
"""Invalid elements that the queue may have besides as many as there are valid ones."""

ELAPSED, NOW = "t()", "now()"
"""The parameters in place of `t` and `now()`; no text can name a parameter with parentheses."""


@dataclass(frozen=True, slots=True)
class _PeriodicSubscription:
    """A subscription as it was added, and the version of it that is in the inner matcher."""

    subscription: Subscription
    parametric: Filter
    """The filter with parameters in place of `t` and `now()`."""
    interval_us: int
    version_us: int
    """The time as of which the version is evaluated."""

    @classmethod
    def of(cls, subscription: Subscription) -> _PeriodicSubscription | None:
        """The subscription with its first version; None if it does not evolve periodically."""
        if not isinstance(subscription.evolve, Periodic):
            return None
        leaves = {leaf for leaf in expression_leaves(subscription.filter.node) if is_time(leaf)}
        begin_us = subscription.counts_from
        if not leaves or (begin_us is None and Now() not in leaves):
            return None  # static; without a beginning `t` is always 0
        parametric = Filter(map_leaves(subscription.filter.node, _as_parameter))
        return cls(subscription, parametric, subscription.evolve.interval_us, begin_us or 0)

    @property
    def due_us(self) -> int:
        """When the next version begins."""
        return self.version_us + self.interval_us

    @property
    def time_parameters(self) -> dict[str, Value | None]:
        """The values of the parameters in place of `t` and `now()`."""
        environment = self.subscription.exact_environment(Moment(self.version_us))
        times: dict[str, Value | None] = {ELAPSED: environment.t, NOW: environment.now}
        return {name: value for name, value in times.items() if name in self.parametric.parameters}

    def as_static(self) -> Subscription:
        """The version as a static subscription."""
        known = {**self.subscription.parameters, **self.time_parameters}
        values = {name: value for name, value in known.items() if value is not None}
        return replace(self.subscription, filter=self.parametric, parameters=values, evolve=None)

    def matches(self, event: Event, moment: Moment) -> bool:
        """Whether the version of a moment, whichever that is, matches an event."""
        added = self.subscription
        return added.lives(moment) and holds(
            added.filter.node, event.attributes, added.environment(moment)
        )


def _as_parameter(leaf: Expression) -> Expression:
    match leaf:
        case Elapsed():
            return ParameterRef(ELAPSED)
        case Now():
            return ParameterRef(NOW)
    return leaf


class PeriodicMatcher:
    """Adds filters that evolve periodically to a matcher."""

    def __init__(self, inner: PinningMatcher) -> None:
        self._inner = inner
        self._periodic: dict[str, _PeriodicSubscription] = {}
        self._queue: list[tuple[int, str]] = []
        """A heap of (time of the next evolution, id). Removed subscriptions stay in it until they
        are due, or are most of it; an entry is valid if the subscription exists and is due at that
        very time."""
        self._newest_us = int(NO_TIME)
        """The latest time of a version inside. Events from then on need no look at all versions."""
        self._lock = forkable_lock(Rank.PERIODIC)

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        periodic: dict[str, _PeriodicSubscription] = {}
        first_versions: list[Subscription] = []
        for each in subscriptions:  # without the lock: it may be a generator of the user
            new = _PeriodicSubscription.of(each)
            if new is not None:
                periodic[each.id] = new
            first_versions.append(each if new is None else new.as_static())
        with self._lock:
            self._inner.add(first_versions)  # raises before anything is noted here
            for id, new in periodic.items():
                self._put(id, new)
                if new.subscription.since is None:
                    # it matches events before its first version, unlike one that has a beginning
                    self._newest_us = max(self._newest_us, new.version_us)

    def _put(self, id: str, periodic: _PeriodicSubscription) -> None:
        self._periodic[id] = periodic
        heapq.heappush(self._queue, (periodic.due_us, id))
        if len(self._queue) > 2 * len(self._periodic) + STALE_MIN:
            self._queue = [(each.due_us, id) for id, each in self._periodic.items()]
            heapq.heapify(self._queue)

    def remove(self, id: str) -> None:
        with self._lock:
            self._inner.remove(id)
            self._periodic.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            periodic = self._periodic.get(id)
            if periodic is not None:
                updated = periodic.subscription.updated(parameters)
                self._periodic[id] = replace(periodic, subscription=updated)
            self._inner.update(id, parameters)

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        self._inner.pin(ids, time_us)

    def get(self, id: str) -> Subscription:
        periodic = self._periodic.get(id)
        return self._inner.get(id) if periodic is None else periodic.subscription

    def match(self, event: Event, moment: Moment) -> list[str]:
        if not self._periodic:
            return self._inner.match(event, moment)
        with self._lock:
            if moment.time_us is not None:
                self._evolve(moment.time_us)
            others = self._of_other_times(moment.time_us)
            found = self._inner.match(event, moment)
            if not others:
                return found
            kept = [id for id in found if id not in others]
            return kept + [id for id, each in others.items() if each.matches(event, moment)]

    def _evolve(self, time_us: int) -> None:
        """Make all evolutions that are due at a time."""
        while self._queue and self._queue[0][0] <= time_us:
            due_us, id = heapq.heappop(self._queue)
            before = self._periodic.get(id)
            if before is None or before.due_us != due_us:
                continue
            after = replace(before, version_us=before.subscription.judged_at(time_us))
            self._inner.update(id, after.time_parameters)
            self._put(id, after)
            self._newest_us = max(self._newest_us, after.version_us)

    def _of_other_times(self, time_us: int | None) -> Mapping[str, _PeriodicSubscription]:
        """The subscriptions whose version inside is later than a time; all for an event without."""
        if time_us is None:
            return self._periodic
        if time_us >= self._newest_us:
            return {}
        return {id: each for id, each in self._periodic.items() if each.version_us > time_us}

    def match_batch(self, batch: EventBatch) -> Matches:
        if not self._periodic:
            return self._inner.match_batch(batch)
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: str) -> bool:
        return id in self._inner
