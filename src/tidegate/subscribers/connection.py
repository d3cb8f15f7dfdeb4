"""What a subscriber is attached to: the engine of a hub, or a client of a broker.

Rules. (1) What a subscriber asks is sent once, with the values of its parameters; from then on only
values are (Parametric Subscriptions, figure 5). (2) Changes take effect in the order in which they
were handed over, and what is handed over at once takes effect at once, for all its handlers. Of
changes that follow each other before an event could see them, only the last value needs to be sent.
(3) An event comes once, with all handlers that it is for, and with all that they may ask about when
it was judged.
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
"""The values of `t` from one to another, both included."""

ALWAYS: TimeSpan = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Request:
    """What one handler of a subscriber asks for."""

    filter: Filter
    evolve: Evolve | None = None


class SubscriberEnd(Protocol):
    """The subscriber's side of a connection."""

    @property
    def mailbox(self) -> Mailbox:
        """Where events for it are put, to be checked once more and handled in their turn."""
        ...

    def renew(self, t: float) -> None:
        """Update what does not hold at a time; called where a span of ``update`` ends."""
        ...


class Handle(Protocol):
    """The subscriptions of one subscriber at a connection."""

    def t(self) -> float:
        """The seconds since they began, by the clock that judges events."""
        ...

    def update(self, values: Mapping[str, Value | None], span: TimeSpan = ALWAYS) -> None:
        """Change parameters, all at once; None takes a value away. Does not wait.

        What was sent holds for events of that ``span``. Before an event of another time is judged,
        or, where others judge it, when the span ends, ``renew`` of the receiver is called.
        """
        ...

    def cancel(self) -> None:
        """End the subscriptions."""
        ...


class Connection(Protocol):
    """Takes subscriptions, and sees to it that events are delivered."""

    def subscribe(
        self,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        receiver: SubscriberEnd,
    ) -> Handle:
        """Subscribe for all handlers of a subscriber, which share their parameters and their `t`.

        A parameter whose value is None satisfies nothing until it has one.
        """
        ...
