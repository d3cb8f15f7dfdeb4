"""A subscription: a filter, the values of its parameters, and the time for which it is in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.errors import UnresolvedError
from tidegate.language.evolve import Cached, Evolve, Periodic
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.values import Value, from_us


@dataclass(frozen=True, slots=True)
class Moment:
    """The time at which an event is judged, and the values of the broker's variables then.

    ``time_us`` is in microseconds since 1970; None if the event has no time, and then `t` is 0 and
    `now()` undefined.
    """

    time_us: int | None = None
    variables: Mapping[str, Value] = field(default_factory=dict)

    def environment(
        self, origin: int | None, parameters: Mapping[str, Value] | None = None
    ) -> Environment:
        """The environment in which expressions are evaluated, with `t` counted from ``origin``."""
        t = 0.0 if self.time_us is None or origin is None else (self.time_us - origin) / 1e6
        now = None if self.time_us is None else from_us(self.time_us)
        return Environment(parameters or {}, self.variables, t, now)


@dataclass(frozen=True, slots=True)
class Subscription:
    """A filter with an id and parameters, in force from ``since`` on and before ``until``.

    Both are in microseconds since 1970, or None where there is no such limit. `t` counts from
    ``origin``, or from ``since`` if there is none: a later version of a subscription is in force
    from its change on, but its `t` keeps counting.

    It is checked where it is made, by an engine or from a record (`records.py`): the parameters are
    values of the language, and only those that the filter names. Matchers rely on it.
    """

    id: str
    filter: Filter
    parameters: Mapping[str, Value] = field(default_factory=dict)
    since: int | None = None
    subscriber: str | None = None
    until: int | None = None
    origin: int | None = None
    evolve: Evolve | None = None
    """When an evolving filter is evaluated; None means `Lazy()`."""
    pinned_at_us: int | None = None
    """The time as of which a `Cached` filter is evaluated, in microseconds; None if not pinned."""

    def lives(self, moment: Moment) -> bool:
        """Whether the subscription is in force at a moment; without a time it always is."""
        if moment.time_us is None:
            return True
        begun = self.since is None or self.since <= moment.time_us
        return begun and (self.until is None or moment.time_us < self.until)

    @property
    def counts_from(self) -> int | None:
        """The time from which `t` counts, in microseconds; None if unknown, and then `t` is 0."""
        return self.since if self.origin is None else self.origin

    def judged_at(self, time_us: int) -> int:
        """The time as of which the filter is evaluated for an event of a time.

        A `Periodic` filter is evaluated as of the start of the current interval, counted from its
        beginning. A `Cached` one is evaluated as of its pin, unless that is later than the event or
        expired.
        """
        match self.evolve:
            case Periodic(interval_us=interval_us):
                return time_us - (time_us - (self.counts_from or 0)) % interval_us
            case Cached(threshold_us=threshold_us) if self.pinned_at_us is not None:
                is_fresh = 0 <= time_us - self.pinned_at_us <= threshold_us
                return self.pinned_at_us if is_fresh else time_us
        return time_us

    def environment(self, moment: Moment) -> Environment:
        """The environment in which the filter is evaluated at a moment, by its evolve mode."""
        if moment.time_us is not None and isinstance(self.evolve, Periodic | Cached):
            moment = replace(moment, time_us=self.judged_at(moment.time_us))
        return self.exact_environment(moment)

    def exact_environment(self, moment: Moment) -> Environment:
        """The environment at the moment itself, whatever the evolve mode."""
        return moment.environment(self.counts_from, self.parameters)

    def updated(self, parameters: Mapping[str, Value | None]) -> Subscription:
        """The subscription with other values for some parameters; None removes a value.

        Raises UnresolvedError for a parameter that the filter does not name.
        """
        unknown = [name for name in parameters if name not in self.filter.parameters]
        if unknown:
            known = ", ".join(f":{name}" for name in self.filter.parameters) or "none"
            raise UnresolvedError(
                f"subscription {self.id!r} has no parameter :{unknown[0]}; it has {known}"
            )
        merged = {**self.parameters, **parameters}
        kept = {name: value for name, value in merged.items() if value is not None}
        return replace(self, parameters=kept)
