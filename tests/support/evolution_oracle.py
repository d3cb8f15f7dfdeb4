"""What `Lazy`, `Periodic` and `Cached` mean, event by event, as plainly as can be."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hypothesis import strategies as st

from tidegate.language.evolve import Cached, Evolve, Lazy, Periodic
from tidegate.language.expressions import Elapsed, Environment, Now
from tidegate.language.semantics import holds
from tidegate.language.syntax import And, Node, Or, Predicate, Truth, expression_leaves
from tidegate.language.values import Value, from_us
from tidegate.matching.subscription import Moment, Subscription

SECOND = 1_000_000

evolves: st.SearchStrategy[Evolve | None] = st.sampled_from(
    [None, Lazy(), Periodic(1.0), Periodic(0.3), Periodic(1e-6), Cached(1.0), Cached(0.4)]
)


@dataclass
class Evolution:
    """Subscriptions, and the events that they have seen."""

    there: dict[str, Subscription] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    """The times of the versions that are cached."""

    def add(self, subscription: Subscription) -> None:
        self.there[subscription.id] = subscription

    def remove(self, id: str) -> None:
        del self.there[id]
        self.versions.pop(id, None)

    def update(self, id: str, parameters: Mapping[str, Value | None]) -> None:
        known = {**self.there[id].parameters, **parameters}
        kept = {name: value for name, value in known.items() if value is not None}
        self.there[id] = replace(self.there[id], parameters=kept)
        self.versions.pop(id, None)

    def match(self, attributes: Mapping[str, Value], moment: Moment) -> list[str]:
        found: list[str] = []
        for id, each in self.there.items():
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
        """The time for which a filter is evaluated."""
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
            return time_us  # it is not there yet
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
            moves = any(isinstance(leaf, (Elapsed, Now)) for leaf in leaves)
            yield frozenset([node.attribute]) if moves else frozenset()
