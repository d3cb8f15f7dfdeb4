"""Warnings about filters that ask for what the events do not have, of which the schema is known."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from tidegate.errors import MisfitWarning, SubscriptionError
from tidegate.language.values import Kind
from tidegate.matching.event_kinds import EventKinds
from tidegate.matching.history.as_of import AsOfMatcher

SHOWN_MAX = 5
"""The number of misfits that a warning lists."""
STRICT = "strict=True makes this an error"

_KINDS: Mapping[type[t.DataType], Kind] = {
    t.StringType: Kind.STRING,
    t.BooleanType: Kind.BOOLEAN,
    t.TimestampType: Kind.TIME,
    t.TimestampNTZType: Kind.TIME,
    t.DateType: Kind.TIME,
}
"""The kinds of values of columns; those of all others that have values are numbers."""


def event_kinds(events: DataFrame) -> EventKinds:
    """The attributes of events and the kinds of their values, by the schema."""
    kinds = dict(_kinds_of(events.schema, ""))
    return EventKinds(kinds, "cast {} to timestamp")


def _kinds_of(schema: t.StructType, prefix: str) -> Iterator[tuple[str, set[Kind]]]:
    for each in schema:
        if isinstance(each.dataType, t.StructType):
            yield from _kinds_of(each.dataType, f"{prefix}{each.name}.")
        elif isinstance(each.dataType, t.NullType):
            yield prefix + each.name, set(Kind)  # nothing is known of a column of nulls
        else:
            yield prefix + each.name, {_KINDS.get(type(each.dataType), Kind.NUMBER)}


@dataclass(slots=True)
class Misfits:
    """What filters ask for that no event has: the first subscription, and how many there are."""

    found: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add_all(self, matcher: AsOfMatcher, events: EventKinds) -> None:
        """Add those of the subscriptions in an index."""
        for subscription, count in matcher.samples():
            for what in set(events.misfits(subscription)):
                self._add(what, subscription.id, count)

    def add(self, other: Misfits) -> None:
        """Add those of another index."""
        for what, (first, count) in other.found.items():
            self._add(what, first, count)

    def _add(self, what: str, id: str, count: int) -> None:
        first, before = self.found.get(what, (id, 0))
        self.found[what] = min(first, id), before + count

    def report(self, *, strict: bool) -> None:
        """Warn of them, or with ``strict`` raise an error."""
        if not self.found:
            return
        lines = [_line(what, *each) for what, each in sorted(self.found.items())]
        hidden = len(lines) - SHOWN_MAX
        text = "\n".join([*lines[:SHOWN_MAX], *([f"and {hidden} more"] if hidden > 0 else [])])
        if strict:
            raise SubscriptionError(text)
        warnings.warn(f"{text}\n({STRICT})", MisfitWarning, stacklevel=4)


def _line(what: str, first: str, count: int) -> str:
    others = count - 1
    more = f" and {others:,} other{'s' if others > 1 else ''}" if others else ""
    return f"subscription {first!r}{more}: {what}"
