"""Generated change logs, and their meaning: the fold that matching as of a time must equal.

There are few ids and few times, so that changes meet: at one time, a microsecond apart, at both
ends of the calendar. Some changes cannot be made, and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from support.strategies import (
    NAMES,
    PARAMETERS,
    VARIABLES,
    aimed_values,
    expressions,
    neighbours,
    nodes,
    predicates,
    values,
)
from tidegate.errors import TidegateError
from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import Node
from tidegate.language.values import Value, to_us, to_value
from tidegate.matching.batches import EventBatch
from tidegate.matching.history.changes import Change, Op

BEGINNING = datetime.min.replace(tzinfo=UTC)
END = datetime.max.replace(tzinfo=UTC)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
COARSE = datetime(2255, 6, 5, 23, 47, 34, 740993, tzinfo=UTC)
"""2**53 + 1 microseconds after 1970: the first time that no float can represent."""

TIMES = [
    *(NOON + step * MICROSECOND for step in (0, 0, 1, 2, 3)),
    *(NOON + timedelta(seconds=step) for step in (0.5, 1, 2, 60, 86400)),
    *(COARSE + step * MICROSECOND for step in (-1, 0, 1)),
    *(BEGINNING + step * MICROSECOND for step in (0, 1)),
    *(END - step * MICROSECOND for step in (1, 0)),
]

TEXTS = [
    "a < :p",
    "a = :p",
    "a between :p and :q",
    "a >= :p + t and a <= :q + t",
    "a > :p * sin(t) or b starts with 'ab'",
    "a = 1 or a = :p or b = :q",
    "a in (:p, 2, :q)",
    "b not in ('a', :q) and a != :p",
    "b like 'a%' and a > :p",
    "b contains 'b' or a < :q * 2",
    "not a between :p and :q - t",
    "c.d <= now() and a < t",
    "c.d > :p or a > @load",
    "a < @load + t * :q",
    "a is not null",
    "b > :q",
    "true",
    "false",
    "a <",
]


@cache
def parsed(text: str) -> Filter:
    """The filter of a text; raises TidegateError."""
    return Filter(parse_filter(text))


class Delivery(NamedTuple):
    """The index of an event, and the version of a subscription that matches it."""

    event: int
    subscription: str
    subscriber: str | None
    version: datetime


@dataclass(frozen=True)
class FoldedSubscription:
    """A subscription after some changes."""

    filter: str
    origin: datetime
    since: datetime
    subscriber: str | None
    params: Mapping[str, object]
    """All parameters set since it began."""

    @property
    def parameters(self) -> dict[str, Value]:
        found = {name: to_value(value) for name, value in self.params.items()}
        return {name: value for name, value in found.items() if value is not None}


@dataclass
class Fold:
    """Subscriptions by id after changes made one by one, and the changes that were refused."""

    subscriptions: dict[str, FoldedSubscription] = field(default_factory=dict)
    refused: list[Change] = field(default_factory=list)

    def make(self, change: Change) -> None:
        before = self.subscriptions.get(change.id)
        if (before is None) != (change.op is Op.SUBSCRIBE):
            self.refused.append(change)
        elif change.op is Op.UNSUBSCRIBE:
            del self.subscriptions[change.id]
        else:
            self._set(before, change)

    def _set(self, before: FoldedSubscription | None, change: Change) -> None:
        if before is None:
            before = FoldedSubscription("", change.time, change.time, change.subscriber, {})
        filter = before.filter if change.filter is None else change.filter
        named = change.params or {}
        try:
            unknown = named.keys() - parsed(filter).parameters
        except TidegateError:
            unknown = {filter}
        if unknown:
            self.refused.append(change)
            return
        params = {**before.params, **named}
        after = replace(before, filter=filter, params=params, since=change.time)
        self.subscriptions[change.id] = after


def folded(log: Iterable[Change], until: datetime = END) -> Fold:
    """The subscriptions at a time: all changes up to it, in order of their times."""
    fold = Fold()
    for change in sorted(log, key=lambda change: change.time):
        if change.time <= until:
            fold.make(change)
    return fold


@dataclass(frozen=True)
class Judged:
    """An event and the time at which it is judged."""

    attributes: Mapping[str, Value]
    time: datetime


def expected(
    log: Sequence[Change], events: Sequence[Judged], variables: Mapping[str, Value]
) -> list[Delivery]:
    """The deliveries, by the semantics of the language and of changes."""
    found: list[Delivery] = []
    for index, event in enumerate(events):
        for id, each in folded(log, event.time).subscriptions.items():
            t = (to_us(event.time) - to_us(each.origin)) / 1e6
            environment = Environment(each.parameters, variables, t, event.time)
            if holds(parsed(each.filter).node, event.attributes, environment):
                found.append(Delivery(index, id, each.subscriber, each.since))
    return sorted(found, key=in_order)


def in_order(delivery: Delivery) -> tuple[int, str]:
    return delivery.event, delivery.subscription


def batch_of(events: Sequence[Judged], variables: Mapping[str, Value]) -> EventBatch:
    batch = EventBatch.of_events([Event(each.attributes) for each in events])
    times_us = np.array([to_us(each.time) for each in events], np.int64)
    return batch.with_variables(variables).judged_at(times_us)


# -- strategies -------------------------------------------------------------------------------

filter_texts = st.sampled_from(TEXTS) | nodes(predicates(expressions())).map(
    lambda node: str(Filter(node))
)
few_values: st.SearchStrategy[Value] = st.sampled_from([0, 1, True, 2.5, -1, "a", "b", NOON])
parameters = st.dictionaries(
    st.sampled_from(PARAMETERS), few_values | values | st.none(), max_size=2
)
times = st.sampled_from(TIMES)
variable_values = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, few_values))


@st.composite
def changes(draw: st.DrawFn) -> Change:
    time, id = draw(times), draw(st.sampled_from("ab"))
    op = draw(st.sampled_from([Op.SUBSCRIBE, Op.UPDATE, Op.UPDATE, Op.UPDATE, Op.UNSUBSCRIBE]))
    if op is Op.UNSUBSCRIBE:
        return Change(time, op, id)
    if op is Op.UPDATE:
        return Change(time, op, id, draw(st.none() | st.none() | filter_texts), draw(parameters))
    return draw(subscribes(id, time))


@st.composite
def subscribes(draw: st.DrawFn, id: str, time: datetime) -> Change:
    text = draw(filter_texts)
    fitting = {name: each for name, each in draw(parameters).items() if f":{name}" in text}
    subscriber = draw(st.sampled_from([None, "me", "you"]))
    return Change(time, Op.SUBSCRIBE, id, text, fitting, subscriber)


@st.composite
def logs(draw: st.DrawFn) -> list[Change]:
    """Logs in the order in which changes arrive; each begins three subscriptions."""
    first = [draw(subscribes(id, draw(times))) for id in "abc"]
    return draw(st.permutations([*first, *draw(st.lists(changes(), max_size=12))]))


@st.composite
def event_lists(draw: st.DrawFn, log: Sequence[Change], max_size: int = 12) -> list[Judged]:
    """Events at the times of changes and right beside them, with values near those of filters."""
    set_values = [to_value(value) for change in log for value in (change.params or {}).values()]
    aimed = [
        *aimed_values(*(node for change in log for node in _nodes_of(change))),
        *(near for value in set_values if value is not None for near in neighbours(value)),
    ]
    attributes = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, st.sampled_from(aimed)))
    moments = [
        change.time + step * MICROSECOND
        for change in log
        for step in (-1, 0, 1)
        if not (change.time == BEGINNING and step < 0) and not (change.time == END and step > 0)
    ]
    judged = st.builds(Judged, attributes, st.sampled_from([*moments, *TIMES]))
    return draw(st.lists(judged, min_size=1, max_size=max_size))


def _nodes_of(change: Change) -> list[Node]:
    try:
        return [] if change.filter is None else [parsed(change.filter).node]
    except TidegateError:
        return []
