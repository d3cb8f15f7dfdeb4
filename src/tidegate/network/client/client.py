"""The client of a broker: publishes, subscribes, updates; see `tidegate.connect`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from tidegate.errors import (
    NetworkError,
    OverloadedError,
    RoutingError,
    SubscriptionError,
    TidegateError,
)
from tidegate.language.algebra.advertisements import Advertisement, parse_advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern, parse_pattern
from tidegate.language.shapes import Shape
from tidegate.language.values import to_time, to_us
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.attaching import AttachedSubscribers
from tidegate.network.client.bulk_subscribing import Wanted, subscribe_many
from tidegate.network.client.inbox import Inbox
from tidegate.network.client.publishing import Publishing
from tidegate.network.client.receiving import Receiving
from tidegate.network.client.registry import Move, Registry, subscribe_request, update_request
from tidegate.network.client.requesting import AfterLoss, Requests
from tidegate.network.client.session import Session
from tidegate.network.client.session_listener import SessionListener
from tidegate.network.client.settings import ClientSettings
from tidegate.network.client.subscription import PatternSubscription, Subscription
from tidegate.network.wire import requests as wire
from tidegate.network.wire.event_block import EncodedEvent, encode_event
from tidegate.subscribers.attachment import OnError, log_failure
from tidegate.subscribers.subscriber import Subscriber

S = TypeVar("S", bound=Subscriber)

_log = logging.getLogger("tidegate")

CLOSING_S = 5.0
"""How long a client that leaves waits for a connection."""


class Client:
    """A connection to a broker that is made again when it breaks.

    Use it as `async with tidegate.connect(...) as client`. All methods are for one event loop.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._session: Session | None = None
        self._end: TidegateError | None = None
        self._moves = 0
        self._is_moving = False

    # -- life ---------------------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        await self._start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Client]:
        return self.__aenter__().__await__()

    async def _start(self) -> None:
        if self._session is not None:
            raise NetworkError("this client was connected before; make another one")
        session = self._session = Session(self._settings, SessionListener(self))
        self._requests = Requests(session.send)
        self._publishing = Publishing(session.send)
        self._receiving = Receiving(self._settings, session)
        self._registry = Registry(self)
        self._attached = AttachedSubscribers(self)
        await session.start()
        await self._registry.held_came(self._settings.timeout_s)

    async def close(self) -> None:
        """Leave the broker. A durable client keeps its subscriptions there; any other departs.

        If the connection is broken at this moment, a durable client waits for the next one, for a
        while: else events that it has acknowledged would come again.
        """
        session = self._session
        if session is None or self._end is not None:
            return
        deadline = asyncio.get_running_loop().time() + CLOSING_S
        while self._receiving.owes_acknowledgement and not session.is_connected:
            if self._end is not None or asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.01)
        if not self._settings.durable and session.is_connected:
            self._requests.add(wire.Depart, AfterLoss.DONE).add_done_callback(_ignore)
        await session.close()

    async def drain(self, timeout: float | None = None) -> None:
        """Leave in good order: nothing new comes, all that is here is handled, then it closes.

        Waits until publications are confirmed and readers have taken all events from the inboxes;
        for not longer than ``timeout`` seconds, after which TimeoutError is raised.
        """
        async with asyncio.timeout(timeout):
            self._receiving.stop()
            while not (self._publishing.is_idle and not len(self._requests)):
                await asyncio.sleep(0.005)
            self._registry.close_inboxes(None)
            while self._receiving.waiting:
                await asyncio.sleep(0.005)
            await self._attached.drained()
        await self.close()

    @property
    def _live(self) -> Session:
        """The session; raises if the client is not connected or has ended."""
        if self._session is None:
            raise NetworkError(
                "the client is not connected; use `async with tidegate.connect(...)`"
            )
        if self._end is not None:
            raise self._end
        return self._session

    @property
    def identity(self) -> str:
        """The identity by which the broker knows the client."""
        return self._settings.identity

    @property
    def broker(self) -> str:
        """The name of the broker."""
        welcome = self._live.welcome
        return "" if welcome is None else welcome.broker

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._session is not None and self._session.is_connected

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """The named subscriptions, also those that a durable client has from an earlier process."""
        return self._registry.subscriptions

    @property
    def missed(self) -> int:
        """Deliveries that the broker dropped because they were not taken in time."""
        return self._receiving.missed

    @property
    def received(self) -> int:
        """Of a durable client: the position of the last event that has come to this process."""
        return self._receiving.received

    @property
    def queued(self) -> int:
        """Of a durable client: the position of the last event that waited for it at the broker when
        it connected; 0 if there was none."""
        welcome = self._live.welcome
        return 0 if welcome is None else welcome.queued

    @property
    def sessions_lost(self) -> int:
        """How often the broker had forgotten this client, so that it may have missed events."""
        return self._registry.sessions_lost

    @property
    def last_published(self) -> int:
        """The number of the last publication in its epoch, of this process or, stored, of one
        before."""
        return self._publishing.last_number

    # -- subscribing --------------------------------------------------------------------------

    def inbox(self) -> Inbox:
        """An inbox that several subscriptions can share; each event comes to it once."""
        self._live  # noqa: B018 - raises unless the client is connected
        return self._receiving.new_inbox()

    async def subscribe(
        self,
        filter: str | Filter,
        *,
        name: str | None = None,
        evolve: Evolve | None = None,
        space: str | None = None,
        inbox: Inbox | None = None,
        wait: bool = True,
        parameters: Mapping[str, Any] | None = None,
        origin_us: int | None = None,
        since: datetime | None = None,
        **more: Any,
    ) -> Subscription:
        """Subscribe; returns when the subscription is in force in the whole network.

        Values of parameters are given by name, those that are named like an argument in
        ``parameters``. A durable client finds a subscription again by its ``name``: it goes on
        where the process before has ended, with this filter and these values. `t` counts from now,
        or from ``origin_us``, in microseconds since 1970 by the clock of the broker.

        With ``since``, the matching events that the broker has kept from that time on come first,
        if its store keeps events. They are not acknowledged: if the session ends before all have
        come, the others are lost to this subscription.
        """
        session = self._live
        replay_us = None if since is None else to_us(to_time(since, "since"))
        values = {**(parameters or {}), **more}
        if name is None:
            if self._settings.durable:
                raise SubscriptionError(
                    "a subscription of a durable client needs a name, by which it is found again"
                )
            name = self._registry.free_name()
        held = self._registry.unclaimed(name)
        if held is not None and since is not None:
            raise SubscriptionError(
                f"the broker has {name!r} already, and replays to a new one only"
            )
        if held is not None:
            return await self._registry.claim(held, filter, values, evolve, space, inbox)
        state = self._registry.state
        request = state.subscribe(
            name,
            filter,
            values,
            now_us=session.now_us() if origin_us is None else origin_us,
            evolve=evolve,
            space=space,
        )
        subscription = self._registry.add(name, inbox)
        if wait:
            subscription.will_wait(request.version)
        try:
            await self._requests.room()
            await self._requests.add(
                lambda number: subscribe_request(
                    number,
                    subscription.named,
                    str(filter) if subscription.version == request.version else None,
                    wait=wait,
                    replay_us=replay_us,
                ),
                AfterLoss.RESTORED,
                lambda done: self._registry.bind(subscription, done.handles[0]),
            )
        except TidegateError:
            self._registry.drop(subscription)
            raise
        if wait:
            await subscription.wait_in_force(request.version)
        return subscription

    async def subscribe_many(
        self,
        filters: Iterable[str | tuple[str, Mapping[str, Any]]],
        *,
        inbox: Inbox | None = None,
        wait: bool = True,
    ) -> list[Subscription]:
        """Subscribe to many filters at once, each with its parameters if it has any.

        They share an inbox. Not for durable clients, whose subscriptions need names. If some are
        refused, the error of the first is raised, and the others are there.
        """
        self._live  # noqa: B018 - raises unless the client is connected
        if self._settings.durable:
            raise SubscriptionError("a durable client subscribes to one filter at a time, by name")
        wanted: Iterator[Wanted] = (
            (self._registry.free_name(), each, {})
            if isinstance(each, str)
            else (self._registry.free_name(), *each)
            for each in filters
        )
        shared = self._receiving.new_inbox() if inbox is None else inbox
        return await subscribe_many(self, wanted, shared, wait=wait)

    async def subscribe_pattern(
        self, pattern: str | Pattern, *, space: str | None = None
    ) -> PatternSubscription:
        """Subscribe to a sequence of events: `alarm = 'a' then file = 'b' within 30 s`."""
        self._live  # noqa: B018 - raises unless the client is connected
        parsed = parse_pattern(pattern) if isinstance(pattern, str) else pattern
        if len(parsed.steps) < 2:
            raise SubscriptionError(f"`{parsed}` is a filter, not a pattern; use `subscribe`")
        subscription = PatternSubscription(self, parsed, space)
        await self._requests.room()
        await self._registry.ask_pattern(subscription)
        return subscription

    async def attach(
        self, subscriber: S, *, name: str | None = None, on_error: OnError = log_failure
    ) -> S:
        """Subscribe for all handlers of a subscriber; returns it when they are in force.

        Handlers are called one after the other, in this event loop; an event is acknowledged when
        they are done with it. A durable client finds their subscriptions again by ``name``, which
        is that of the class unless it is given.
        """
        self._live  # noqa: B018 - raises unless the client is connected
        await self._attached.attach(subscriber, name, on_error)
        return subscriber

    async def detach(self, subscriber: Subscriber) -> None:
        """End the subscriptions of a subscriber; no handler of it is called any more."""
        self._live  # noqa: B018 - raises unless the client is connected
        await self._attached.detach(subscriber)

    async def change(
        self,
        subscription: Subscription,
        parameters: Mapping[str, Any],
        *,
        filter: str | Filter | None = None,
        wait: bool = True,
    ) -> None:
        """Change a subscription; `Subscription.update` and `Subscription.change` call it."""
        self._live  # noqa: B018 - raises unless the client is connected
        await self._requests.room()
        before = subscription.named
        update = self._registry.state.update(subscription.name, parameters, filter=filter)
        subscription.named = self._registry.state[subscription.name]
        if wait:
            subscription.will_wait(update.version)
        try:
            await self._requests.add(
                lambda number: update_request(number, subscription, update, wait=wait),
                AfterLoss.RESTORED,
            )
        except TidegateError:
            # Refused; a later change stands as it is, with what this one should have brought.
            if subscription.named.version == update.version:
                self._registry.state.adopt(before)
                subscription.named = self._registry.state[subscription.name]
            raise
        if wait:
            await subscription.wait_in_force(update.version)

    async def cancel(self, subscription: Subscription) -> None:
        """End a subscription; `Subscription.cancel` calls it."""
        self._live  # noqa: B018 - raises unless the client is connected
        handle = subscription.handle
        self._registry.drop(subscription)
        if handle is not None:
            await self._requests.add(lambda number: wire.Cancel(number, handle), AfterLoss.DONE)

    async def cancel_pattern(self, subscription: PatternSubscription) -> None:
        """End a subscription to a pattern; `PatternSubscription.cancel` calls it."""
        self._live  # noqa: B018 - raises unless the client is connected
        handle = subscription.handle
        self._registry.drop_pattern(subscription)
        if handle is not None:
            await self._requests.add(lambda number: wire.Cancel(number, handle), AfterLoss.DONE)

    async def unsubscribe(self, filter: str | Filter, *, space: str | None = None) -> None:
        """End all subscriptions of this client that a filter covers."""
        self._live  # noqa: B018 - raises unless the client is connected
        text = str(filter)
        await self._requests.room()
        dropped = self._registry.covered(filter, space)
        await self._requests.add(
            lambda number: wire.Unsubscribe(number, text, space), AfterLoss.DONE
        )
        for subscription in dropped:
            self._registry.drop(subscription)

    # -- publishing ---------------------------------------------------------------------------

    async def publish(
        self,
        event: Mapping[str, object] | Event,
        *,
        confirm: bool = False,
        space: str | None = None,
        time: Any = None,
    ) -> None:
        """Publish an event.

        With ``confirm=True`` it returns when the event is safe: on the disk of the broker. Without,
        it returns when the event is on its way, which it takes at most once.
        """
        await self.publish_many([Event.of(event, time)], confirm=confirm, space=space)

    async def publish_many(
        self,
        events: Iterable[Mapping[str, object] | Event],
        *,
        confirm: bool = False,
        space: str | None = None,
    ) -> None:
        """Publish events in order; with ``confirm=True`` returns when all of them are safe.

        If some are refused, the error of the first is raised, and the others are published.
        """
        session = self._live
        encoded = [self._encoded(Event.of(each), space) for each in events]
        confirmation = await self._publishing.add(encoded, confirm=confirm)
        session.write_soon()
        if confirmation is not None:
            await confirmation

    async def publish_numbered(self, events: Sequence[EncodedEvent], first: int) -> None:
        """Publish events with numbers of the publisher's own choice; returns when they are safe.

        Numbers rise from ``first`` on, and must be higher than those of other events before in the
        same epoch; gaps do no harm. Events whose numbers the broker has already, from this process
        or one before, are not published again.
        """
        if self._settings.epoch is None:
            raise NetworkError("a publisher that numbers its events needs an epoch")
        session = self._live
        for each in events:
            self._check_size(each)
        known = max(0, self._publishing.last_number - first + 1)
        confirmation = await self._publishing.add(
            events[known:], confirm=True, after=first + known - 1
        )
        session.write_soon()
        if confirmation is not None:
            await confirmation

    def _encoded(self, event: Event, space: str | None) -> EncodedEvent:
        encoded = encode_event(event, space)
        self._check_size(encoded)
        return encoded

    def _check_size(self, encoded: EncodedEvent) -> None:
        welcome = self._live.welcome
        if welcome is not None and len(encoded.body) > welcome.frame_bytes_max - 1_000:
            raise OverloadedError(
                f"an event has {len(encoded.body)} bytes; the broker takes frames of "
                f"{welcome.frame_bytes_max}"
            )

    async def advertise(
        self, advertisement: str | Advertisement, *, space: str | None = None
    ) -> None:
        """Announce which events this client will publish."""
        self._live  # noqa: B018 - raises unless the client is connected
        text = _advertisement_text(advertisement)
        await self._requests.room()
        await self._requests.add(
            lambda number: wire.Advertise(number, text, space), AfterLoss.REPEAT
        )
        self._registry.advertised(text, space)

    async def unadvertise(
        self, advertisement: str | Advertisement, *, space: str | None = None
    ) -> None:
        """Take back all advertisements of this client that this one covers."""
        self._live  # noqa: B018 - raises unless the client is connected
        text = _advertisement_text(advertisement)
        await self._requests.room()
        await self._requests.add(
            lambda number: wire.Unadvertise(number, text, space), AfterLoss.DONE
        )
        self._registry.unadvertised(text, space)

    # -- away and back ------------------------------------------------------------------------

    async def suspend(self) -> None:
        """Ask the broker to keep all deliveries until ``resume``."""
        self._live  # noqa: B018 - raises unless the client is connected
        await self._requests.add(wire.Suspend, AfterLoss.REPEAT)

    async def resume(self) -> None:
        """Get what the broker has kept, and whatever comes from now on."""
        self._live  # noqa: B018 - raises unless the client is connected
        await self._requests.add(wire.Resume, AfterLoss.REPEAT)

    async def move(self, broker: str) -> None:
        """Go on at another broker of the network; returns when everything is there.

        Subscriptions, advertisements and what was not delivered yet come along: nothing that is
        published meanwhile is missed or doubled. Publications wait until the client has arrived.
        Patterns begin anew. TimeoutError is raised if the brokers cannot reach each other in time;
        the client is at the new broker then, and its subscriptions come when they can.
        """
        session, address = self._live, BrokerAddress.parse(broker)
        if self._is_moving:
            raise NetworkError("the client is moving already")
        self._is_moving = True
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                await self._leave_in_order()
                self._moves = max(self._moves + 1, self.now_us())
                move = Move(self.broker, self._moves)
                self._registry.begin_move(move)
                session.move(address)
                self._receiving.moved()
                await move.arrived.wait()
                await self._requests.all_answered()
        finally:
            self._is_moving = False
            session.write_soon()

    async def _leave_in_order(self) -> None:
        """Wait for all answers; let the broker keep what it has not sent yet."""
        while self._publishing.has_unconfirmed or len(self._requests):
            await asyncio.sleep(0.001)
        self._receiving.prepare_move()
        # The broker answers in order, so it has then taken all acknowledgements. An ordinary client
        # gets nothing any more; it may have no subscriptions there, so that there is nothing to do.
        last = wire.Resume if self._settings.durable else wire.Suspend
        with suppress(RoutingError):
            await self._requests.add(last, AfterLoss.REPEAT)

    async def depart(self) -> None:
        """End all subscriptions and advertisements, also those of a durable client, and close."""
        self._live  # noqa: B018 - raises unless the client is connected
        await self._requests.add(wire.Depart, AfterLoss.DONE)
        self._registry.close_inboxes(None)
        await self.close()

    # -- for the session ----------------------------------------------------------------------

    @property
    def requests(self) -> Requests:
        """The requests that wait for answers."""
        return self._requests

    @property
    def registry(self) -> Registry:
        """The subscriptions."""
        return self._registry

    def now_us(self) -> int:
        """The time by the clock of the broker."""
        return self._live.now_us()

    def filter_shape(self, shape: Shape) -> int:
        """The number of a filter shape on the present connection."""
        connection = self._live.connection
        number = 0 if connection is None else connection.filter_shape(shape)
        if number is None:
            raise SubscriptionError(f"`{shape}` is too long to be subscribed to in rows")
        return number

    @property
    def receiving(self) -> Receiving:
        """The deliveries."""
        return self._receiving

    def has(self, subscription: Subscription) -> bool:
        """Whether a subscription has not ended."""
        return self._registry.is_current(subscription)

    def free_name(self) -> str:
        """A name for a subscription of which the program gives none."""
        return self._registry.free_name()

    @property
    def is_durable(self) -> bool:
        """Whether the broker keeps what this client has when it is away."""
        return self._settings.durable

    @property
    def settings(self) -> ClientSettings:
        """How the client was connected."""
        return self._settings

    @property
    def publishing(self) -> Publishing:
        """The publications."""
        return self._publishing

    @property
    def may_publish(self) -> bool:
        """Whether publications may be sent now: not while the client moves to another broker."""
        return self._live.can_write and not self._is_moving

    def ended(self, error: TidegateError) -> None:
        """Let all who wait fail."""
        if self._end is None:
            self._end = error
            self._requests.fail(error)
            self._publishing.fail(error)
            is_closed = type(error) is NetworkError
            self._registry.close_inboxes(None if is_closed else error)
            self._attached.close()


def _ignore(future: asyncio.Future[Any]) -> None:
    """Take the result of a future that nobody waits for."""
    if not future.cancelled():
        future.exception()


def _advertisement_text(advertisement: str | Advertisement) -> str:
    if isinstance(advertisement, str):
        parse_advertisement(advertisement)
    return str(advertisement)
