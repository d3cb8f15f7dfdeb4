"""Subscribers at a client: objects with parameters and handlers, over the network.

`subscribers.attachment` does the work of figure 5: which values are sent, and the last check before
a handler is called. Here is what it needs of a connection.

Rules.

(1) Each handler is a named subscription; all of one subscriber share an inbox, so an event comes to
    it once. The next event is asked for, and so this one acknowledged, when the handlers are done.
(2) Values leave in the order of the assignments. Those that are assigned while an update is on its
    way are joined, and go with the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.errors import SubscriptionError, TidegateError
from tidegate.language.expressions import Environment
from tidegate.language.values import Value
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Moment
from tidegate.network.client.events import ReceivedEvent
from tidegate.network.client.subscription import Subscription
from tidegate.subscribers.attachment import Attachment, OnError
from tidegate.subscribers.connection import ALWAYS, Request, SubscriberEnd, TimeSpan
from tidegate.subscribers.mailbox import Delivery
from tidegate.subscribers.subscriber import Subscriber

if TYPE_CHECKING:
    from tidegate.network.client.client import Client

_log = logging.getLogger("tidegate")

WAITING_MAX = 1
"""Events that wait in the mailbox of a subscriber; the others wait in its inbox."""
RENEWAL_S_MIN = 0.001


class AttachedSubscribers:
    """The subscribers at one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._attachments: dict[int, tuple[Attachment, NetworkHandle]] = {}
        """By id(), as subscribers may define ==."""

    async def attach(self, subscriber: Subscriber, name: str | None, on_error: OnError) -> None:
        """Subscribe for all handlers of a subscriber; returns when they are in force."""
        connection = _ClientConnection(self._client, name or type(subscriber).__name__)
        attachment = Attachment(subscriber, connection, WAITING_MAX, on_error)
        handle = connection.handle
        assert handle is not None  # an attachment subscribes at once
        self._attachments[id(subscriber)] = attachment, handle
        try:
            await handle.begin()
        except BaseException:
            del self._attachments[id(subscriber)]
            attachment.close()
            await handle.ended()
            raise

    async def detach(self, subscriber: Subscriber) -> None:
        """End the subscriptions of a subscriber."""
        found = self._attachments.pop(id(subscriber), None)
        if found is None:
            raise SubscriptionError(
                f"this {type(subscriber).__name__} is not attached to this client"
            )
        attachment, handle = found
        attachment.close()
        await handle.ended()

    async def drained(self) -> None:
        """Wait until the handlers are done with all events, after the inboxes were closed."""
        for _, handle in list(self._attachments.values()):
            await handle.read_to_end()

    def close(self) -> None:
        """Stop calling handlers; the subscriptions of a durable client stay at the broker."""
        for _, handle in self._attachments.values():
            handle.stop()


