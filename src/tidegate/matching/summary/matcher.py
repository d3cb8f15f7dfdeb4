"""The summary as a matcher: candidates from a summary, made exact by the filters themselves.

A summary may say yes too often, never no wrongly; the home broker makes it exact ("Subscription
Summarization", 4.1). Here both are one: what the summary finds for sure is a match, and the filter
decides the rest. Candidates that it rejects are counted as false positives, so that a budget can be
judged by them.

The summary has constants only, so a subscription is in it with the values of its parameters, and an
update replaces the terms that depend on them. Filters that depend on `t`, `now()` or variables are
refused: `evolving/lazy.py` splits them off before they get here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.forking import Rank, forkable_lock
from tidegate.matching.matcher import match_each
from tidegate.matching.subscription import Moment, Subscription
from tidegate.matching.summary.budget import EXACT_ENOUGH, SummaryBudget
from tidegate.matching.summary.ids import IdLayout
from tidegate.matching.summary.summary import Summary

OWNER = ""
"""The owner of all subscriptions of a matcher."""

_LAYOUT = IdLayout(brokers_max=1, attributes_max=2**31)
"""Ids of a matcher go nowhere, so they have room for whatever attributes events have."""


class SummaryMatcher:
    """Finds candidates in a summary, and verifies those that it is not sure of."""

    def __init__(self, budget: SummaryBudget = EXACT_ENOUGH) -> None:
        self._summary = Summary(budget, _LAYOUT)
        self._subscriptions: dict[str, Subscription] = {}
        self._numbers: dict[str, int] = {}
        self._ids: list[str] = []
        """The ids of subscriptions by number; a number that is free has the empty one."""
        self._free: list[int] = []
        self._lock = forkable_lock(Rank.MATCHER)
        self.candidates = 0
        """Subscriptions that the summary has found, for all events so far."""
        self.false_positives = 0
        """Those of the candidates that did not match."""

    # -- changes ------------------------------------------------------------------------------

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new = list(subscriptions)  # drawn without the lock: it may be a generator of the user
        statics: list[Filter] = []
        for each in new:
            if each.filter.evolves:
                raise SubscriptionError(
                    f"subscription {each.id!r}: a summary takes static filters only, "
                    f"and this one evolves: {each.filter}"
                )
            statics.append(_static(each))
            statics[-1].resolved_form()  # slow, and needs no lock
        with self._lock:
            ids: set[str] = set()
            for each in new:
                if each.id in self._subscriptions or each.id in ids:
                    raise SubscriptionError(f"there already is a subscription {each.id!r}")
                ids.add(each.id)
            self._add_all(new, statics)

    def _add_all(self, new: list[Subscription], statics: list[Filter]) -> None:
        """Add subscriptions to the summary; if it has no room for one, for none."""
        added = 0
        try:
            for each, static in zip(new, statics, strict=True):
                self._insert(each, static)
                added += 1
        except BaseException:
            for each in new[:added]:
                self._remove(each.id)
            raise

    def remove(self, id: str) -> None:
        with self._lock:
            self._remove(id)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        with self._lock:
            changed = self._subscriptions[id].updated(parameters)
            self._summary.replace(OWNER, self._numbers[id], _static(changed))
            self._subscriptions[id] = changed

    def _insert(self, subscription: Subscription, static: Filter) -> None:
        number = self._free[-1] if self._free else len(self._ids)
        self._summary.add(OWNER, number, static)
        if self._free:
            self._ids[self._free.pop()] = subscription.id
        else:
            self._ids.append(subscription.id)
        self._numbers[subscription.id] = number
        self._subscriptions[subscription.id] = subscription

    def _remove(self, id: str) -> None:
        number = self._numbers.pop(id)
        self._summary.remove(OWNER, number)
        del self._subscriptions[id]
        self._ids[number] = ""
        self._free.append(number)

    # -- reading ------------------------------------------------------------------------------

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions

    # -- matching -----------------------------------------------------------------------------

    def match(self, event: Event, moment: Moment) -> list[str]:
        with self._lock:
            return self._match(event, moment)

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def _match(self, event: Event, moment: Moment) -> list[str]:
        entries, sure = self._summary.find(event.attributes)
        is_sure: dict[int, bool] = {}  # of several entries of a subscription, one is enough
        for entry, each in zip(entries.tolist(), sure.tolist(), strict=True):
            number = self._summary.key(entry)[1]
            is_sure[number] = each or is_sure.get(number, False)
        found: list[str] = []
        for number, each in is_sure.items():
            subscription = self._subscriptions[self._ids[number]]
            if not subscription.lives(moment):
                continue
            self.candidates += 1
            if each or _matches(subscription, event, moment):
                found.append(subscription.id)
            else:
                self.false_positives += 1
        return found


def _static(subscription: Subscription) -> Filter:
    """The filter of a subscription with the values of its parameters."""
    filter = subscription.filter
    return filter.at(subscription.parameters) if filter.parameters else filter


def _matches(subscription: Subscription, event: Event, moment: Moment) -> bool:
    environment = subscription.environment(moment)
    return holds(subscription.filter.node, event.attributes, environment)
