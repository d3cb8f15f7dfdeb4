"""Events as a client receives them, and the bookkeeping of what it has done with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidegate.errors import NetworkError
from tidegate.language.events import Event
from tidegate.language.values import Value
from tidegate.routing.messages import Stamp

if TYPE_CHECKING:
    from tidegate.network.client.subscription import Subscription


class Delivery:
    """One event that has come, and what of it is still to be done."""

    __slots__ = (
        "event", "inboxes", "is_confirmed", "position", "publisher", "size", "stamp", "unfinished",
    )  # fmt: skip

    def __init__(
        self,
        event: Event,
        stamp: Stamp,
        publisher: str,
        position: int,
        size: int,
        *,
        is_confirmed: bool = False,
    ) -> None:
        self.event = event
        self.stamp = stamp
        self.publisher = publisher
        self.position = position
        """0 for a client that is not durable."""
        self.size = size
        """The bytes of its body."""
        self.is_confirmed = is_confirmed
        self.inboxes = 0
        """The inboxes in which it waits."""
        self.unfinished = 0
        """The inboxes whose reader has not acknowledged it."""


class ReceivedEvent:
    """An event that matches a subscription of this client."""

    __slots__ = ("_acknowledge", "_delivery", "matches")

    def __init__(
        self,
        delivery: Delivery,
        matches: tuple[tuple[Subscription, int], ...],
        acknowledge: Callable[[Delivery], None],
    ) -> None:
        self._delivery = delivery
        self._acknowledge: Callable[[Delivery], None] | None = acknowledge
        self.matches = matches
        """The subscriptions that it matches, each with the version that the broker matched."""

    @property
    def attributes(self) -> Mapping[str, Value]:
        """The values of the event by name."""
        return self._delivery.event.attributes

    @property
    def time(self) -> datetime | None:
        """The publication time."""
        return self._delivery.event.time

    @property
    def version(self) -> int:
        """The version of the (first) subscription that it matches; 0 in a sequence."""
        return self.matches[0][1] if self.matches else 0

    @property
    def publisher(self) -> str:
        """The identity of the client that published it."""
        return self._delivery.publisher

    @property
    def id(self) -> Stamp:
        """Identifies the event in the network: its first broker, that one's start, a number."""
        return self._delivery.stamp

    @property
    def position(self) -> int:
        """Of a durable client: its place in the queue; 0 for others.

        A program that stores the position together with the effect of the event can tell, after a
        crash, that it has handled it already.
        """
        return self._delivery.position

    @property
    def is_confirmed(self) -> bool:
        """Whether it was published with a confirmation; only then does it come again after a crash
        of a durable client that has not acknowledged it."""
        return self._delivery.is_confirmed

    @property
    def size(self) -> int:
        """The bytes of its values on the wire."""
        return self._delivery.size

    def ack(self) -> None:
        """Acknowledge the event, so that it does not come again; only the first call counts."""
        acknowledge, self._acknowledge = self._acknowledge, None
        if acknowledge is not None:
            acknowledge(self._delivery)

    def __getitem__(self, name: str) -> Any:
        """The value of an attribute; KeyError if it is absent."""
        return self._delivery.event.attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._delivery.event.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._delivery.event.attributes)

    def get(self, name: str, default: object = None) -> Any:
        """The value of an attribute, or the default if it is absent."""
        return self._delivery.event.attributes.get(name, default)

    def __repr__(self) -> str:
        return f"ReceivedEvent({dict(self.attributes)!r}, version={self.version})"


class Acknowledgements:
    """Which deliveries of a durable client are done with: all up to a position.

    >>> acks = Acknowledgements()
    >>> one, two = (Delivery(Event({}), Stamp("a", 1, n), "p", n, 0) for n in (5, 6))
    >>> acks.came(one); acks.came(two)
    >>> acks.done(two), acks.done(one)
    (None, 6)
    """

    def __init__(self) -> None:
        self._waiting: deque[Delivery] = deque()
        self._done: set[int] = set()
        self.received = 0
        """The position of the last delivery that came."""

    def is_new(self, position: int) -> bool:
        """Whether a delivery has not come before, on an earlier connection."""
        return position > self.received

    def came(self, delivery: Delivery) -> None:
        """Note a delivery, in the order of positions."""
        self.received = delivery.position
        self._waiting.append(delivery)

    def done(self, delivery: Delivery) -> int | None:
        """Note that a delivery is done with; returns the position to acknowledge, if it is new."""
        if not self._waiting or delivery.position < self._waiting[0].position:
            raise NetworkError(f"the delivery at {delivery.position} was acknowledged before")
        self._done.add(delivery.position)
        acknowledged = None
        while self._waiting and self._waiting[0].position in self._done:
            acknowledged = self._waiting.popleft().position
            self._done.discard(acknowledged)
        return acknowledged
