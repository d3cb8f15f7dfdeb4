"""Handlers: methods that are called for the events that a filter matches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any, TypeVar

from tidegate.errors import SubscriptionError
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter, parse

_MARK = "__tidegate_on__"
_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Mark:
    """What `on` says about a method; ``text`` is the filter as it was written."""

    filter: Filter
    text: str
    evolve: Evolve | None


def on(filter: str | Filter, evolve: Evolve | None = None) -> Callable[[_Method], _Method]:
    """Have a method of a subscriber called with each event that matches the filter.

    The method may be `async`. `:name` in the filter is the `Parameter` of that name. ``evolve``
    says when a filter that moves is evaluated by others; before the method is called, it is
    evaluated for the time of the event in any case.

    >>> from tidegate import Parameter, Subscriber
    >>> class Monitor(Subscriber):
    ...     last_buy = Parameter(100.0)
    ...     @on("firm = 'IBM' and price < :last_buy")
    ...     def quote(self, event):
    ...         self.last_buy = event["price"]
    """
    text = filter if isinstance(filter, str) else str(filter)
    mark = Mark(parse(filter) if isinstance(filter, str) else filter, text, evolve)

    def decorate(method: _Method) -> _Method:
        _check(method)
        setattr(method, _MARK, mark)
        return method

    return decorate


def mark_of(attribute: object) -> Mark | None:
    """What `on` said about an attribute of a class, if it did."""
    mark = vars(attribute).get(_MARK) if isinstance(attribute, FunctionType) else None
    return mark if isinstance(mark, Mark) else None


def _check(method: object) -> None:
    if not isinstance(method, FunctionType):
        raise SubscriptionError(f"`on` decorates a method, not a {type(method).__name__}")
    name = method.__qualname__
    if mark_of(method) is not None:
        raise SubscriptionError(f"{name} has a filter already; join the two with `or`")
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise SubscriptionError(f"{name} cannot handle events if it yields")
    try:
        inspect.signature(method).bind("self", "event")
    except TypeError:
        raise SubscriptionError(f"{name} must take two arguments: self and the event") from None
