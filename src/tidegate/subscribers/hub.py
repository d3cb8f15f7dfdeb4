"""The hub: takes events and calls the handlers of subscribers, inside one process.

Locks are taken in this order: `Hub._lock`, `ParameterValues.lock` of a subscriber, the lock of
`EngineConnection`; the lock of a `Mailbox` is a leaf. No handler is called while one of them is
held, so a handler may publish, attach, detach and assign parameters.
"""

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
    """Hands events to the subscribers that are attached to it; usable from any thread.

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
    calling them for an earlier event. If some are async, all are called in the event loop in which
    the subscriber was attached. What a handler publishes is handled after it has returned.

    No subscriber waits for another, except for its turn in a thread or event loop that both share.
    At most ``waiting_max`` events wait for a subscriber; then publishers wait too. Where they
    cannot (in a handler, or in ``publish_now`` inside an event loop) the event is refused with a
    QueueFullError.

    Exceptions of handlers do not reach the publisher. They are passed to ``on_error``, which by
    default writes them to the log `tidegate`.

    ``engine`` provides the clock, the variables and the space; without one, the hub creates its
    own. With a space, events, filters and assigned values that do not fit it are refused.
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
        self._attachments: dict[int, Attachment] = {}  # by id(), as subscribers may define ==
        self._lock = threading.Lock()
        self._thread_local = threading.local()

    @property
    def updates(self) -> int:
        """The number of updates that subscribers have sent."""
        return self._connection.updates

    def attach(self, subscriber: S) -> S:
        """Subscribe for all handlers of a subscriber; returns the subscriber.

        `t` in its filters counts from now. A subscriber with async handlers must be attached inside
        the event loop that is to run them.
        """
        with self._lock:
            self._attachments[id(subscriber)] = Attachment(
                subscriber, self._connection, self._waiting_max, self._on_error, self.engine.space
            )
        return subscriber

    def detach(self, subscriber: Subscriber) -> None:
        """Stop calling the handlers of a subscriber, even for events that already wait for it."""
        with self._lock:
            attachment = self._attachments.pop(id(subscriber), None)
            if attachment is None:
                raise SubscriptionError(
                    f"this {type(subscriber).__name__} is not attached to this hub"
                )
            attachment.close()

    async def publish(
        self, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> None:
        """Put an event into the mailboxes of the subscribers it matches.

        It is matched as of ``time``, else its own time, else now. ``join`` waits until it has been
        handled.
        """
        may_wait = not is_handling()
        mailboxes = self._put_into_mailboxes(Event.of(event, time), may_wait=may_wait)
        self._run(mailboxes)
        for mailbox in mailboxes:
            room = mailbox.until_room()
            if room is not None and may_wait:
                await asyncio.wrap_future(room)
        await asyncio.sleep(0)  # let the tasks of handlers run

    def publish_now(
        self, event: Event | Mapping[str, object], *, time: datetime | None = None
    ) -> None:
        """As ``publish``, for code that is not async.

        On return, subscribers without async handlers have handled it, unless another thread does.
        """
        may_wait = not is_handling() and running_loop() is None
        mailboxes = self._put_into_mailboxes(Event.of(event, time), may_wait=may_wait)
        self._run(mailboxes)
        for mailbox in mailboxes:
            room = mailbox.until_room()
            if room is not None and may_wait:
                room.result()

    async def join(self) -> None:
        """Wait until everything that was published has been handled."""
        if is_handling():
            raise SubscriptionError("a handler cannot wait until all handlers have returned")
        # Handlers may publish while others are waited for, so start over until all are idle.
        while True:
            with self._lock:
                mailboxes = [each.mailbox for each in self._attachments.values()]
            self._run(mailboxes)  # for those whose runner was interrupted
            waits = [idle for mailbox in mailboxes if (idle := mailbox.until_idle()) is not None]
            if not waits:
                return
            for idle in waits:
                await asyncio.wrap_future(idle)

    def _put_into_mailboxes(self, event: Event, *, may_wait: bool) -> list[Mailbox]:
        """Put an event into all mailboxes it matches, or, if one refuses it, into none."""
        # Matching and putting in one critical section: all subscribers see the same order.
        with self._lock:
            deliveries = self._connection.match(event)
            for mailbox, _ in deliveries:
                _check_loop(mailbox)
                if mailbox.is_full and not may_wait:
                    raise QueueFullError(
                        f"{len(mailbox)} events wait for {mailbox.owner}, and the publisher cannot "
                        "wait: it is a handler, or uses publish_now in an event loop"
                    )
            for mailbox, delivery in deliveries:
                mailbox.put(delivery)
            return [mailbox for mailbox, _ in deliveries]

    def _run(self, mailboxes: list[Mailbox]) -> None:
        """Have mailboxes emptied: in their loops, else in this thread.

        Inside a handler they are only queued for the call of ``_run`` further up in this thread.
        If each ran them itself, a chain of handlers would nest as deep as it is long.
        """
        for mailbox in mailboxes:
            if mailbox.loop is not None:
                _check_loop(mailbox)
                mailbox.start()
        plain = [mailbox for mailbox in mailboxes if mailbox.loop is None]
        queued: deque[Mailbox] | None = getattr(self._thread_local, "queued", None)
        if queued is not None:
            queued.extend(plain)
            return
        self._thread_local.queued = queued = deque(plain)
        try:
            while queued:
                queued.popleft().run()
        finally:
            del self._thread_local.queued


def _check_loop(mailbox: Mailbox) -> None:
    if mailbox.loop is not None and mailbox.loop.is_closed():
        raise SubscriptionError(f"the event loop of this {mailbox.owner} has ended; detach it")
