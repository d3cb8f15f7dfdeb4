"""Variables: what filters see as `@name`, set by an operator or computed by a provider.

A value that is set holds until it is set again. A provider is a function that is called when an
event is matched, and only if a filter uses its variable; so a change takes effect without touching
any subscription. A set value takes precedence over a provider.

One provider is built in: `@time_of_day`, the seconds since midnight, UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidegate.errors import BadValueError, VariableError
from tidegate.language.filters import check_values
from tidegate.language.values import Value, from_us, to_value

DAY_US = 86_400_000_000

Provider = Callable[[datetime | None], object]
"""Returns the value of a variable at a time, None if it has none. The time is the publication time
of an event, None where events have no times."""


def _time_of_day(time_us: int | None) -> float | None:
    return None if time_us is None else time_us % DAY_US / 1e6


@dataclass(frozen=True, slots=True)
class _CheckedProvider:
    """A user's provider; its failures and bad values become errors that name the variable."""

    name: str
    provider: Provider

    def __call__(self, time_us: int | None) -> Value | None:
        try:
            raw = self.provider(None if time_us is None else from_us(time_us))
        except Exception as error:
            raise VariableError(
                f"variable @{self.name}: its provider failed with {type(error).__name__}: {error}"
            ) from error
        try:
            return to_value(raw)
        except BadValueError as error:
            raise VariableError(f"variable @{self.name}: {error}") from None


ValueAt = Callable[[int | None], Value | None]
"""Returns the checked value of a variable at a time in microseconds: what a `Provider` becomes."""

BUILT_IN: Mapping[str, ValueAt] = {"time_of_day": _time_of_day}
"""The providers that every engine and broker has."""


@dataclass(frozen=True, slots=True)
class VariableState:
    """An immutable snapshot of all variables: the values that were set, and the providers.

    >>> VariableState({"load": 0.5}).at(3_600_000_000)["time_of_day"]
    3600.0
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    providers: Mapping[str, ValueAt] = field(default_factory=lambda: BUILT_IN)

    def is_provided(self, name: str) -> bool:
        """Whether the value of a variable comes from a provider, and so depends on the time."""
        return name in self.providers and name not in self.values

    def at(self, time_us: int | None) -> Mapping[str, Value]:
        """The variables at a time; a provider is called when its variable is looked up."""
        return _VariablesAt(self, time_us)

    def evaluated(self, names: Container[str], times_us: Iterable[int | None]) -> VariableState:
        """The same variables at these times, with the providers of users called now.

        Only those of ``names`` are called, once for each time. The rest of them are left out.
        Matchers look variables up while they hold locks, and a user's function may call anything.
        """
        if not any(isinstance(each, _CheckedProvider) for each in self.providers.values()):
            return self
        times = list(times_us)
        providers: dict[str, ValueAt] = {}
        for name, provider in self.providers.items():
            if not isinstance(provider, _CheckedProvider):
                providers[name] = provider
            elif name in names and self.is_provided(name):
                providers[name] = {time_us: provider(time_us) for time_us in times}.get
        return VariableState(self.values, providers)


class _VariablesAt(Mapping[str, Value]):
    """The variables at one time. Each provider is called at most once.

    Once, so that all filters judge an event by the same value, also if a provider is slow or
    changes its answer while the event is matched.
    """

    __slots__ = ("_provided", "_state", "_time_us")

    def __init__(self, state: VariableState, time_us: int | None) -> None:
        self._state = state
        self._time_us = time_us
        self._provided: dict[str, Value | None] = {}

    def __getitem__(self, name: str) -> Value:
        value = self._state.values.get(name)
        if value is not None:
            return value
        if name not in self._provided:
            self._provided[name] = self._state.providers[name](self._time_us)
        value = self._provided[name]
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        # A variable whose provider returns None is not there, so listing them calls the providers.
        names = dict.fromkeys([*self._state.values, *self._state.providers])
        return (name for name in names if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Variables:
    """The variables of an engine or a broker; to be changed by one thread at a time.

    >>> variables = Variables()
    >>> variables.set(mode="critical")
    >>> variables.provide("hour", lambda time: None if time is None else time.hour)
    >>> seen = variables.at(7_200_000_000)
    >>> seen["mode"], seen["hour"]
    ('critical', 2)
    """

    def __init__(self) -> None:
        self._state = VariableState()

    @property
    def state(self) -> VariableState:
        """The current variables; later changes do not affect the returned object."""
        return self._state

    def set(self, **variables: object) -> None:
        """Set the values of some variables; None removes a value."""
        values = {**self._state.values, **check_values("variable @", variables)}
        kept = {name: value for name, value in values.items() if value is not None}
        self._state = VariableState(kept, self._state.providers)

    def provide(self, name: str, provider: Provider | None) -> None:
        """Set the provider of a variable; None removes it, and restores a built-in one."""
        if provider is not None and not callable(provider):
            raise VariableError(
                f"variable @{name}: a provider is a function of the time of an event, "
                f"not {type(provider).__name__}"
            )
        providers = {**self._state.providers}
        if provider is not None:
            providers[name] = _CheckedProvider(name, provider)
        elif name in BUILT_IN:
            providers[name] = BUILT_IN[name]
        else:
            providers.pop(name, None)
        self._state = VariableState(self._state.values, providers)

    def at(self, time_us: int | None) -> Mapping[str, Value]:
        """The variables at a time in microseconds since 1970; None where events have no times."""
        return self._state.at(time_us)
