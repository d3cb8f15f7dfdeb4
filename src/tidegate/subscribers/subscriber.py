"""Subscribers: objects whose parameters appear in the filters of their handlers.

EventJava has guards on event methods that may refer to fields of their object (Parametric
Subscriptions, 3.2). This is the same in Python, with a descriptor (`Parameter`) and a decorator
(`on`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tidegate.subscribers.parameter_values import ParameterValues
from tidegate.subscribers.subscriber_plan import SubscriberPlan


class Subscriber:
    """Base class of objects that handle events, to be attached to a `Hub`.

    >>> from tidegate import Hub, Parameter, on
    >>> class Monitor(Subscriber):
    ...     last_buy = Parameter(100.0)
    ...     @on("firm = 'IBM' and price < :last_buy")
    ...     def quote(self, event):
    ...         self.last_buy = event["price"]
    >>> hub = Hub()
    >>> monitor = hub.attach(Monitor())
    >>> for price in [99.0, 99.5, 98.0]:
    ...     hub.publish_now({"firm": "IBM", "price": price})
    >>> monitor.last_buy
    98.0

    A wrong filter is an error when its class is defined. Right before a handler is called, the
    event is checked once more with the current values, so no handler sees an event that matched
    only older ones (Parametric Subscriptions, figure 5). No handler gets an event twice.
    """

    _tidegate_plan: ClassVar[SubscriberPlan]
    _tidegate_values: ParameterValues

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._tidegate_plan = SubscriberPlan.of(cls, reserved=Subscriber)

    def __new__(cls, *_: object, **__: object) -> Self:
        # Not in __init__: subclasses may assign parameters before, or without, calling it.
        subscriber = super().__new__(cls)
        plan = cls._tidegate_plan
        subscriber._tidegate_values = ParameterValues(plan.owner, plan.parameters)
        return subscriber

    def __init__(self, *arguments: Any, **more: Any) -> None:
        # __new__ takes any arguments, so that subclasses may. Those that no __init__ has taken
        # are refused here by `object`, or passed to the next base class.
        super().__init__(*arguments, **more)

    def set(self, **values: object) -> None:
        """Change several parameters as one: no event is matched with some old and some new ones."""
        self._tidegate_values.assign(values)


Subscriber._tidegate_plan = SubscriberPlan.of(Subscriber, reserved=object)