class _ClientConnection:
    """Subscribes for one subscriber."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self.handle: NetworkHandle | None = None

    def subscribe(
        self,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        subscriber_end: SubscriberEnd,
    ) -> NetworkHandle:
        """Prepare the subscriptions, which `NetworkHandle.begin` makes."""
        for request in requests:
            if request.filter.variables:
                raise SubscriptionError(
                    f"`{request.filter}` has a variable of the broker, which a client cannot check "
                    "again before it calls a handler; use Client.subscribe"
                )
        self.handle = NetworkHandle(self._client, self._name, requests, values, subscriber_end)
        return self.handle


class NetworkHandle:
    """The subscriptions of one subscriber at a broker, in the order of its handlers."""

    def __init__(
        self,
        client: Client,
        name: str,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        subscriber_end: SubscriberEnd,
    ) -> None:
        self._client = client
        self._name = name
        self._requests = requests
        self._values = dict(values)
        self._end = subscriber_end
        self._loop = asyncio.get_running_loop()
        self._inbox = client.inbox()
        self._subscriptions: list[Subscription] = []
        self._origin_us: int | None = None
        self._pending: dict[str, Value | None] = {}
        self._span = ALWAYS
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._cancelling: asyncio.Task[None] | None = None
        self._is_cancelled = False
        self.updates = 0
        """The updates that were sent, for all handlers together."""

    # -- life ---------------------------------------------------------------------------------

    async def begin(self) -> None:
        """Make the subscriptions; raises the error of the first that is refused."""
        origin_us = self._client.now_us()
        asked = [self._subscribe(index, origin_us) for index in range(len(self._requests))]
        made = await asyncio.gather(*asked, return_exceptions=True)
        self._subscriptions = [each for each in made if isinstance(each, Subscription)]
        for each in made:
            if isinstance(each, BaseException):
                raise each
        # One that a durable client had before counts from its own beginning.
        self._origin_us = self._subscriptions[0].named.subscription.origin
        self._reading = self._loop.create_task(self._read(), name="tidegate subscriber")
        self._end.renew(self.t())
        self._flush_soon()

    async def _subscribe(self, index: int, origin_us: int) -> Subscription:
        request = self._requests[index]
        given = {name: self._values.get(name) for name in request.filter.parameters}
        return await self._client.subscribe(
            request.filter,
            name=self._name_of(index),
            evolve=request.evolve,
            inbox=self._inbox,
            parameters={name: value for name, value in given.items() if value is not None},
            origin_us=origin_us,
        )

    def _name_of(self, index: int) -> str:
        return f"{self._name}.{index}" if self._client.is_durable else self._client.free_name()

    def stop(self) -> None:
        """Call no handler any more, and send nothing."""
        self._is_cancelled = True
        for each in (self._reading, self._flushing):
            if each is not None:
                each.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def cancel(self) -> None:
        """End the subscriptions; callable from any thread."""
        self._is_cancelled = True
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self.stop()
        self._cancelling = self._loop.create_task(self._cancel_all())

    async def _cancel_all(self) -> None:
        for each in self._subscriptions:
            with suppress(TidegateError):  # the client has ended, and they with it
                await each.cancel()

    async def ended(self) -> None:
        """Wait until the broker has ended the subscriptions, after `cancel`."""
        while self._cancelling is None:
            await asyncio.sleep(0)
        await self._cancelling

    # -- updates ------------------------------------------------------------------------------

    def t(self) -> float:
        """Seconds since the subscriptions began, by the clock of the broker."""
        return 0.0 if self._origin_us is None else (self._client.now_us() - self._origin_us) / 1e6

    def update(self, values: Mapping[str, Value | None], span: TimeSpan = ALWAYS) -> None:
        """Change parameters, without waiting; callable from any thread."""
        # Called under the lock of the values, so the order is that of the assignments.
        self._loop.call_soon_threadsafe(self._take, dict(values), span)

    def _take(self, values: dict[str, Value | None], span: TimeSpan) -> None:
        self._pending.update(values)
        self._span = span
        self._flush_soon()

    def _flush_soon(self) -> None:
        if self._is_cancelled or self._reading is None:
            return  # `begin` comes back here
        self._watch_span()
        if self._pending and (self._flushing is None or self._flushing.done()):
            self._flushing = self._loop.create_task(self._flush(), name="tidegate updates")

    def _watch_span(self) -> None:
        """Renew the bands when the span ends for which they are right."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._span != ALWAYS and self._span[1] < float("inf"):
            left_s = max(RENEWAL_S_MIN, self._span[1] - self.t())
            self._timer = self._loop.call_later(left_s, self._renew)

    def _renew(self) -> None:
        self._timer = None
        if not self._is_cancelled:
            self._end.renew(self.t())
            self._watch_span()

    async def _flush(self) -> None:
        """Send what is pending until nothing is."""
        while self._pending and not self._is_cancelled:
            values, self._pending = self._pending, {}
            changes = []
            for subscription in self._subscriptions:
                names = subscription.filter.parameters
                used = {name: value for name, value in values.items() if name in names}
                if used:
                    changes.append(subscription.change(None, used, wait=False))
            self.updates += len(changes)
            for result in await asyncio.gather(*changes, return_exceptions=True):
                if isinstance(result, TidegateError) and not self._is_cancelled:
                    _log.error("the values of %s were not sent: %s", self._name, result)

    # -- events -------------------------------------------------------------------------------

    async def _read(self) -> None:
        """Hand events to the mailbox, one after the other."""
        mailbox = self._end.mailbox
        try:
            while (event := await self._inbox.next()) is not None:
                mailbox.put(self._delivery(event))
                if mailbox.loop is None:
                    mailbox.run()
                else:
                    mailbox.start()
                idle = mailbox.until_idle()
                if idle is not None:
                    await asyncio.wrap_future(idle)
        except TidegateError as error:
            _log.error("%s gets no more events: %s", self._name, error)

    async def read_to_end(self) -> None:
        """Wait until the inbox has come to its end."""
        if self._reading is not None:
            await asyncio.wait([self._reading])

    def _delivery(self, event: ReceivedEvent) -> Delivery:
        """An event as the attachment takes it, with the times at which it was judged."""
        moment = Moment(event_us(event.event))
        found: list[tuple[int, Environment]] = []
        for subscription, _ in event.matches:
            environment = subscription.named.subscription.environment(moment)
            index = self._subscriptions.index(subscription)
            found.append((index, replace(environment, parameters={})))
        found.sort(key=lambda each: each[0])
        return Delivery(
            event.event,
            tuple(index for index, _ in found),
            tuple(environment for _, environment in found),
        )
