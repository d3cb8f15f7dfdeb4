"""Variables: what filters see as `@name`, set by an operator or told by a provider.

A value that is set holds until it is set anew. A provider is a function that is asked at the moment
of an event, as late as that and only if a filter uses its variable; so a change takes effect
without touching any subscription. What is set goes before what is provided.

One provider is always there: `@time_of_day`, the seconds since midnight, UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from tidegate.errors import BadValueError, VariableError
from tidegate.language.filters import check_values
from tidegate.language.values import Value, from_us, to_value

DAY_US = 86_400_000_000

Provider = Callable[[datetime | None], object]
"""Gives the value of a variable at a time, None where it has none. The time is that of an event,
None where events have no times."""


def _time_of_day(time_us: int | None) -> float | None:
    return None if time_us is None else time_us % DAY_US / 1e6


@dataclass(frozen=True, slots=True)
class _CheckedProvider:
    """A provider of a user, whose failures and odd values become errors that name the variable."""

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


Source = Callable[[int | None], Value | None]
"""Gives the value of a variable at a time in microseconds."""

BUILT_IN: Mapping[str, Source] = {"time_of_day": _time_of_day}
"""The variables that are always there."""


@dataclass(frozen=True, slots=True)
class VariableState:
    """All variables as they stand: values, and where others come from.

    >>> Known({"load": 0.5}).at(3_600_000_000)["time_of_day"]
    3600.0
    """

    values: Mapping[str, Value] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=lambda: BUILT_IN)

    def is_provided(self, name: str) -> bool:
        """Whether the value of a variable depends on when it is asked for."""
        return name in self.sources and name not in self.values

    def at(self, time_us: int | None) -> Mapping[str, Value]:
        """What filters see at a time; a provider is asked when its variable is looked up."""
        return _VariablesAt(self, time_us)


class _VariablesAt(Mapping[str, Value]):
    """The variables at one time. A provider is asked once."""

    __slots__ = ("_found", "_known", "_time_us")

    def __init__(self, known: VariableState, time_us: int | None) -> None:
        self._known = known
        self._time_us = time_us
        self._found: dict[str, Value | None] = {}

    def __getitem__(self, name: str) -> Value:
        value = self._known.values.get(name)
        if value is not None:
            return value
        if name not in self._found:
            self._found[name] = self._known.sources[name](self._time_us)
        value = self._found[name]
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys([*self._known.values, *self._known.sources])
        return (name for name in names if self.get(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Variables:
    """The variables of an engine or a broker.

    >>> variables = Variables()
    >>> variables.set(mode="critical")
    >>> variables.provide("hour", lambda time: None if time is None else time.hour)
    >>> seen = variables.at(7_200_000_000)
    >>> seen["mode"], seen["hour"]
    ('critical', 2)
    """

    def __init__(self) -> None:
        self._known = VariableState()

    @property
    def known(self) -> VariableState:
        """All of them as they stand; later changes leave what was given out alone."""
        return self._known

    def set(self, **variables: object) -> None:
        """Set values; None takes one away."""
        values = {**self._known.values, **check_values("variable @", variables)}
        kept = {name: value for name, value in values.items() if value is not None}
        self._known = VariableState(kept, self._known.sources)

    def provide(self, name: str, provider: Provider | None) -> None:
        """Have a function asked for the value of a variable; None takes the function away."""
        sources = {**self._known.sources}
        if provider is not None:
            sources[name] = _CheckedProvider(name, provider)
        elif name in BUILT_IN:
            sources[name] = BUILT_IN[name]
        else:
            sources.pop(name, None)
        self._known = VariableState(self._known.values, sources)

    def at(self, time_us: int | None) -> Mapping[str, Value]:
        """What filters see at a time, in microseconds since 1970, or without one."""
        return self._known.at(time_us)
