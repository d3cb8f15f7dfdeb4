"""Cached lazy evaluation ("Self-Evolving Subscriptions", 4.3 and 5.4): evaluated now and then.

Rule. A filter is evaluated as of the time of its version; which event makes a version, and for how
long it is good, is in `cached_versions`.

Theory of operation. Before an event is matched, filters that get a version from it are pinned in
the inner matcher, which evaluates them as of that time until they are pinned again. A batch is cut
before each event that makes versions, so that each event sees what it would see by itself.

An inner matcher need not know when a pin expires. A later event either has the trigger attributes,
and then the filter is pinned again before it is matched; or it has not, and then no disjunct that
depends on the time can be true, whatever the pin.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

import numpy as np
import numpy.typing as npt

from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.evolving.cached_versions import CachedVersions, CacheGroup
from tidegate.matching.evolving.splitting import triggers_of
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import BulkUpdatingMatcher, PinningMatcher, Updates, update_each
from tidegate.matching.subscription import Moment, Subscription

CHUNK_EVENTS = 8_192
"""Bounds the masks of trigger events, one for each group, that are computed ahead for a batch."""


class CachedMatcher:
    """Adds `Cached` filters to a matcher.

    Lock order: the lock of this class, then that of the inner matcher. It is held while versions
    and pins change together, and not while events are matched.
    """

    def __init__(self, inner: PinningMatcher) -> None:
        self._inner = inner
        self._update_inner: Callable[[Updates], None] = (
            inner.update_many
            if isinstance(inner, BulkUpdatingMatcher)
            else partial(update_each, inner)
        )
        self._versions = CachedVersions()
        self._lock = forkable_lock(Rank.CACHED)

    def resume(self, subscriptions: Iterable[Subscription]) -> None:
        """Continue with subscriptions that the inner matcher has already, and with their pins."""
        pinned: dict[tuple[CacheGroup, int], list[str]] = {}
        for each in subscriptions:
            group = self._note(each)
            if group is not None and each.pinned_at_us is not None:
                pinned.setdefault((group, each.pinned_at_us), []).append(each.id)
        for (_, time_us), ids in pinned.items():
            self._versions.resume(ids, time_us)

    def _note(self, subscription: Subscription) -> CacheGroup | None:
        """Note a subscription if it is `Cached` and depends on time; returns its group if so."""
        if not isinstance(subscription.evolve, Cached):
            return None
        triggers = triggers_of(subscription.filter.shape_and_row[0])
        if not triggers:
            return None
        threshold_us = subscription.evolve.threshold_us
        return self._versions.add(subscription.id, triggers, threshold_us, subscription.since)

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        cached: list[Subscription] = []

        def noting_cached() -> Iterator[Subscription]:
            for each in subscriptions:
                if isinstance(each.evolve, Cached):
                    cached.append(each)
                yield each

        # Without the lock: it may be a generator of the user. Raises before anything is noted here.
        self._inner.add(noting_cached())
        with self._lock:
            for each in cached:
                # What is there now: another thread may have removed it, or even replaced it.
                if each.id in self._inner and each.id not in self._versions:
                    self._note(self._inner.get(each.id))

    def remove(self, id: str) -> None:
        with self._lock:
            self._inner.remove(id)
            if id in self._versions:
                self._versions.remove(id)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        if id in self._versions:
            with self._lock:
                self._inner.update(id, parameters)
                self._drop_versions([id])
            return
        self._inner.update(id, parameters)
        if id in self._versions:  # noted meanwhile
            with self._lock:
                self._drop_versions([id])

    def update_many(self, updates: Updates) -> None:
        """Update many subscriptions, all or none."""
        self._update_inner(updates)
        if len(self._versions):
            with self._lock:
                self._drop_versions(updates)

    def _drop_versions(self, ids: Iterable[str]) -> None:
        """Unpin filters after an update, so that the next trigger event evaluates them again."""
        noted = [id for id in ids if id in self._versions]
        for id in noted:
            self._versions.drop(id)
        if noted:
            self._inner.pin(noted, None)

    def get(self, id: str) -> Subscription:
        return self._inner.get(id)

    def match(self, event: Event, moment: Moment) -> list[str]:
        if len(self._versions) and moment.time_us is not None:
            self._renew(event.attributes, moment.time_us)
        return self._inner.match(event, moment)

    def _renew(self, attributes: Collection[str], time_us: int) -> None:
        """Begin new versions of the filters that an event makes due, and pin these filters."""
        with self._lock:
            ids = self._versions.renew(attributes, time_us)
            if ids:
                self._inner.pin(ids, time_us)

    def match_batch(self, batch: EventBatch) -> Matches:
        if not len(self._versions) or batch.times_us is None:
            return self._inner.match_batch(batch)
        found: list[Matches] = []
        for begin in range(0, batch.length, CHUNK_EVENTS):
            chunk = batch.chunk(begin, min(begin + CHUNK_EVENTS, batch.length))
            for first, end in self._cuts(chunk):
                matches = self._inner.match_batch(chunk.chunk(first, end))
                found.append(matches.shifted(begin + first))
        return Matches.concatenated(found)

    def _cuts(self, batch: EventBatch) -> Iterator[tuple[int, int]]:
        """Ranges of events, each from one that makes versions to before the next such event.

        The versions of a range are made when it is yielded, and it must be matched before the next.
        """
        assert batch.times_us is not None
        triggering: dict[CacheGroup, npt.NDArray[np.bool_]] = {}
        begin = 0
        while begin < batch.length:
            time_us = batch.time(begin)
            if time_us is not None:
                self._renew(batch.event(begin).attributes, time_us)
            end = batch.length
            with self._lock:
                for group in self._versions.groups:
                    if group not in triggering:
                        triggering[group] = _triggering(group, batch)
                    # NO_TIME is less than any due time: an event without a time makes no version
                    makes_version = triggering[group][begin + 1 : end] & (
                        batch.times_us[begin + 1 : end] >= group.due_from_us
                    )
                    if makes_version.any():
                        end = begin + 1 + int(makes_version.argmax())
            yield begin, end
            begin = end

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: str) -> bool:
        return id in self._inner


def _triggering(group: CacheGroup, batch: EventBatch) -> npt.NDArray[np.bool_]:
    """A mask of the events that have the trigger attributes of a group."""
    found = np.zeros(batch.length, np.bool_)
    for names in group.triggers:
        found |= np.logical_and.reduce([batch.present(name) for name in names])
    return found
