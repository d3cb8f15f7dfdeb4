"""Parameters as attributes of a subscriber: to assign one is to update the subscription."""

from __future__ import annotations

import math
from typing import Any, Self, overload

from tidegate.errors import BadValueError, SubscriptionError
from tidegate.language.expressions import as_float
from tidegate.language.values import Value, to_value
from tidegate.subscribers.fields import Fields


class Parameter:
    """A value that the filters of a subscriber's handlers know as `:name`.

    It may be assigned in any thread or task, and an update is sent each time that it changes. None
    takes the value away; without one, filters that ask for it match nothing.

    ``damping`` is for numbers that oscillate: an update is sent only when the value is further than
    that from the last one sent. The filter that is sent lets so much more through, and what does
    not match exactly is dropped by the subscriber.
    """

    moves = False
    """Whether what is sent for it is a function of time."""

    def __init__(self, initial: object = None, *, damping: float | None = None) -> None:
        self.name = ""
        self.band = None if damping is None else _tolerance("damping", damping)
        self._owner = ""
        self.initial: Value | None = self.check(initial)

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner = self._owner or owner.__name__
        self.name = self.name or name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else fields_of(instance).values.get(self.name)

    def __set__(self, instance: object, value: object) -> None:
        fields_of(instance).assign({self.name: value})

    def check(self, raw: object) -> Value | None:
        """Take what was assigned as a value; raises BadValueError that names the field."""
        try:
            value = to_value(raw)
        except BadValueError as error:
            raise BadValueError(f"{self._label()}: {error}") from None
        number = as_float(value)
        if self.band is None or value is None or (number is not None and math.isfinite(number)):
            return value
        kind = "dead reckoning" if self.moves else "damping"
        raise BadValueError(f"{self._label()}: {kind} is for finite numbers, not {raw!r}")

    def _label(self) -> str:
        return f"{self._owner}.{self.name}" if self.name else "the initial value of a parameter"


class Reckoned(Parameter):
    """A number that moves, as a place does, reported as often as the subscriber likes.

    What is sent is a function of time that predicts it, and an update follows only when the
    prediction is off by more than ``tolerance``. The filter that is sent lets so much more through,
    and what does not match exactly is dropped by the subscriber. Report it often: if it moves more
    than the tolerance from one report to the next, each report is an update.
    """

    moves = True

    def __init__(self, initial: object = None, *, tolerance: float) -> None:
        super().__init__(initial, damping=_tolerance("tolerance", tolerance))


def fields_of(instance: object) -> Fields:
    """The fields of a subscriber."""
    fields = getattr(instance, "_tidegate_fields", None)
    if not isinstance(fields, Fields):
        raise SubscriptionError(
            f"{type(instance).__name__} is no tidegate.Subscriber, so it has no parameters"
        )
    return fields


def _tolerance(what: str, raw: object) -> float:
    number = as_float(raw) if isinstance(raw, int | float) else None
    if number is None or not 0 < number < math.inf:
        raise BadValueError(f"{what} must be a number greater than 0, not {raw!r}")
    return number
