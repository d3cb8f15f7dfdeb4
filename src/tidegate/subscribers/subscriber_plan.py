"""The plan of a subscriber class: its parameters and handlers, checked when the class is defined.

A class inherits the parameters and handlers of its bases. A method that overrides a handler takes
over its filter, unless it has an `on` of its own; setting the name to None removes the handler.
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
    """A method with its filter as written, the text of it, and as sent, where bands widen it."""

    name: str
    filter: Filter
    text: str
    sent_filter: Filter
    evolve: Evolve | None
    is_async: bool


@dataclass(frozen=True, slots=True)
class SubscriberPlan:
    """The parameters and handlers of a class named ``owner``.

    ``bands`` has the names of the bounds sent in place of each parameter that has a tolerance.
    """

    owner: str
    parameters: Mapping[str, Parameter]
    handlers: tuple[Handler, ...]
    bands: Mapping[str, BandNames]

    @classmethod
    def of(cls, owner: type, reserved: type) -> SubscriberPlan:
        """Read a class; raises FilterError or SubscriptionError if it is wrong.

        No parameter may have the name of an attribute of ``reserved``.
        """
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
    parameters: dict[str, Parameter] = {}
    for base in reversed(owner.__mro__):  # the last one that defines a name wins
        for name, attribute in vars(base).items():
            if not isinstance(attribute, Parameter):
                parameters.pop(name, None)
                continue
            if hasattr(reserved, name):
                raise SubscriptionError(f"{owner.__name__}: a parameter cannot be named {name!r}")
            if attribute.name != name:
                raise SubscriptionError(
                    f"{owner.__name__}: {attribute.name} and {name} are one Parameter; make two"
                )
            parameters[name] = attribute
    return parameters


def _bands(parameters: Mapping[str, Parameter]) -> dict[str, BandNames]:
    bands: dict[str, BandNames] = {}
    taken = set(parameters)
    for name, parameter in parameters.items():
        if parameter.tolerance is not None:
            bands[name] = band = BandNames.named(name, taken, has_rate=parameter.is_predicted)
            taken.update(band.names)
    return bands


def _marks(owner: type) -> dict[str, Mark]:
    marks: dict[str, Mark] = {}
    for base in reversed(owner.__mro__):  # the last one that defines a name wins
        for name, attribute in vars(base).items():
            mark = mark_of(attribute)
            if mark is not None:
                marks[name] = mark
            elif not callable(attribute):
                marks.pop(name, None)
    return marks


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
            reason = f"{label}: {_no_parameter(owner, parameter, parameters)}"
            raise _error_at(parameter, reason, mark)
        # A Periodic or Cached filter is evaluated for an earlier time than that of the event. The
        # band of a predicted value would be elsewhere then, and need not contain the value.
        if parameters[parameter].is_predicted and not isinstance(mark.evolve, Lazy | None):
            raise _error_at(
                parameter,
                f"{label}: {parameter} is predicted, so its filter must be evaluated for each "
                f"event, which {mark.evolve} does not do; leave `evolve` out",
                mark,
            )
    used_bands = {each: bands[each] for each in mark.filter.parameters if each in bands}
    sent_filter = _sent_filter(label, mark, used_bands)
    is_async = inspect.iscoroutinefunction(getattr(owner, name))
    return Handler(name, mark.filter, mark.text, sent_filter, mark.evolve, is_async)


def _sent_filter(label: str, mark: Mark, bands: Mapping[str, BandNames]) -> Filter:
    """The filter to send; the limits of filters hold for it too."""
    if not bands:
        return mark.filter
    try:
        # Parsing the widened text applies the limits, which a tree built in code would escape.
        return Filter(parse_filter(str(widen(mark.filter.node, bands))))
    except UnresolvedError as error:
        raise _error_at(next(iter(bands)), f"{label}: {error}", mark) from None
    except FilterLimitError as error:
        reason = f"{label}: with bands for its parameters, {error.reason}"
        raise FilterLimitError(reason, mark.text, 0, len(mark.text)) from None


def _no_parameter(owner: type, name: str, parameters: Mapping[str, Parameter]) -> str:
    if name in dir(owner):
        return f"the attribute {name} is no tidegate.Parameter"
    known = ", ".join(parameters) or "none"
    close = get_close_matches(name, list(parameters), n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"there is no Parameter {name!r} in {owner.__name__}; it has {known}{hint}"


def _error_at(parameter: str, reason: str, mark: Mark) -> FilterError:
    """An error whose caret is under the first occurrence of a parameter in a filter."""
    for token in tokenize(mark.text):
        if token.kind is TokenKind.PARAMETER and token.text == f":{parameter}":
            return FilterError(reason, mark.text, token.start, token.end)
    return FilterError(reason, mark.text, 0)
