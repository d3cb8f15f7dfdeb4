"""The Rete network as a matcher (EventJava, "Parametric Subscriptions", 5.1; Forgy, 1982).

Each conjunction of a subscription is a chain of joins (beta.py) on conditions (alpha.py), and what
subscriptions have in common is there once. A change of a parameter changes conditions where they
stand in the chain: unlike the poset, which looks for a new place for the whole filter, the network
stays as it is around them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidegate.errors import SubscriptionError
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.matcher import match_each
from tidegate.matching.rete.alpha import Fact
from tidegate.matching.rete.beta import BetaNetwork, JoinChain
from tidegate.matching.rete.conditions import AttributeRanks, ChainStep, Condition, steps_of
from tidegate.matching.subscription import Moment, Subscription


@dataclass(frozen=True, slots=True)
class _Woven:
    """A conjunction of a subscription in the network.

    ``open`` are the places of its chain whose conditions depend on parameters.
    """

    chain: JoinChain
    open: tuple[tuple[int, ChainStep], ...]


class ReteMatcher:
    """Finds the chains that an event gets through, and whose they are."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._network = BetaNetwork()
        self._ranks = AttributeRanks()
        self._woven: dict[str, list[_Woven]] = {}
        self._lock = threading.Lock()

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new = [(each, _steps(each)) for each in subscriptions]
        with self._lock:
            ids: set[str] = set()
            for each, _ in new:
                if each.id in self._subscriptions or each.id in ids:
                    raise SubscriptionError(f"there already is a subscription {each.id!r}")
                ids.add(each.id)
            self._ranks.name(each.filter.attributes for each, _ in new)
            for each, conjunctions in new:
                self._woven[each.id] = [self._weave(each, steps) for steps in conjunctions]
                self._subscriptions[each.id] = each

    def remove(self, id: str) -> None:
        with self._lock:
            gone = self._subscriptions.pop(id)
            for woven in self._woven.pop(id):
                self._network.unravel(woven.chain)
            self._ranks.forget(gone.filter.attributes)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            changed = self._subscriptions[id].updated(parameters)
            for woven in self._woven[id]:
                for place, step in woven.open:
                    if not step.parameters.isdisjoint(parameters):
                        self._network.change(woven.chain, place, _condition(step, changed))
            self._subscriptions[id] = changed

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            reached = self._network.reached(Fact(event, moment, self._network.alphas))
            ids = dict.fromkeys(chain.id for chain in reached)
            return [id for id in ids if self._subscriptions[id].lives(moment)]

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions

    def _weave(self, subscription: Subscription, steps: list[ChainStep]) -> _Woven:
        ordered = self._ranks.in_order(steps)
        conditions = [_condition(step, subscription) for step in ordered]
        chain = self._network.weave(subscription.id, conditions)
        places = [(place, step) for place, step in enumerate(ordered) if step.parameters]
        return _Woven(chain, tuple(places))


def _steps(subscription: Subscription) -> list[list[ChainStep]]:
    return [steps_of(conjunction) for conjunction in disjuncts(subscription.filter.node)]


def _condition(step: ChainStep, subscription: Subscription) -> Condition:
    return step.condition(subscription.parameters, subscription.counts_from)
