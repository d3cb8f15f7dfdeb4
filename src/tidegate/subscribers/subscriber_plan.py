"""The plan of a class of subscribers: its parameters and handlers, checked once for all.

A class has what its bases have. A method that overrides a handler takes over its filter, unless it
has an `on` of its own; to set the name to None takes the handler away.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from tidegate.errors import FilterError, FilterLimitError, SubscriptionError, UnresolvedError
from tidegate.language.evolve import Evolve, Lazy
from tidegate.language.filters import Filter
from tidegate.language.parsing.parser import parse_filter
from tidegate.language.parsing.tokens import TokenKind, tokenize
from tidegate.subscribers.handlers import Mark, mark_of
from tidegate.subscribers.parameters import Parameter
from tidegate.subscribers.widening import BandNames, widen


@dataclass(frozen=True, slots=True)
class Handler:
    """A method and its filter: as it was written, and as it is sent, for values up to a band."""

    name: str
    filter: Filter
    sent: Filter
    evolve: Evolve | None
    is_async: bool


@dataclass(frozen=True, slots=True)
class SubscriberPlan:
    """What a class asks for. ``bands`` has the parameters that are sent as a band."""

    owner: str
    parameters: Mapping[str, Parameter]
    handlers: tuple[Handler, ...]
    bands: Mapping[str, BandNames]

    @classmethod
    def of(cls, owner: type, reserved: type) -> SubscriberPlan:
        """Read a class; raises FilterError or SubscriptionError for what is wrong with it."""
        parameters = _parameters(owner, reserved)
        bands = _bands(parameters)
        handlers = tuple(
            _handler(owner, name, mark, parameters, bands) for name, mark in _marks(owner).items()
        )
        return cls(owner.__name__, parameters, handlers, bands)

    @property
    def is_async(self) -> bool:
        """Whether some handler needs an event loop."""
        return any(handler.is_async for handler in self.handlers)


def _parameters(owner: type, reserved: type) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for each in reversed(owner.__mro__):
        for name, attribute in vars(each).items():
            if not isinstance(attribute, Parameter):
                found.pop(name, None)
                continue
            if hasattr(reserved, name):
                raise SubscriptionError(f"{owner.__name__}: a parameter cannot be named {name!r}")
            if attribute.name != name:
                raise SubscriptionError(
                    f"{owner.__name__}: {attribute.name} and {name} are one Parameter; make two"
                )
            found[name] = attribute
    return found


def _bands(parameters: Mapping[str, Parameter]) -> dict[str, BandNames]:
    bands: dict[str, BandNames] = {}
    taken = set(parameters)
    for name, each in parameters.items():
        if each.band is not None:
            bands[name] = bounds = BandNames.named(name, taken, moves=each.moves)
            taken.update(bounds.names)
    return bands


def _marks(owner: type) -> dict[str, Mark]:
    found: dict[str, Mark] = {}
    for each in reversed(owner.__mro__):
        for name, attribute in vars(each).items():
            mark = mark_of(attribute)
            if mark is not None:
                found[name] = mark
            elif not callable(attribute):
                found.pop(name, None)
    return found


def _handler(
    owner: type,
    name: str,
    mark: Mark,
    parameters: Mapping[str, Parameter],
    bands: Mapping[str, BandNames],
) -> Handler:
    label = f"{owner.__name__}.{name}"
    for parameter in mark.filter.parameters:
        if parameter not in parameters:
            raise _at(parameter, f"{label}: {_no_parameter(owner, parameter, parameters)}", mark)
        if parameters[parameter].moves and not isinstance(mark.evolve, Lazy | None):
            raise _at(
                parameter,
                f"{label}: where {parameter} is predicted must be evaluated for each event, "
                f"which {mark.evolve} is not; leave `evolve` out",
                mark,
            )
    sent = _sent(
        label, mark, {each: bands[each] for each in mark.filter.parameters if each in bands}
    )
    is_async = inspect.iscoroutinefunction(getattr(owner, name))
    return Handler(name, mark.filter, sent, mark.evolve, is_async)


def _sent(label: str, mark: Mark, bands: Mapping[str, BandNames]) -> Filter:
    """The filter that is sent, which must be within the limits of all filters."""
    if not bands:
        return mark.filter
    try:
        return Filter(parse_filter(str(widen(mark.filter.node, bands))))
    except UnresolvedError as error:
        raise _at(next(iter(bands)), f"{label}: {error}", mark) from None
    except FilterLimitError as error:
        reason = f"{label}: with bands for its parameters, {error.reason}"
        raise FilterLimitError(reason, mark.text, 0, len(mark.text)) from None


def _no_parameter(owner: type, name: str, parameters: Mapping[str, Parameter]) -> str:
    if name in dir(owner):
        return f"{name} is there, but is no tidegate.Parameter"
    there = ", ".join(parameters) or "none"
    close = get_close_matches(name, list(parameters), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"there is no Parameter {name!r} in {owner.__name__}; it has {there}{hint}"


def _at(parameter: str, reason: str, mark: Mark) -> FilterError:
    """An error at the first place where a parameter stands in a filter."""
    for token in tokenize(mark.text):
        if token.kind is TokenKind.PARAMETER and token.text == f":{parameter}":
            return FilterError(reason, mark.text, token.start, token.end)
    return FilterError(reason, mark.text, 0)
