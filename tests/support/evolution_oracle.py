"""The rules of `Lazy`, `Periodic` and `Cached`, event by event, and generated subscriptions.

The oracle shares no code with `matching/evolving`: it evaluates whole filters, reckons intervals in
fractions, and finds the attributes that a filter compares with time by walking its tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from support.strategies import (
    PARAMETERS,
    VARIABLES,
    expressions,
    functions_of_time,
    nodes,
    predicates,
    values,
)
from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.expressions import Elapsed, Environment, Now
from tidegate.language.filters import Filter
from tidegate.language.semantics import holds
from tidegate.language.syntax import And, Node, Or, Predicate, Truth, expression_leaves
from tidegate.language.values import Value, from_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch
from tidegate.matching.matcher import Matcher
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000
"""In microseconds."""


@dataclass
class Evolution:
    """The oracle: subscriptions, and the versions that the events so far have made."""

    subscriptions: dict[str, Subscription] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """The times of the versions of `Cached` filters."""

    def add(self, subscription: Subscription) -> None:
        self.subscriptions[subscription.id] = subscription

    def remove(self, id: str) -> None:
        del self.subscriptions[id]
        self.versions.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        known = {**self.subscriptions[id].parameters, **parameters}
        kept = {name: value for name, value in known.items() if value is not None}
        self.subscriptions[id] = replace(self.subscriptions[id], parameters=kept)
        self.versions.pop(id, None)

    def match(self, attributes: Mapping[str, Value], moment: Moment) -> list[str]:
        found: list[str] = []
        for id, each in self.subscriptions.items():
            environment = self._environment(each, attributes, moment)
            begun = moment.time_us is None or each.since is None or each.since <= moment.time_us
            ended = moment.time_us is not None and each.until is not None
            ended = ended and moment.time_us >= each.until  # type: ignore[operator]
            if begun and not ended and holds(each.filter.node, attributes, environment):
                found.append(id)
        return sorted(found)

    def _environment(
        self, each: Subscription, attributes: Mapping[str, Value], moment: Moment
    ) -> Environment:
        if moment.time_us is None:
            return Environment(each.parameters, moment.variables)
        time_us = self._judged(each, attributes, moment.time_us)
        t = 0.0 if each.since is None else (time_us - each.since) / 1e6
        return Environment(each.parameters, moment.variables, t, from_us(time_us))

    def _judged(self, each: Subscription, attributes: Mapping[str, Value], time_us: int) -> int:
        """The time as of which a filter is evaluated."""
        match each.evolve:
            case Periodic(interval):
                step = round(interval * SECOND)
                return (each.since or 0) + step * math.floor(
                    Fraction(time_us - (each.since or 0), step)
                )
            case Cached(threshold):
                return self._cached(each, attributes, time_us, round(threshold * SECOND))
        return time_us

    def _cached(
        self, each: Subscription, attributes: Mapping[str, Value], time_us: int, threshold: int
    ) -> int:
        if each.since is not None and time_us < each.since:
            return time_us  # the subscription has not begun
        version = self.versions.get(each.id)
        if version is not None and time_us <= version:
            return time_us
        if version is not None and version + threshold >= time_us:
            return version
        if any(names <= attributes.keys() for names in timed(each.filter.node) if names):
            self.versions[each.id] = time_us
        return time_us


def timed(node: Node) -> Iterator[frozenset[str]]:
    """For each disjunct of a filter, the attributes that it compares with time."""
    match node:
        case Truth(value):
            if value:
                yield frozenset()
        case Or(parts):
            for part in parts:
                yield from timed(part)
        case And(parts):
            found = [frozenset[str]()]
            for part in parts:
                found = [one | other for one in found for other in timed(part)]
            yield from found
        case Predicate():
            leaves = expression_leaves(node)
            uses_time = any(isinstance(leaf, (Elapsed, Now)) for leaf in leaves)
            yield frozenset([node.attribute]) if uses_time else frozenset()


# -- batches ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class EventAt:
    """The attributes of an event, and its time in microseconds; None if it has none."""

    attributes: Mapping[str, Value]
    time_us: int | None

    def moment(self, variables: Mapping[str, Value]) -> Moment:
        return Moment(self.time_us, variables)


def batch_of(events: Sequence[EventAt], variables: Mapping[str, Value]) -> EventBatch:
    """The events as a batch."""
    known = [NO_TIME if each.time_us is None else each.time_us for each in events]
    batch = EventBatch.of_events([Event(each.attributes) for each in events])
    return batch.with_variables(variables).judged_at(np.array(known, np.int64))


def pairs(matcher: Matcher, batch: EventBatch) -> list[tuple[int, str]]:
    """The matches of a batch as sorted pairs."""
    found = matcher.match_batch(batch)
    assert found.events.tolist() == sorted(found.events.tolist())
    return sorted(zip(found.events.tolist(), found.subscriptions.to_pylist(), strict=True))


def expected_pairs(
    oracle: Evolution, events: Sequence[EventAt], variables: Mapping[str, Value]
) -> list[tuple[int, str]]:
    """The matches of events, one after the other, by the oracle."""
    return [
        (index, id)
        for index, each in enumerate(events)
        for id in oracle.match(each.attributes, each.moment(variables))
    ]


# -- strategies -------------------------------------------------------------------------------

PERIODIC: list[Evolve | None] = [Periodic(1.0), Periodic(0.3), Periodic(1e-6)]
CACHED: list[Evolve | None] = [Cached(1.0), Cached(0.4)]
MODES: list[Evolve | None] = [None, Lazy(), *PERIODIC, *CACHED]

evolving_nodes = nodes(
    st.one_of(predicates(), predicates(expressions()), predicates(functions_of_time()))
)
parameter_values = st.fixed_dictionaries({}, optional=dict.fromkeys(PARAMETERS, values))
variable_values = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, values))
begins = st.none() | st.sampled_from([0, SECOND, SECOND // 2, 3])
times_us = st.sampled_from([*range(0, 4 * SECOND, SECOND // 10), 1, 3, SECOND - 1, SECOND + 1])
"""Few and close, so that events meet borders between versions, and some come out of order."""


@st.composite
def subscription_lists(
    draw: st.DrawFn, modes: Sequence[Evolve | None] = MODES
) -> list[Subscription]:
    found = []
    for number in range(draw(st.integers(1, 6))):
        filter = Filter(draw(evolving_nodes))
        known = {n: v for n, v in draw(parameter_values).items() if n in filter.parameters}
        since = draw(begins)
        until = draw(st.none() | st.just(2 * SECOND))
        mode = draw(st.sampled_from(modes))
        found.append(Subscription(f"s{number}", filter, known, since, until=until, evolve=mode))
    return found


def change_both(
    data: st.DataObject, added: Sequence[Subscription], oracle: Evolution, matcher: Matcher
) -> None:
    """One change to both: an update, a removal, or the addition of a removed subscription."""
    chosen = data.draw(st.sampled_from(added))
    id, names = chosen.id, chosen.filter.parameters
    if id not in oracle.subscriptions:
        oracle.add(chosen)
        matcher.add([chosen])
    elif len(names) and data.draw(st.booleans()):
        new: dict[str, Value | None] = data.draw(
            st.fixed_dictionaries({}, optional=dict.fromkeys(names, values | st.none()))
        )
        oracle.update(id, new)
        matcher.update(id, new)
        assert matcher.get(id).parameters == oracle.subscriptions[id].parameters
        assert set(matcher.get(id).filter.parameters) == set(chosen.filter.parameters)
    else:
        oracle.remove(id)
        matcher.remove(id)
