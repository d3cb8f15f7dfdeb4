"""The decorator `on`: makes a method the handler of the events that a filter matches."""

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
    """The arguments of `on`, kept on the method until `SubscriberPlan` reads the class.

    ``text`` is the filter as it was written, for the caret in error messages.
    """

    filter: Filter
    text: str
    evolve: Evolve | None


def on(filter: str | Filter, evolve: Evolve | None = None) -> Callable[[_Method], _Method]:
    """Call a method of a subscriber with each event that matches the filter.

    The method may be `async`. `:name` in the filter refers to the `Parameter` of that name.
    ``evolve`` chooses when an evolving filter is evaluated by the matcher; right before the method
    is called, the filter is evaluated for the time of the event in any case.

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
    """The mark that `on` left on an attribute of a class; None if it was not decorated."""
    mark = vars(attribute).get(_MARK) if isinstance(attribute, FunctionType) else None
    return mark if isinstance(mark, Mark) else None


def _check(method: object) -> None:
    if not isinstance(method, FunctionType):
        raise SubscriptionError(f"`on` decorates a method, not a {type(method).__name__}")
    name = method.__qualname__
    if mark_of(method) is not None:
        raise SubscriptionError(f"{name} has a filter already; join the two with `or`")
    if inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method):
        raise SubscriptionError(f"{name} is a generator; a handler must not use `yield`")
    try:
        inspect.signature(method).bind("self", "event")
    except TypeError:
        raise SubscriptionError(f"{name} must take two arguments: self and the event") from None
