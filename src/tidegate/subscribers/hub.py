"""The hub: events in, handlers called, inside one process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from tidegate.errors import BadValueError, QueueFullError, SubscriptionError
from tidegate.language.events import Event
from tidegate.matching.engine import Engine
from tidegate.subscribers.attachment import Attachment, OnError, log_failure
from tidegate.subscribers.engine_connection import EngineConnection
from tidegate.subscribers.mailbox import Mailbox, is_handling, running_loop
from tidegate.subscribers.subscriber import Subscriber

WAITING_MAX = 1_000

S = TypeVar("S", bound=Subscriber)


class Hub:
    """Hands events to the subscribers that are attached to it; to be used from any thread.

    >>> import tidegate
    >>> class Alarm(tidegate.Subscriber):
    ...     limit = tidegate.Parameter(30)
    ...     @tidegate.on("temperature > :limit")
    ...     def hot(self, event):
    ...         print("too hot:", event["temperature"])
    >>> hub = Hub()
    >>> alarm = hub.attach(Alarm())
    >>> hub.publish_now({"temperature": 35})
    too hot: 35
    >>> alarm.limit = 40
    >>> hub.publish_now({"temperature": 35})

    A subscriber handles one event after another, in the order in which they were published. If all
    its handlers are plain methods, they are called by the thread that publishes, or by one that is
    just calling them for an earlier event. If some are async, all are called in the event loop in
    which it was attached. What a handler publishes is handled after it has returned.

    No subscriber waits for another, other than for its turn in the thread or the event loop that
    both are called in. No more than ``waiting_max`` events wait for one of them; then publishers
    wait for it too, and where they cannot (in a handler, or in ``publish_now`` inside an event
    loop) the event is refused with a QueueFullError.

    What a handler raises does not concern whoever publishes: it goes to ``on_error``, which by
    default writes it to the log `tidegate`.

    ``engine`` has the clock and the variables; without one, the hub makes its own.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        waiting_max: int = WAITING_MAX,
        on_error: OnError = log_failure,
    ) -> None:
        if waiting_max < 1:
            raise BadValueError(f"waiting_max must be at least 1, not {waiting_max!r}")
        self.engine = Engine() if engine is None else engine
        self._waiting_max = waiting_max
        self._on_error = on_error
        self._connection = EngineConnection(self.engine)
        self._attached: dict[int, Attachment] = {}
        self._lock = threading.Lock()
        self._here = threading.local()

    @property
    def updates(self) -> int:
        """How many updates subscribers have sent."""
        return self._connection.updates

    def attach(self, subscriber: S) -> S:
        """Subscribe for all handlers of a subscriber, and give it back.

        `t` of its filters counts from now on. A subscriber with async handlers is attached where
        the event loop runs that is to await them.
        """
        with self._lock:
            self._attached[id(subscriber)] = Attachment(
                subscriber, self._connection, self._waiting_max, self._on_error
            )
        return subscriber

    def detach(self, subscriber: Subscriber) -> None:
        """Call its handlers no more, not even for events that wait for them."""
        with self._lock:
            attachment = self._attached.pop(id(subscriber), None)
            if attachment is None:
                raise SubscriptionError(
                    f"this {type(subscriber).__name__} is not attached to this hub"
                )
            attachment.close()

    async def publish(
        self, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> None:
        """Hand an event to its subscribers, judged at ``time``, else at its own time, else now.

        Returns when they have it; ``join`` waits until they have handled it.
        """
        may_wait = not is_handling()
        mailboxes = self._accept(Event.of(event, time), may_wait=may_wait)
        self._run(mailboxes)
        for mailbox in mailboxes:
            room = mailbox.room()
            if room is not None and may_wait:
                await asyncio.wrap_future(room)
        await asyncio.sleep(0)  # let handlers have their turn

    def publish_now(
        self, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> None:
        """As ``publish``, for code that is not async.

        On return, subscribers without async handlers have handled it, unless another thread does.
        """
        may_wait = not is_handling() and running_loop() is None
        mailboxes = self._accept(Event.of(event, time), may_wait=may_wait)
        self._run(mailboxes)
        for mailbox in mailboxes:
            room = mailbox.room()
            if room is not None and may_wait:
                room.result()

    async def join(self) -> None:
        """Wait until everything that was published has been handled."""
        if is_handling():
            raise SubscriptionError("a handler cannot wait until all handlers have returned")
        while True:
            with self._lock:
                mailboxes = [each.mailbox for each in self._attached.values()]
            self._run(mailboxes)  # if whoever was at it has been interrupted
            rests = [rest for mailbox in mailboxes if (rest := mailbox.rest()) is not None]
            if not rests:
                return
            for rest in rests:
                await asyncio.wrap_future(rest)

    def _accept(self, event: Event, *, may_wait: bool) -> list[Mailbox]:
        """Put an event into the mailboxes of those who want it: all of them, or none."""
        with self._lock:
            found = self._connection.judge(event)
            for mailbox, _ in found:
                _check_loop(mailbox)
                if mailbox.is_full and not may_wait:
                    raise QueueFullError(
                        f"{len(mailbox)} events wait for {mailbox.owner}, and who publishes "
                        "here cannot wait too: in a handler, or without `await`"
                    )
            for mailbox, delivery in found:
                mailbox.put(delivery)
            return [mailbox for mailbox, _ in found]

    def _run(self, mailboxes: list[Mailbox]) -> None:
        """Have mailboxes emptied: here, or, if this is a handler, when it has returned."""
        for mailbox in mailboxes:
            if mailbox.loop is not None:
                _check_loop(mailbox)
                mailbox.start()
        plain = [mailbox for mailbox in mailboxes if mailbox.loop is None]
        running: deque[Mailbox] | None = getattr(self._here, "running", None)
        if running is not None:
            running.extend(plain)
            return
        self._here.running = running = deque(plain)
        try:
            while running:
                running.popleft().run()
        finally:
            del self._here.running


def _check_loop(mailbox: Mailbox) -> None:
    if mailbox.loop is not None and mailbox.loop.is_closed():
        raise SubscriptionError(f"the event loop of this {mailbox.owner} has ended; detach it")
