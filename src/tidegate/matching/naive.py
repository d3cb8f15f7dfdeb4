"""The oracle: every event is compared with every subscription, by the semantics of the language.

It is slow and simple on purpose: all other matchers, routing and the Spark pipeline are tested
against it, so a reader must see that it is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.matcher import COLLECTED, LinkMatches, match_each
from tidegate.matching.subscription import Moment, Subscription


class NaiveMatcher:
    """Evaluates each filter for each event."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, Subscription] = {}
        self._links: dict[str, int] = {}
        self.steps = 0
        """Filters that were evaluated, for all events so far."""

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        new: dict[str, Subscription] = {}
        for each in subscriptions:
            if each.id in self._subscriptions or each.id in new:
                raise SubscriptionError(f"there already is a subscription {each.id!r}")
            new[each.id] = each
        self._subscriptions.update(new)

    def remove(self, id: str) -> None:
        del self._subscriptions[id]
        self._links.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        self._subscriptions[id] = self._subscriptions[id].updated(parameters)

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        """Evaluate `Cached` filters as of a fixed time, until pinned again; None unpins them."""
        for id in ids:
            self._subscriptions[id] = replace(self._subscriptions[id], pinned_at_us=time_us)

    def get(self, id: str) -> Subscription:
        return self._subscriptions[id]

    def match(self, event: Event, moment: Moment) -> list[str]:
        # A copy, because other threads may subscribe meanwhile.
        subscriptions = list(self._subscriptions.values())
        self.steps += len(subscriptions)
        return [each.id for each in subscriptions if _matches(each, event, moment)]

    def set_links(self, id: str, links: int) -> None:
        """Say over which links a subscription is reached."""
        self.get(id)
        self._links[id] = links

    def match_links(self, event: Event, moment: Moment, mask: int) -> LinkMatches:
        """The links in ``mask`` of all subscriptions that match.

        Subscriptions without a link in ``mask`` are not looked at; a step is one of the others.
        """
        concerned = {id: links & mask for id, links in self._links.items() if links & mask}
        found = 0
        collected: list[str] = []
        for id, links in concerned.items():
            if _matches(self._subscriptions[id], event, moment):
                found |= links
                if links & COLLECTED:
                    collected.append(id)
        self.steps += len(concerned)
        return LinkMatches(found, collected, len(concerned))

    def match_batch(self, batch: EventBatch) -> Matches:
        return match_each(self.match, batch)

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __contains__(self, id: str) -> bool:
        return id in self._subscriptions


def _matches(each: Subscription, event: Event, moment: Moment) -> bool:
    return each.lives(moment) and holds(
        each.filter.node, event.attributes, each.environment(moment)
    )
