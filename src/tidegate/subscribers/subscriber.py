"""Subscribers: objects whose fields stand in the filters of their handlers.

EventJava has guards on event methods that may name fields of their object (Parametric
Subscriptions, 3.2); this is the same in Python, with a descriptor and a decorator.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tidegate.subscribers.fields import Fields
from tidegate.subscribers.subscriber_plan import SubscriberPlan


class Subscriber:
    """Something that handles events, to be attached to a `Hub`.

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

    A filter that is wrong is an error when its class is made. Before a handler is called, the event
    is checked once more with the values as they are then, so nothing stale is handled (figure 5 of
    the paper); no handler gets an event twice.
    """

    _tidegate_plan: ClassVar[SubscriberPlan]
    _tidegate_fields: Fields

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls._tidegate_plan = SubscriberPlan.of(cls, reserved=Subscriber)

    def __new__(cls, *_: object, **__: object) -> Self:
        subscriber = super().__new__(cls)  # fields are there before any __init__
        plan = cls._tidegate_plan
        subscriber._tidegate_fields = Fields(plan.owner, plan.parameters)
        return subscriber

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)  # which has a say about them, unlike __new__

    def set(self, **values: object) -> None:
        """Change several parameters as one: no event is judged by some old and some new values."""
        self._tidegate_fields.assign(values)


Subscriber._tidegate_plan = SubscriberPlan.of(Subscriber, reserved=object)
