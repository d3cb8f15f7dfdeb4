"""The poset as a matcher: subscriptions with equal filters share a node of it (Siena, 4.2).

A subscription stands at the node of its filter with the values of its parameters put in; an update
moves it to another. Filters that move by themselves (`t`, `now()`, `@name`) have no place in an
order of what holds now; they are asked one by one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.orders import FILTERS
from tidegate.matching.poset import Node, Poset
from tidegate.matching.subscription import Moment, Subscription


class PosetMatcher:
    """Finds the nodes that an event matches, and who stands at them."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._poset: Poset[Filter] = Poset(FILTERS)
        self._nodes: dict[str, Node[Filter]] = {}
        self._moving: dict[str, Subscription] = {}
        self._lock = threading.Lock()

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new: dict[str, Subscription] = {}
        for each in subscriptions:
            if each.id in self._subscriptions or each.id in new:
                raise SubscriptionError(f"there already is a subscription {each.id!r}")
            new[each.id] = each
        with self._lock:
            for each in new.values():
                self._put(each)

    def remove(self, id: str) -> None:
        with self._lock:
            self._take(id)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            changed = self._subscriptions[id].updated(parameters)
            self._take(id)
            self._put(changed)

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            found = [
                id
                for node in self._poset.matching(event)
                for id in map(str, node.subscribers)
                if self._subscriptions[id].lives(moment)
            ]
            found += [
                each.id
                for each in self._moving.values()
                if each.lives(moment)
                and holds(each.filter.node, event.attributes, each.environment(moment))
            ]
        return found

    def match_batch(self, batch: EventBatch) -> Matches:
        events: list[int] = []
        ids: list[str] = []
        for index in range(batch.length):
            found = self.match(batch.event(index), batch.moment(index))
            events += [index] * len(found)
            ids += found
        return Matches(np.array(events, np.int64), pa.array(ids, pa.string()))

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions

    def _put(self, subscription: Subscription) -> None:
        id, filter = subscription.id, subscription.filter
        if filter.evolves:
            self._moving[id] = subscription
        else:
            fixed = filter.at(subscription.parameters) if filter.parameters else filter
            node = self._nodes[id] = self._poset.insert(fixed)
            node.subscribers.add(id)
        self._subscriptions[id] = subscription

    def _take(self, id: str) -> None:
        del self._subscriptions[id]
        if self._moving.pop(id, None) is not None:
            return
        node = self._nodes.pop(id)
        node.subscribers.remove(id)
        if not node.subscribers:
            self._poset.remove(node)
