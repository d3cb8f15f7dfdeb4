"""The interface between a subscriber and the engine or network that matches events for it.

`EngineConnection` implements it with an engine in the same process; a client of a broker can
implement it over a network.

Rules. (1) The filters of a subscriber are sent once, with the values of their parameters; from then
on only values are sent (Parametric Subscriptions, figure 5). (2) Updates take effect in the order
in which they were handed over, and the values of one update take effect together, for all handlers.
Of updates that no event could come between, only the last value of each parameter need be sent. (3)
An event is delivered once, with the numbers of all handlers that it matched, and with the time and
variables it was matched with.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter
from tidegate.language.values import Value
from tidegate.subscribers.mailbox import Mailbox

TimeSpan = tuple[float, float]
"""The first and the last `t`, in seconds since the subscription, both included."""

ALWAYS: TimeSpan = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Request:
    """The subscription of one handler: its filter as sent, and when that is evaluated."""

    filter: Filter
    evolve: Evolve | None = None


class SubscriberEnd(Protocol):
    """The subscriber's end of a connection."""

    @property
    def mailbox(self) -> Mailbox:
        """Takes the deliveries for the subscriber."""
        ...

    def renew(self, t: float) -> None:
        """Send new values for bands that do not contain their value at ``t``.

        Called for a ``t`` outside of the span of the last ``Handle.update``.
        """
        ...


class Handle(Protocol):
    """The subscriptions of one subscriber at a connection."""

    def t(self) -> float:
        """Seconds since the subscriptions began, by the clock with which events are matched."""
        ...

    def update(self, values: Mapping[str, Value | None], span: TimeSpan = ALWAYS) -> None:
        """Change parameters, all at once, without waiting; None removes a value.

        All values sent so far are right for events in ``span``. Before an event outside of it is
        matched (or, where that is done by brokers, when the span ends), ``SubscriberEnd.renew`` is
        called.
        """
        ...

    def cancel(self) -> None:
        """End the subscriptions."""
        ...


class Connection(Protocol):
    """Takes subscriptions and delivers the events that match them."""

    def subscribe(
        self,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        subscriber_end: SubscriberEnd,
    ) -> Handle:
        """Subscribe for all handlers of a subscriber, which share their parameters and their `t`.

        Predicates with a parameter whose value is None match nothing until it has one.
        """
        ...
