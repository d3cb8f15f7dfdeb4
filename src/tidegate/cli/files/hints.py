"""Hints: what is valid and most likely a mistake, said once on stderr after the matches.

A misspelled attribute, a parameter without a value and a string that is compared with a number are
no errors: an event without the attribute may come later. But such a filter gives no match, and no
rows without a word is the worst answer. So the attributes and kinds that filters ask for are
compared with those that the events had.

Theory of operation. Subscriptions are grouped by shape and by the types of their values, which
decide everything but whether the filter is empty; a million of them have a few hundred groups, and
one of each group is looked at. Whether a filter is empty depends on its values, so that is asked of
the first `EMPTY_CHECKED` subscriptions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click
import pyarrow as pa

from tidegate.cli.files.events import EventChunk
from tidegate.language.shapes import Shape
from tidegate.language.values import Kind, kind_of_type
from tidegate.matching.batches import EventBatch
from tidegate.matching.event_kinds import EventKinds
from tidegate.matching.subscription import Subscription

EMPTY_CHECKED = 10_000
"""Number of subscriptions that are asked whether any event can match them, 0.1 ms each."""
SHOWN_MAX = 10
"""Number of hints that are printed; the others are counted."""

_Group = tuple[Shape, tuple[type, ...], tuple[tuple[str, type], ...]]


@dataclass(slots=True)
class _Subscriptions:
    """Subscriptions with the same mistake, or of one group: the first one, and their number."""

    first: Subscription
    count: int = 0

    def __str__(self) -> str:
        others = self.count - 1
        more = f" and {others} other{'s' if others > 1 else ''}" if others else ""
        return f"subscription {self.first.id!r}{more}"


class Hints:
    """Collects what filters ask for and what events have, and prints where they do not fit.

    With ``values_come_later`` a parameter without a value is no mistake: a change may set it.
    """

    def __init__(self, *, values_come_later: bool = False) -> None:
        self._values_come_later = values_come_later
        self._groups: dict[_Group, _Subscriptions] = {}
        self._empty: _Subscriptions | None = None
        """The subscriptions that no event can match."""
        self._asked = 0
        """Number of subscriptions that were asked whether they are empty."""
        self._seen: set[tuple[str, type]] = set()
        """The attributes of events, with the types of their values."""

    def add_subscriptions(self, subscriptions: Iterable[Subscription]) -> None:
        """Note what subscriptions ask for."""
        for each in subscriptions:
            shape, row = each.filter.shape_and_row
            values = tuple((name, type(value)) for name, value in sorted(each.parameters.items()))
            group = shape, tuple(map(type, row)), values
            self._groups.setdefault(group, _Subscriptions(each)).count += 1
            if self._asked < EMPTY_CHECKED:
                self._asked += 1
                self._note_if_empty(each)

    def _note_if_empty(self, subscription: Subscription) -> None:
        filter = subscription.filter
        if filter.never_matches and str(filter) != "false":
            if self._empty is None:
                self._empty = _Subscriptions(subscription)
            self._empty.count += 1

    def add_events(self, chunk: EventChunk) -> None:
        """Note the attributes of events and the types of their values."""
        if isinstance(chunk.events, pa.Table):
            columns = EventBatch.of(chunk.events).columns
            present = [each for each in columns if each[1].null_count < len(each[1])]
            self._seen.update((name, _type_of(column.type)) for name, column in present)
        else:
            for event in chunk.events:
                types = map(type, event.attributes.values())
                self._seen.update(zip(event.attributes, types, strict=True))

    def print(self) -> None:
        """Print the hints on stderr."""
        hints = list(self._hints())
        for hint in hints[:SHOWN_MAX]:
            click.echo(f"hint: {hint}", err=True)
        if len(hints) > SHOWN_MAX:
            click.echo(f"hint: {len(hints) - SHOWN_MAX} more", err=True)

    def _hints(self) -> Iterator[str]:
        if self._empty is not None:
            yield f"{self._empty}: no event can match the filter"
        mistakes: dict[str, _Subscriptions] = {}
        events = _event_kinds(self._seen) if self._seen else None
        for group in self._groups.values():
            found = [] if self._values_come_later else list(_unset_parameters(group.first))
            if events is not None:
                found += events.misfits(group.first)
            for mistake in dict.fromkeys(found):
                mistakes.setdefault(mistake, _Subscriptions(group.first)).count += group.count
        for mistake, subscriptions in mistakes.items():
            yield f"{subscriptions}: {mistake}"


def _unset_parameters(subscription: Subscription) -> Iterator[str]:
    for name in subscription.filter.parameters:
        if name not in subscription.parameters:
            yield f"parameter :{name} has no value, and what is compared with it matches nothing"


def _event_kinds(seen: Iterable[tuple[str, type]]) -> EventKinds:
    kinds: dict[str, set[Kind]] = {}
    for name, given in seen:
        kinds.setdefault(name, set()).add(kind_of_type(given))
    return EventKinds(kinds, "--timestamps {} reads it as a timestamp")


def _type_of(column: Any) -> type:
    """The Python type of the values of an Arrow type."""
    kind = column.value_type if isinstance(column, pa.DictionaryType) else column
    if pa.types.is_boolean(kind):
        return bool
    if pa.types.is_timestamp(kind):
        return datetime
    return float if pa.types.is_integer(kind) or pa.types.is_floating(kind) else str
