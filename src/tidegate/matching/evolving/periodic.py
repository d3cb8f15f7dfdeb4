"""Periodic evolution ("Self-Evolving Subscriptions", 4.1 and 5.2): evaluated every so often.

Rules. (1) Version k of a filter holds from k intervals after its beginning on, with the `t` of that
moment. (2) So the answer for an event depends on its time alone, not on which events came before.

Theory of operation. The matcher inside holds the version of now, a filter that stands still: `t`
and `now()` are parameters of it, under names that no filter text can have, and an evolution is an
update of them. A queue, ordered by when the next evolution is due, is worked off as far as the time
of an event has come; no thread and no clock is needed. If several evolutions were missed, only the
last is made. An event that belongs to an earlier version than the one at hand is judged by itself.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from tidegate.matching.matcher import PinningMatcher, match_each
from tidegate.matching.subscription import Moment, Subscription

ELAPSED, NOW = "t()", "now()"
"""The parameters that stand for the time of a version; a text cannot name a parameter so."""


@dataclass(frozen=True, slots=True)
class _Evolving:
    """A subscription as it was asked for, and the time of the version that is in the index."""

    subscription: Subscription
    filter: Filter
    """The filter with parameters in place of time."""
    interval: int
    version: int

    @classmethod
    def of(cls, subscription: Subscription) -> _Evolving | None:
        """What there is to know of a subscription, if it evolves periodically."""
        if not isinstance(subscription.evolve, Periodic):
            return None
        leaves = {leaf for leaf in expression_leaves(subscription.filter.node) if is_time(leaf)}
        begin = subscription.counts_from
        if not leaves or (begin is None and Now() not in leaves):
            return None
        held = Filter(map_leaves(subscription.filter.node, _as_parameter))
        return cls(subscription, held, subscription.evolve.interval_us, begin or 0)

    @property
    def due(self) -> int:
        """When the next version begins."""
        return self.version + self.interval

    @property
    def times(self) -> dict[str, Value | None]:
        """The values of the parameters that stand for time."""
        seen = replace(self.subscription, evolve=None).environment(Moment(self.version))
        times: dict[str, Value | None] = {ELAPSED: seen.t, NOW: seen.now}
        return {name: value for name, value in times.items() if name in self.filter.parameters}

    def as_still(self) -> Subscription:
        """The version, as a subscription that stands still."""
        known = {**self.subscription.parameters, **self.times}
        values = {name: value for name, value in known.items() if value is not None}
        return replace(self.subscription, filter=self.filter, parameters=values, evolve=None)

    def matches(self, event: Event, moment: Moment) -> bool:
        """Whether the version of a moment, whichever that is, matches an event."""
        asked = self.subscription
        return asked.lives(moment) and holds(
            asked.filter.node, event.attributes, asked.environment(moment)
        )


def _as_parameter(leaf: Expression) -> Expression:
    match leaf:
        case Elapsed():
            return ParameterRef(ELAPSED)
        case Now():
            return ParameterRef(NOW)
    return leaf


class PeriodicMatcher:
    """Lets a matcher have filters that evolve periodically."""

    def __init__(self, inner: PinningMatcher) -> None:
        self._inner = inner
        self._evolving: dict[str, _Evolving] = {}
        self._queue: list[tuple[int, str]] = []
        """When the next evolution of each is due: a heap. Those that are no more stay in it."""
        self._newest = int(NO_TIME)
        """The newest time at which one evolved."""
        self._lock = threading.Lock()

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        evolving: dict[str, _Evolving] = {}

        def versions() -> Iterator[Subscription]:
            for each in subscriptions:
                new = _Evolving.of(each)
                if new is not None:
                    evolving[each.id] = new
                yield each if new is None else new.as_still()

        with self._lock:
            self._inner.add(versions())
            for id, new in evolving.items():
                self._put(id, new)
                if new.subscription.since is None:  # it is there for events before, too
                    self._newest = max(self._newest, new.version)

    def _put(self, id: str, evolving: _Evolving) -> None:
        self._evolving[id] = evolving
        heapq.heappush(self._queue, (evolving.due, id))

    def remove(self, id: str) -> None:
        with self._lock:
            self._inner.remove(id)
            self._evolving.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            evolving = self._evolving.get(id)
            if evolving is not None:
                changed = evolving.subscription.updated(parameters)
                self._evolving[id] = replace(evolving, subscription=changed)
            self._inner.update(id, parameters)

    def hold(self, ids: Sequence[str], time_us: int | None) -> None:
        self._inner.hold(ids, time_us)

    def get(self, id: str) -> Subscription:
        evolving = self._evolving.get(id)
        return self._inner.get(id) if evolving is None else evolving.subscription

    def match(self, event: Event, moment: Moment) -> list[str]:
        if not self._evolving:
            return self._inner.match(event, moment)
        with self._lock:
            if moment.time_us is not None:
                self._evolve(moment.time_us)
            apart = self._of_other_times(moment.time_us)
            found = self._inner.match(event, moment)
            if not apart:
                return found
            kept = [id for id in found if id not in apart]
            return kept + [id for id, each in apart.items() if each.matches(event, moment)]

    def _evolve(self, time_us: int) -> None:
        """Make all evolutions that are due at a time."""
        while self._queue and self._queue[0][0] <= time_us:
            due, id = heapq.heappop(self._queue)
            before = self._evolving.get(id)
            if before is None or before.due != due:
                continue
            after = replace(before, version=before.subscription.judged_at(time_us))
            self._inner.update(id, after.times)
            self._put(id, after)
            self._newest = max(self._newest, after.version)

    def _of_other_times(self, time_us: int | None) -> Mapping[str, _Evolving]:
        """Those whose version in the index is not the one of a time; without one, all."""
        if time_us is None:
            return self._evolving
        if time_us >= self._newest:
            return {}
        return {id: each for id, each in self._evolving.items() if each.version > time_us}

    def match_batch(self, batch: EventBatch) -> Matches:
        if not self._evolving:
            return self._inner.match_batch(batch)
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: str) -> bool:
        return id in self._inner
