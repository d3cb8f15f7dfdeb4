"""The covering poset as a matcher: subscriptions with equal filters share a node (Siena, 4.2).

A subscription is at the node of its filter with the values of its parameters; an update moves it to
another node. Filters that depend on `t`, `now()` or variables are refused: what covers them now may
not cover them later. `evolving/lazy.py` splits them off before they get here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import match_each
from tidegate.matching.poset.coverage import FILTERS
from tidegate.matching.poset.nodes import PosetNode
from tidegate.matching.poset.poset import Poset
from tidegate.matching.subscription import Moment, Subscription


class PosetMatcher:
    """Finds the nodes that an event matches, and the subscriptions at them."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._poset: Poset[Filter] = Poset(FILTERS)
        self._nodes: dict[str, PosetNode[Filter]] = {}
        self._lock = forkable_lock(Rank.MATCHER)

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new = list(subscriptions)  # drawn without the lock: it may be a generator of the user
        for each in new:
            if each.filter.evolves:
                raise SubscriptionError(
                    f"subscription {each.id!r}: the poset takes static filters only, "
                    f"and this one evolves: {each.filter}"
                )
        with self._lock:
            ids: set[str] = set()
            for each in new:
                if each.id in self._subscriptions or each.id in ids:
                    raise SubscriptionError(f"there already is a subscription {each.id!r}")
                ids.add(each.id)
            for each in new:
                self._insert(each)

    def remove(self, id: str) -> None:
        with self._lock:
            self._remove(id)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            changed = self._subscriptions[id].updated(parameters)
            self._remove(id)
            self._insert(changed)

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            return [
                id
                for node in self._poset.matching(event)
                for id in map(str, node.subscribers)
                if self._subscriptions[id].lives(moment)
            ]

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions

    def _insert(self, subscription: Subscription) -> None:
        id, filter = subscription.id, subscription.filter
        static = filter.at(subscription.parameters) if filter.parameters else filter
        node = self._nodes[id] = self._poset.insert(static)
        node.subscribers.add(id)
        self._subscriptions[id] = subscription

    def _remove(self, id: str) -> None:
        del self._subscriptions[id]
        node = self._nodes.pop(id)
        node.subscribers.remove(id)
        if not node.subscribers:
            self._poset.remove(node)
