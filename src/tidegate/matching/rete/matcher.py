"""The Rete network as a matcher ("Parametric Subscriptions", 5.1: EventJava; Forgy, 1982).

Each conjunction of a subscription is a chain of joins (`beta`) on conditions (`alpha`), and what
subscriptions have in common is in the network once. An update of a parameter changes conditions
where they are in the chain: unlike the poset, which searches a new place for the whole filter, the
network around them stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tidegate.errors import SubscriptionError
from tidegate.language.algebra.normal_form import disjuncts
from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import match_each
from tidegate.matching.rete.alpha import Fact
from tidegate.matching.rete.beta import FAN_MIN, BetaNetwork, JoinChain
from tidegate.matching.rete.conditions import AttributeRanks, ChainStep, Condition, steps_of
from tidegate.matching.rete.range_index import RUN_MAX
from tidegate.matching.subscription import Moment, Subscription


@dataclass(frozen=True, slots=True)
class _ChainPlan:
    """The chain of one conjunction, and its steps that depend on parameters, by position."""

    chain: JoinChain
    parametric: tuple[tuple[int, ChainStep], ...]


class ReteMatcher:
    """Finds the chains all of whose conditions an event meets, and their subscriptions.

    ``fan_min`` and ``run_max`` are those of `BetaNetwork`.
    """

    def __init__(self, *, fan_min: int = FAN_MIN, run_max: int = RUN_MAX) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._network = BetaNetwork(fan_min=fan_min, run_max=run_max)
        self._ranks = AttributeRanks()
        self._plans: dict[str, list[_ChainPlan]] = {}
        self._lock = forkable_lock(Rank.MATCHER)

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new = [(each, _steps(each)) for each in subscriptions]  # slow, and needs no lock
        with self._lock:
            # All are checked before any is added: either all are, or none.
            ids: set[str] = set()
            for each, _ in new:
                if each.id in self._subscriptions or each.id in ids:
                    raise SubscriptionError(f"there already is a subscription {each.id!r}")
                ids.add(each.id)
            # Before the chains, whose order depends on the ranks.
            self._ranks.add(each.filter.attributes for each, _ in new)
            for each, conjunctions in new:
                self._plans[each.id] = [self._add_chain(each, steps) for steps in conjunctions]
                self._subscriptions[each.id] = each

    def remove(self, id: str) -> None:
        with self._lock:
            removed = self._subscriptions.pop(id)
            for plan in self._plans.pop(id):
                self._network.remove(plan.chain)
            self._ranks.remove(removed.filter.attributes)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            changed = self._subscriptions[id].updated(parameters)  # raises before any change
            for plan in self._plans[id]:
                for position, step in plan.parametric:
                    if not step.parameters.isdisjoint(parameters):
                        self._network.change(plan.chain, position, _condition(step, changed))
            self._subscriptions[id] = changed

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            chains = self._network.matching(Fact(event, moment, self._network.alphas))
            ids = dict.fromkeys(chain.id for chain in chains)  # several disjuncts may match
            return [id for id in ids if self._subscriptions[id].lives(moment)]

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions

    def _add_chain(self, subscription: Subscription, steps: list[ChainStep]) -> _ChainPlan:
        ordered = self._ranks.in_order(steps)
        conditions = [_condition(step, subscription) for step in ordered]
        chain = self._network.add(subscription.id, conditions)
        parametric = [(i, step) for i, step in enumerate(ordered) if step.parameters]
        return _ChainPlan(chain, tuple(parametric))


def _steps(subscription: Subscription) -> list[list[ChainStep]]:
    """The steps of each conjunction of a subscription's filter."""
    return [steps_of(conjunction) for conjunction in disjuncts(subscription.filter.node)]


def _condition(step: ChainStep, subscription: Subscription) -> Condition:
    return step.condition(subscription.parameters, subscription.counts_from)
