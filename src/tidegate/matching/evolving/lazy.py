"""Lazy evaluation ("Self-Evolving Subscriptions", 4.2 and 5.3): evaluated at each event.

Rule. An event matches a filter if it matches the part that stands still and, at its own time, the
part that moves.

Theory of operation. A matcher that can only order or index filters of constants and parameters is
given the still part of each. What it finds for an event (M1) is asked, one by one, whether what
moves holds at that moment (M2). A filter that does not move is given to it whole. Filters that are
`Cached` are asked as of the version that they hold.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.evolving.splitting import split_still
from tidegate.matching.matcher import Matcher, match_each
from tidegate.matching.subscription import Moment, Subscription


@dataclass(frozen=True, slots=True)
class _LazySubscription:
    """A subscription as it was asked for, and what of it is not in the index."""

    subscription: Subscription
    rest: Node
    still_parameters: tuple[str, ...]

    def holds(self, event: Event, moment: Moment) -> bool:
        return holds(self.rest, event.attributes, self.subscription.environment(moment))


class LazyMatcher:
    """Lets a matcher of filters that stand still have filters that move.

    With ``only_cached`` it is one that evaluates such filters itself, but for those that hold a
    version.
    """

    def __init__(self, still: Matcher, *, only_cached: bool = False) -> None:
        self._still = still
        self._only_cached = only_cached
        self._moving: dict[str, _LazySubscription] = {}
        self._lock = threading.Lock()

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        moving: dict[str, _LazySubscription] = {}

        def still_parts() -> Iterator[Subscription]:
            for each in subscriptions:
                if not self._splits(each):
                    yield each
                    continue
                still, rest = split_still(each.filter)
                moving[each.id] = _LazySubscription(each, rest, still.parameters)
                known = {n: v for n, v in each.parameters.items() if n in still.parameters}
                yield replace(each, filter=still, parameters=known)

        with self._lock:
            self._still.add(still_parts())
            self._moving.update(moving)

    def _splits(self, subscription: Subscription) -> bool:
        is_cached = isinstance(subscription.evolve, Cached)
        return subscription.filter.evolves and (is_cached or not self._only_cached)

    def remove(self, id: str) -> None:
        with self._lock:
            self._still.remove(id)
            self._moving.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            moving = self._moving.get(id)
            if moving is None:
                self._still.update(id, parameters)
                return
            changed = moving.subscription.updated(parameters)
            still = {n: v for n, v in parameters.items() if n in moving.still_parameters}
            if still:
                self._still.update(id, still)
            self._moving[id] = replace(moving, subscription=changed)

    def hold(self, ids: Sequence[str], time_us: int | None) -> None:
        with self._lock:
            for id in ids:
                moving = self._moving[id]
                held = replace(moving.subscription, held=time_us)
                self._moving[id] = replace(moving, subscription=held)

    def get(self, id: str) -> Subscription:
        moving = self._moving.get(id)
        return self._still.get(id) if moving is None else moving.subscription

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            found = self._still.match(event, moment)
            if not self._moving:
                return found
            moving = ((id, self._moving.get(id)) for id in found)
            return [id for id, each in moving if each is None or each.holds(event, moment)]

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._still)

    def __contains__(self, id: str) -> bool:
        return id in self._still
