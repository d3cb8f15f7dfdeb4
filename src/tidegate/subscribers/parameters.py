"""Parameters: attributes of a subscriber whose assignment updates its subscriptions."""

from __future__ import annotations

import math
from typing import Any, Self, overload

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.expressions import as_float
from tidegate.language.values import Value, to_value
from tidegate.subscribers.parameter_values import ParameterValues


class Parameter:
    """A value that the filters of a subscriber's handlers refer to as `:name`.

    It may be assigned in any thread or task, and an update is sent each time it changes. Assigning
    None removes the value; without one, predicates that refer to it match nothing.

    ``damping`` is for numbers that oscillate: an update is sent only when the value differs by more
    than this from the last one sent. The filter sent is widened by the damping, and events that do
    not match the exact value are dropped by the subscriber.
    """

    is_predicted = False
    """Whether the band sent for it moves with time (dead reckoning)."""

    def __init__(self, initial: object = None, *, damping: float | None = None) -> None:
        self.name = ""
        self.tolerance = None if damping is None else _tolerance("damping", damping)
        """How far the value may be from the one sent; None if each change is sent."""
        self._owner = ""
        self.initial: Value | None = self.check(initial)

    def __set_name__(self, owner: type, name: str) -> None:
        # Python calls this for each class attribute. If one Parameter has two names the first is
        # kept, and `SubscriberPlan` reports the second.
        self._owner = self._owner or owner.__name__
        self.name = self.name or name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else values_of(instance).values.get(self.name)

    def __set__(self, instance: object, value: object) -> None:
        values_of(instance).assign({self.name: value})

    def check(self, raw: object) -> Value | None:
        """Convert an assigned object to a value; raises BadValueError that names the parameter."""
        try:
            value = to_value(raw)
        except BadValueError as error:
            raise BadValueError(f"{self._label()}: {error}") from None
        if self.tolerance is None or value is None:
            return value
        number = as_float(value)
        if number is not None and math.isfinite(number):
            return value
        kind = "dead reckoning" if self.is_predicted else "damping"
        raise BadValueError(f"{self._label()}: {kind} is for finite numbers, not {raw!r}")

    def _label(self) -> str:
        return f"{self._owner}.{self.name}" if self.name else "the initial value of a parameter"


class Reckoned(Parameter):
    """A number that changes continuously, such as a position, assigned as often as is convenient.

    What is sent is a prediction, a linear function of time, and an update follows only when the
    prediction is off by more than ``tolerance``. The filter sent is widened by the tolerance, and
    events that do not match the exact value are dropped by the subscriber. Assign it often: if it
    changes by more than the tolerance between two assignments, each assignment is an update.
    """

    is_predicted = True

    def __init__(self, initial: object = None, *, tolerance: float) -> None:
        super().__init__(initial, damping=_tolerance("tolerance", tolerance))


def values_of(instance: object) -> ParameterValues:
    """The parameter values of a subscriber; raises SubscriptionError for another object."""
    values = getattr(instance, "_tidegate_values", None)
    if not isinstance(values, ParameterValues):
        raise SubscriptionError(
            f"{type(instance).__name__} is no tidegate.Subscriber, so it has no parameters"
        )
    return values


def _tolerance(argument: str, raw: object) -> float:
    number = as_float(raw) if isinstance(raw, int | float) else None
    if number is None or not 0 < number < math.inf:
        raise BadValueError(f"{argument} must be a number greater than 0, not {raw!r}")
    return number
