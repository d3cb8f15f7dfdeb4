"""Cached lazy evaluation ("Self-Evolving Subscriptions", 4.3 and 5.4): evaluated now and then.

Theory of operation. `cached_versions` says of which time the version is that each filter goes by.
Before an event is matched, filters that get a version from it are told so to the matcher inside,
which judges them as of that time until it is told another. A batch is cut where an event makes
versions, so that each event sees what it would see by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.evolving.cached_versions import CachedVersions, CacheGroup
from tidegate.matching.evolving.splitting import triggers_of
from tidegate.matching.matcher import PinningMatcher
from tidegate.matching.subscription import Moment, Subscription

WINDOW_EVENTS = 8_192
"""So many events are looked over at once for those that make versions."""


class CachedMatcher:
    """Lets a matcher have filters that are evaluated now and then."""

    def __init__(self, inner: PinningMatcher) -> None:
        self._inner = inner
        self._versions = CachedVersions()
        self._lock = threading.Lock()

    def resume(self, subscriptions: Iterable[Subscription]) -> None:
        """Go on with subscriptions that the matcher inside has already, and with their versions."""
        held: dict[tuple[CacheGroup, int], list[str]] = {}
        for each in subscriptions:
            kind = self._notice(each)
            if kind is not None and each.held is not None:
                held.setdefault((kind, each.held), []).append(each.id)
        for (_, time_us), ids in held.items():
            self._versions.resume(ids, time_us)

    def _notice(self, subscription: Subscription) -> CacheGroup | None:
        """Take note of a subscription if it is cached, and moves; gives of what kind it is."""
        if not isinstance(subscription.evolve, Cached):
            return None
        triggers = triggers_of(subscription.filter.shape_and_row[0])
        if not triggers:
            return None
        threshold = subscription.evolve.threshold_us
        return self._versions.add(subscription.id, triggers, threshold, subscription.since)

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        cached: list[Subscription] = []

        def all_of_them() -> Iterator[Subscription]:
            for each in subscriptions:
                if isinstance(each.evolve, Cached):
                    cached.append(each)
                yield each

        self._inner.add(all_of_them())
        with self._lock:
            for each in cached:
                self._notice(each)

    def remove(self, id: str) -> None:
        with self._lock:
            self._inner.remove(id)
            if id in self._versions:
                self._versions.remove(id)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        if id not in self._versions:
            self._inner.update(id, parameters)
            return
        with self._lock:
            self._inner.update(id, parameters)
            self._versions.drop(id)
            self._inner.hold([id], None)

    def drop_versions(self, ids: Iterable[str]) -> None:
        """Have subscriptions that were changed inside evaluated anew at the next event."""
        with self._lock:
            cached = [id for id in ids if id in self._versions]
            for id in cached:
                self._versions.drop(id)
            if cached:
                self._inner.hold(cached, None)

    def get(self, id: str) -> Subscription:
        return self._inner.get(id)

    def match(self, event: Event, moment: Moment) -> list[str]:
        if len(self._versions) and moment.time_us is not None:
            self._renew(event.attributes, moment.time_us)
        return self._inner.match(event, moment)

    def _renew(self, attributes: Collection[str], time_us: int) -> None:
        """Let an event make versions."""
        with self._lock:
            ids = self._versions.renew(attributes, time_us)
            if ids:
                self._inner.hold(ids, time_us)

    def match_batch(self, batch: EventBatch) -> Matches:
        if not len(self._versions) or batch.times_us is None:
            return self._inner.match_batch(batch)
        found: list[Matches] = []
        for begin in range(0, batch.length, WINDOW_EVENTS):
            window = batch.part(begin, min(begin + WINDOW_EVENTS, batch.length))
            for first, last in self._cut(window):
                found.append(self._inner.match_batch(window.part(first, last)).moved(begin + first))
        return Matches.joined(found)

    def _cut(self, batch: EventBatch) -> Iterator[tuple[int, int]]:
        """Parts of a batch, each from an event that makes versions to before the next such."""
        assert batch.times_us is not None
        concerned: dict[CacheGroup, npt.NDArray[np.bool_]] = {}
        begin = 0
        while begin < batch.length:
            time_us = batch.time(begin)
            if time_us is not None:
                self._renew(batch.event(begin).attributes, time_us)
            end = batch.length
            with self._lock:
                for kind in self._versions.kinds:
                    if kind not in concerned:
                        concerned[kind] = _concerned(kind, batch)
                    makes = concerned[kind][begin + 1 : end] & (
                        batch.times_us[begin + 1 : end] >= kind.due_from
                    )
                    end = begin + 1 + int(makes.argmax()) if makes.any() else end
            yield begin, end
            begin = end

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: str) -> bool:
        return id in self._inner


def _concerned(kind: CacheGroup, batch: EventBatch) -> npt.NDArray[np.bool_]:
    """Which events have the attributes of what moves in filters of a kind."""
    found = np.zeros(batch.length, np.bool_)
    for names in kind.triggers:
        found |= np.logical_and.reduce([batch.present(name) for name in names])
    return found
