"""The inbox of one or more subscriptions: where their events wait for a reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from tidegate.errors import NetworkError, TidegateError
from tidegate.network.client.events import Delivery, ReceivedEvent

if TYPE_CHECKING:
    from tidegate.network.client.subscription import Subscription

T = TypeVar("T")


class Mailbox(Generic[T]):
    """Items in order, for one reader that waits for the next.

    An item that has turned out to be outdated is skipped when its turn comes.
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._end: TidegateError | None = None
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: T) -> None:
        """Add an item, which wakes the reader."""
        self._items.append(item)
        self._wake()

    def close(self, error: TidegateError | None = None) -> None:
        """Let the reader come to an end, or to an error, after the items that are there."""
        if not self._is_closed:
            self._is_closed, self._end = True, error
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self) -> T | None:
        """The next item that still counts; None if there is none."""
        return self._items.popleft() if self._items else None

    async def next(self, timeout: float | None = None) -> T | None:
        """The next item; None if the mailbox is closed, TimeoutError after ``timeout`` seconds."""
        if self._waiter is not None:
            raise NetworkError("somebody else waits for the next event of this inbox")
        async with asyncio.timeout(timeout):
            while True:
                item = self._take()
                if item is not None:
                    return item
                if self._is_closed:
                    if self._end is not None:
                        raise self._end
                    return None
                self._waiter = asyncio.get_running_loop().create_future()
                try:
                    await self._waiter
                finally:
                    self._waiter = None


class Inbox(Mailbox[ReceivedEvent]):
    """The events of one or more subscriptions, each event once.

    Iterate over it, or ask for the ``next`` event. With ``ack="next"`` an event is acknowledged
    when the one after it is asked for.
    """

    def __init__(
        self,
        *,
        acks_on_next: bool,
        taken: Callable[[Delivery], None],
        acknowledge: Callable[[Delivery], None],
    ) -> None:
        super().__init__()
        self._acks_on_next = acks_on_next
        self._taken = taken
        self._acknowledge = acknowledge
        self._handed_out: list[ReceivedEvent] = []
        """What the next request acknowledges."""

    def add(self, delivery: Delivery, matches: list[tuple[Subscription, int]]) -> None:
        """Add an event that matches these subscriptions."""
        delivery.inboxes += 1
        delivery.unfinished += 1
        self.put(ReceivedEvent(delivery, tuple(matches), self._acknowledge))

    def _take(self) -> ReceivedEvent | None:
        while self._items:
            event = self._items.popleft()
            self._taken(event._delivery)
            # A version that is the present one was matched by the broker; any other one is judged
            # again, so that nothing outdated gets through.
            accepted = tuple(
                match
                for match in event.matches
                if match[0].accepts(match[1], event._delivery.event)
            )
            if accepted:
                event.matches = accepted
                return event
            event.ack()
        return None

    def move_to(self, other: Inbox) -> None:
        """Put the events of a durable client that wait here into another inbox.

        There they wait in the order of their positions; an event that waits in both comes once.
        """
        waiting = {event.position: event for event in other._items}
        for event in self._items:
            there = waiting.setdefault(event.position, event)
            if there is not event:
                there.matches += event.matches
                event._delivery.inboxes -= 1
                event._delivery.unfinished -= 1
        self._items.clear()
        other._items = deque(waiting[position] for position in sorted(waiting))
        other._wake()

    async def next(self, timeout: float | None = None) -> ReceivedEvent | None:
        handed_out, self._handed_out = self._handed_out, []
        for each in handed_out:
            each.ack()
        event = await super().next(timeout)
        if self._acks_on_next and event is not None:
            self._handed_out.append(event)
        return event

    async def next_many(self, most: int, timeout: float | None = None) -> list[ReceivedEvent]:
        """The events that are here, at most so many; waits for the first as ``next`` does.

        The list is empty after the end.
        """
        event = await self.next(timeout)
        events = [] if event is None else [event]
        while events and len(events) < most and (event := self._take()) is not None:
            events.append(event)
            if self._acks_on_next:
                self._handed_out.append(event)
        return events

    def __aiter__(self) -> Inbox:
        return self

    async def __anext__(self) -> ReceivedEvent:
        event = await self.next()
        if event is None:
            raise StopAsyncIteration
        return event
