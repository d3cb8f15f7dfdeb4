"""Protocols of matchers, and helpers for those that match or update one by one.

Every matcher implements `Matcher`; the conformance tests compare each with `naive`. The other
protocols are optional: an engine asks whether a matcher implements one, never for its class, so
that a new matcher is an entry in `registry.py` and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.matching.arrays import I32, I64
from tidegate.matching.batches import EventBatch, Matches
from tidegate.matching.subscription import Moment, Subscription

Updates = Mapping[str, Mapping[str, Value | None]]
"""New parameter values by the id of the subscription; None removes a value."""


class Matcher(Protocol):
    """A set of subscriptions that finds those which match an event.

    Adding an id that exists raises SubscriptionError. Removing, updating or getting one that does
    not exist raises KeyError with the id.
    """

    def add(self, subscriptions: Iterable[Subscription]) -> None:
        """Add subscriptions, all or none."""
        ...

    def remove(self, id: str) -> None:
        """Remove a subscription."""
        ...

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        """Change parameters of a subscription, all at once; None removes a value.

        Raises UnresolvedError for a parameter that the filter does not name.
        """
        ...

    def get(self, id: str) -> Subscription:
        """A subscription with its current parameters."""
        ...

    def match(self, event: Event, moment: Moment) -> list[str]:
        """The ids of all subscriptions that match an event, in no particular order."""
        ...

    def match_batch(self, batch: EventBatch) -> Matches:
        """All pairs of an event and a subscription that match, ordered by event."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, id: str) -> bool: ...


class PinningMatcher(Matcher, Protocol):
    """A matcher that can evaluate `Cached` filters as of another time than that of the event."""

    def pin(self, ids: Sequence[str], time_us: int | None) -> None:
        """Evaluate `Cached` filters as of a fixed time, until pinned again; None unpins them.

        An event of an earlier time is judged at its own time. Raises KeyError for an unknown id.
        """
        ...


@runtime_checkable
class BulkUpdatingMatcher(Matcher, Protocol):
    """A matcher that updates many subscriptions faster than one by one."""

    def update_many(self, updates: Updates) -> None:
        """Update many subscriptions, all or none."""
        ...


@runtime_checkable
class NumberingMatcher(Matcher, Protocol):
    """A matcher that gives each subscription a small number, for those who keep arrays by number.

    A subscription keeps its number through updates; after its removal the number is used again.
    """

    def numbers(self, ids: Sequence[str]) -> I32:
        """The numbers of subscriptions; raises KeyError."""
        ...

    def match_numbers(self, batch: EventBatch) -> tuple[I64, I32]:
        """As `match_batch`, with the numbers of the subscriptions.

        They mean what they say only as long as nothing is removed.
        """
        ...


@runtime_checkable
class SnapshotMatcher(Matcher, Protocol):
    """A matcher that can be written to a file as it is, indexed."""

    def save(
        self, path: str | Path, *, notes: Callable[[], Mapping[str, object]] | None = None
    ) -> None:
        """Write all subscriptions to one file; a reader sees it as a whole or not at all.

        What ``notes`` returns is written with them, in JSON. It is called while no subscription
        changes.
        """
        ...


@runtime_checkable
class StepCountingMatcher(Matcher, Protocol):
    """A matcher that counts the steps of its searches, with links and without."""

    @property
    def steps(self) -> int:
        """Matching steps of all searches so far; what one is depends on the matcher."""
        ...


COLLECTED = 1
"""The link whose subscriptions are returned themselves by `LinkMatcher.match_links`."""


@dataclass(frozen=True, slots=True)
class LinkMatches:
    """Over which links an event goes, and what it cost to find that out."""

    links: int
    """The links over which some matching subscription is reached, as a set of bits."""
    collected: list[str]
    """The ids of all matching subscriptions that have the link COLLECTED."""
    steps: int
    """Matching steps; what one is depends on the matcher."""


@runtime_checkable
class LinkMatcher(Matcher, Protocol):
    """A matcher that finds the links of an event instead of its subscriptions (Gryphon, 3).

    A set of links is an integer with a bit for each. A subscription without links is found by
    `match` alone.
    """

    def set_links(self, id: str, links: int) -> None:
        """Say over which links a subscription is reached; raises KeyError for an unknown id."""
        ...

    def match_links(self, event: Event, moment: Moment, mask: int) -> LinkMatches:
        """The links in ``mask`` over which a subscription that matches an event is reached."""
        ...


def match_each(match: Callable[[Event, Moment], list[str]], batch: EventBatch) -> Matches:
    """The matches of a batch for a matcher that takes one event at a time."""
    events: list[int] = []
    ids: list[str] = []
    for index in range(batch.length):
        found = match(batch.event(index), batch.moment(index))
        events += [index] * len(found)
        ids += found
    return Matches(np.array(events, np.int64), pa.array(ids, pa.string()))


def update_each(matcher: Matcher, updates: Updates) -> None:
    """Update many subscriptions of a matcher one by one, all or none."""
    for id, parameters in updates.items():
        matcher.get(id).updated(parameters)  # raises before the first of them is changed
    for id, parameters in updates.items():
        matcher.update(id, parameters)
