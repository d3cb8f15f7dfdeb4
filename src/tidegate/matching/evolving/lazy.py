"""Lazy evaluation ("Self-Evolving Subscriptions", 4.2 and 5.3): evaluated at each event.

Rule. An event matches a filter if it matches the static part and, as of its own time, the evolving
part.

Theory of operation. A matcher that can index or order static filters only is given the static part
of each filter (see `splitting`). For each id that it finds for an event (M1 in the paper) the
evolving part is evaluated at the moment of the event (M2). A static filter is given to it whole.
A pinned `Cached` filter is evaluated as of the time it is pinned at, which `Subscription` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tidegate.language.events import Event
from tidegate.language.evolve import Cached
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.evolving.splitting import split_static
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import Matcher, match_each
from tidegate.matching.subscription import Moment, Subscription


@dataclass(frozen=True, slots=True)
class _SplitSubscription:
    """A subscription whose static part is in the inner matcher, and the rest of its filter."""

    subscription: Subscription
    rest: Node
    static_parameters: tuple[str, ...]
    """The parameters that the static part names; the inner matcher would refuse any other."""

    def matches_rest(self, event: Event, moment: Moment) -> bool:
        return holds(self.rest, event.attributes, self.subscription.environment(moment))


class LazyMatcher:
    """Adds evolving filters to a matcher of static ones.

    With ``only_cached`` the inner matcher evaluates evolving filters itself, at the time of the
    event, and only `Cached` ones are split: they may have to be evaluated as of another time.
    """

    def __init__(self, inner: Matcher, *, only_cached: bool = False) -> None:
        self._inner = inner
        self._only_cached = only_cached
        self._split: dict[str, _SplitSubscription] = {}
        self._lock = forkable_lock(Rank.LAZY)
        """Held by matches too: the static part inside and the rest here must be of one update."""

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        split: dict[str, _SplitSubscription] = {}
        parts: list[Subscription] = []
        for each in subscriptions:  # without the lock: it may be a generator of the user
            if not self._needs_split(each):
                parts.append(each)
                continue
            static, rest = split_static(each.filter)
            split[each.id] = _SplitSubscription(each, rest, static.parameters)
            known = {n: v for n, v in each.parameters.items() if n in static.parameters}
            parts.append(replace(each, filter=static, parameters=known))
        with self._lock:
            self._inner.add(parts)  # raises before anything is noted here
            self._split.update(split)

    def _needs_split(self, subscription: Subscription) -> bool:
        is_cached = isinstance(subscription.evolve, Cached)
        return subscription.filter.evolves and (is_cached or not self._only_cached)

    def remove(self, id: str) -> None:
        with self._lock:
            self._inner.remove(id)
            self._split.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            split = self._split.get(id)
            if split is None:
                self._inner.update(id, parameters)
                return
            updated = split.subscription.updated(parameters)  # checks the names of all of them
            static = {n: v for n, v in parameters.items() if n in split.static_parameters}
            if static:
                self._inner.update(id, static)
            self._split[id] = replace(split, subscription=updated)

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        with self._lock:
            for id in ids:
                split = self._split[id]
                pinned = replace(split.subscription, pinned_at_us=time_us)
                self._split[id] = replace(split, subscription=pinned)

    def get(self, id: str) -> Subscription:
        split = self._split.get(id)
        return self._inner.get(id) if split is None else split.subscription

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            candidates = self._inner.match(event, moment)
            if not self._split:
                return candidates
            split = ((id, self._split.get(id)) for id in candidates)
            return [id for id, each in split if each is None or each.matches_rest(event, moment)]

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._inner)

    def __contains__(self, id: str) -> bool:
        return id in self._inner
