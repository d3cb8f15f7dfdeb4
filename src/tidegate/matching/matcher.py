"""What every matcher can do. The conformance tests hold each of them to `naive`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.subscription import Moment, Subscription


class Matcher(Protocol):
    """A set of subscriptions that finds those which match an event.

    Adding what is there already is a SubscriptionError; removing, changing or getting what is not
    there is a KeyError.
    """

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        """Take subscriptions in, all or none."""
        ...

    def remove(self, id: str) -> None:
        """Forget a subscription."""
        ...

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        """Change parameters of a subscription, all at once; None takes a value away."""
        ...

    def get(self, id: str) -> Subscription:
        """A subscription as it stands."""
        ...

    def match(self, event: Event, moment: Moment) -> list[str]:
        """The ids of all subscriptions that match an event, in no particular order."""
        ...

    def match_batch(self, batch: EventBatch) -> Matches:
        """All pairs of an event and a subscription that match, ordered by event."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, id: str) -> bool: ...


def match_each(match: Callable[[Event, Moment], list[str]], batch: EventBatch) -> Matches:
    """The matches of a batch for a matcher that takes one event at a time."""
    events: list[int] = []
    ids: list[str] = []
    for index in range(batch.length):
        found = match(batch.event(index), batch.moment(index))
        events += [index] * len(found)
        ids += found
    return Matches(np.array(events, np.int64), pa.array(ids, pa.string()))


class PinningMatcher(Matcher, Protocol):
    """A matcher that filters may ask to be judged as of another time than that of the event."""

    def hold(self, ids: Sequence[str], time_us: int | None) -> None:
        """Have filters that are `Cached` go by their version of a time; None if they have none.

        An event of an earlier time is judged at its own. Raises KeyError for one that is not there.
        """
        ...
