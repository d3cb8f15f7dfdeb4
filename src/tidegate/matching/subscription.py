"""A subscription: a filter, the values of its parameters, and when it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from tidegate.errors import UnresolvedError
from tidegate.language.evolve import Cached, Evolve, Periodic
from tidegate.language.expressions import Environment
from tidegate.language.filters import Filter
from tidegate.language.values import Value, from_us, to_us


@dataclass(frozen=True, slots=True)
class Moment:
    """When an event is judged, and what the broker's variables are then.

    ``time_us`` is the time since 1970; None where events and subscriptions have no times, and then
    `t` is 0 and `now()` undefined.
    """

    time_us: int | None = None
    variables: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def at(cls, time: datetime | None, variables: Mapping[str, Value] | None = None) -> Moment:
        """The moment at a time."""
        return cls(None if time is None else to_us(time), variables or {})

    def environment(
        self, origin: int | None, parameters: Mapping[str, Value] | None = None
    ) -> Environment:
        """What expressions see at this moment, if `t` counts from ``origin``."""
        t = 0.0 if self.time_us is None or origin is None else (self.time_us - origin) / 1e6
        now = None if self.time_us is None else from_us(self.time_us)
        return Environment(parameters or {}, self.variables, t, now)


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a subscriber asked for, from ``since`` on and before ``until``.

    Both are in microseconds since 1970, or None where that is not known. `t` counts from
    ``origin``, or from ``since`` if there is none: a later version of a subscription holds from
    its change on, but its `t` counts on.
    """

    id: str
    filter: Filter
    parameters: Mapping[str, Value] = field(default_factory=dict)
    since: int | None = None
    subscriber: str | None = None
    until: int | None = None
    origin: int | None = None
    evolve: Evolve | None = None
    """When the filter is evaluated, if it moves; None is as good as `Lazy()`."""
    held: int | None = None
    """The time of the version that a `Cached` filter goes by; None if it has none."""

    def lives(self, moment: Moment) -> bool:
        """Whether the subscription is there at a moment; without times it always is."""
        if moment.time_us is None:
            return True
        begun = self.since is None or self.since <= moment.time_us
        return begun and (self.until is None or moment.time_us < self.until)

    @property
    def counts_from(self) -> int | None:
        """The time from which `t` counts; None where that is not known, and then `t` is 0."""
        return self.since if self.origin is None else self.origin

    def judged_at(self, time_us: int) -> int:
        """The time for which the filter is evaluated when an event comes at a time.

        A `Periodic` filter stands still for an interval at a time, counted from its beginning. A
        `Cached` one goes by the version it has, unless that is of a later time or too old.
        """
        match self.evolve:
            case Periodic() as every:
                return time_us - (time_us - (self.counts_from or 0)) % every.interval_us
            case Cached() as cached if self.held is not None:
                return self.held if 0 <= time_us - self.held <= cached.threshold_us else time_us
        return time_us

    def environment(self, moment: Moment) -> Environment:
        """What the filter's expressions see at a moment."""
        if moment.time_us is not None and isinstance(self.evolve, Periodic | Cached):
            moment = replace(moment, time_us=self.judged_at(moment.time_us))
        return self.true_environment(moment)

    def true_environment(self, moment: Moment) -> Environment:
        """What they would see if they were evaluated at each event."""
        return moment.environment(self.counts_from, self.parameters)

    def updated(self, parameters: Mapping[str, Value | None]) -> Subscription:
        """The same subscription with other values for some parameters; None takes one away."""
        unknown = [name for name in parameters if name not in self.filter.parameters]
        if unknown:
            there = ", ".join(f":{name}" for name in self.filter.parameters) or "none"
            raise UnresolvedError(
                f"subscription {self.id!r} has no parameter :{unknown[0]}; it has {there}"
            )
        merged = {**self.parameters, **parameters}
        kept = {name: value for name, value in merged.items() if value is not None}
        return replace(self, parameters=kept)
