"""What a client has at its broker: subscriptions, patterns and advertisements.

They are made again where the broker has forgotten them.

A broker remembers an ordinary client for a while after its connection broke, and a durable one for
ever. Where it does not (`Welcome.is_resumed` is false), an ordinary client subscribes again to all
it has, with its present versions. A durable one is told first what the broker holds (`Held`): then
only what differs is sent. Its subscriptions from an earlier process wait, with their events, until
the program claims them by name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from tidegate.errors import ConnectionLostError, SubscriptionError, TidegateError
from tidegate.language.algebra.advertisements import parse_advertisement
from tidegate.language.evolve import Evolve, parse_evolve
from tidegate.language.filters import Filter, parse
from tidegate.matching.subscription import Subscription as Row
from tidegate.network.client.inbox import Inbox
from tidegate.network.client.requesting import AfterLoss, Pending
from tidegate.network.client.subscription import PatternSubscription, Subscription
from tidegate.network.wire import requests as wire
from tidegate.network.wire.handshake import Welcome
from tidegate.network.wire.values import values_of, wire_value
from tidegate.routing import messages as m
from tidegate.routing.clients.client_state import ClientState, is_covered

if TYPE_CHECKING:
    from tidegate.network.client.client import Client


class Registry:
    """The subscriptions, patterns and advertisements of one client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.state = ClientState()
        self.subscriptions: dict[str, Subscription] = {}
        self.by_handle: dict[int, Subscription | PatternSubscription] = {}
        self._patterns: list[PatternSubscription] = []
        self._advertisements: list[tuple[str, str | None]] = []
        self._unclaimed: set[str] = set()
        """Subscriptions of an earlier process that the program has not asked for yet."""
        self._unsure: set[Subscription | PatternSubscription] = set()
        """Subscriptions whose answer comes after a break: the word that they are in force may
        have been lost."""
        self._held: list[wire.HeldSubscription] = []
        self._held_came = asyncio.Event()
        self._lost_requests: tuple[list[Pending], list[Pending]] = ([], [])
        self._was_welcomed = False
        self.sessions_lost = 0
        self._names: Iterator[int] = count(1)

    # -- making and ending ----------------------------------------------------------------------

    def free_name(self) -> str:
        """A name for a subscription of which the program gives none."""
        return next(name for name in map("s{}".format, self._names) if name not in self.state)

    def add(self, name: str, inbox: Inbox | None) -> Subscription:
        """The subscription that ``state`` has under a name."""
        if inbox is None:
            inbox = self._client.receiving.new_inbox()
        subscription = Subscription(self._client, self.state[name], inbox)
        self.subscriptions[name] = subscription
        return subscription

    def bind(self, subscription: Subscription | PatternSubscription, handle: int) -> None:
        """Note the handle that the broker uses."""
        if (
            subscription.handle is not None
            and self.by_handle.get(subscription.handle) is subscription
        ):
            del self.by_handle[subscription.handle]
        subscription.handle = handle
        self.by_handle[handle] = subscription
        if subscription in self._unsure and isinstance(subscription, Subscription):
            self._unsure.discard(subscription)
            self._ask_again(subscription)

    def drop(self, subscription: Subscription) -> None:
        """Forget a subscription, whose inbox ends if no other one shares it."""
        name = subscription.name
        if self.subscriptions.get(name) is not subscription:
            return
        del self.subscriptions[name]
        self._unclaimed.discard(name)
        if name in self.state:
            self.state.cancel(name)
        subscription.fail(SubscriptionError(f"the subscription {name!r} has ended"))
        if all(each.inbox is not subscription.inbox for each in self.subscriptions.values()):
            subscription.inbox.close()

    def is_current(self, subscription: Subscription) -> bool:
        """Whether a subscription has not ended."""
        return self.subscriptions.get(subscription.name) is subscription

    def covered(self, filter: str | Filter, space: str | None) -> list[Subscription]:
        """The subscriptions that a filter covers, and which an unsubscription by it ends."""
        wanted = parse(filter) if isinstance(filter, str) else filter
        return [
            each for each in self.subscriptions.values() if is_covered(each.named, wanted, space)
        ]

    def advertised(self, text: str, space: str | None) -> None:
        """Note an advertisement."""
        self._advertisements.append((text, space))

    def unadvertised(self, text: str, space: str | None) -> None:
        """Forget the advertisements that one covers."""
        wide = parse_advertisement(text)
        self._advertisements = [
            (each, other)
            for each, other in self._advertisements
            if other != space or not wide.covers(parse_advertisement(each))
        ]

    async def ask_pattern(self, subscription: PatternSubscription) -> None:
        """Subscribe to a pattern."""
        self._patterns.append(subscription)
        try:
            await self._client.requests.add(
                lambda number: _pattern_request(number, subscription),
                AfterLoss.REPEAT,
                lambda done: self.bind(subscription, done.handles[0]),
            )
        except TidegateError:
            self._patterns.remove(subscription)
            raise

    def drop_pattern(self, subscription: PatternSubscription) -> None:
        """Forget a pattern."""
        if subscription in self._patterns:
            self._patterns.remove(subscription)
        subscription.mailbox.close()

    def close_inboxes(self, error: TidegateError | None) -> None:
        """Let all readers come to an end, or to an error."""
        for each in self.subscriptions.values():
            each.inbox.close(error)
            each.fail(error or SubscriptionError("the client is closed"))
        for pattern in self._patterns:
            pattern.mailbox.close(error)

    # -- subscriptions of an earlier process ----------------------------------------------------

    async def held_came(self, timeout_s: float) -> None:
        """Wait until a durable client knows what the broker holds for it."""
        if self._client.is_durable:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._held_came.wait()
            except TimeoutError:
                raise ConnectionLostError(
                    "the broker did not say what it holds for this client"
                ) from None

    def unclaimed(self, name: str) -> Subscription | None:
        """The subscription of an earlier process under a name."""
        return self.subscriptions[name] if name in self._unclaimed else None

    async def claim(
        self,
        held: Subscription,
        filter: str | Filter,
        values: Mapping[str, Any],
        evolve: Evolve | None,
        space: str | None,
        inbox: Inbox | None,
    ) -> Subscription:
        """Go on with the subscription of an earlier process, with this filter and these values."""
        if (held.named.subscription.evolve, held.named.space) != (evolve, space):
            raise SubscriptionError(
                f"the broker holds {held.name!r} with another evolve mode or space; cancel it first"
            )
        wanted = parse(filter) if isinstance(filter, str) else filter
        if inbox is not None:
            held.inbox.move_to(inbox)
            held.inbox = inbox
        is_same = wanted == held.filter
        kept = held.parameters if is_same else {}
        unset = {each: None for each in kept if each not in values}
        await self._client.change(held, {**unset, **values}, filter=None if is_same else filter)
        self._unclaimed.discard(held.name)
        return held

    def take_held(self, message: wire.Held) -> None:
        """Take what the broker holds, of which the last part may be still to come."""
        self._held += message.subscriptions
        if not message.is_last:
            return
        held, self._held = self._held, []
        self._restore({each.name: each for each in held})
        self._held_came.set()

    # -- after a connection ---------------------------------------------------------------------

    def welcomed(self, welcome: Welcome) -> None:
        """Go on with the session, or make everything again in a new one."""
        requests = self._client.requests
        if welcome.is_resumed:
            requests.resume(welcome.handled)
            for subscription in self.subscriptions.values():
                if subscription.waits and subscription.handle is None:
                    self._unsure.add(subscription)
                elif subscription.waits:
                    self._ask_again(subscription)
            self._held_came.set()
        else:
            self.sessions_lost += self._was_welcomed
            self._held = []
            self._unsure.clear()
            before, lost = self._lost_requests, requests.lose_session()
            self._lost_requests = before[0] + lost[0], before[1] + lost[1]
            if not self._client.is_durable:
                self._restore({})
        self._was_welcomed = True

    def _restore(self, held: Mapping[str, wire.HeldSubscription]) -> None:
        """Make everything again, beside what the broker holds."""
        (repeated, restored), self._lost_requests = self._lost_requests, ([], [])
        self.by_handle.clear()
        made: list[asyncio.Future[wire.Done]] = []
        for subscription in list(self.subscriptions.values()):
            each = held.get(subscription.name)
            if each is None:
                made.append(self._subscribe_again(subscription))
            else:
                self.bind(subscription, each.handle)
                if each.version != subscription.version or subscription.waits:
                    self._ask_again(subscription)
        for name, each in held.items():
            if name not in self.subscriptions:
                self._adopt(each)
        requests = self._client.requests
        for text, space in self._advertisements:
            _forget_result(requests.add(_advertise_request(text, space), AfterLoss.REPEAT))
        for pattern in self._patterns:
            if pattern.handle is not None:
                self._subscribe_pattern_again(pattern)
        for pending in repeated:
            requests.repeat(pending)
        for pending in restored:
            _follow(pending, made)

    def _adopt(self, held: wire.HeldSubscription) -> None:
        """Take over a subscription of an earlier process, for the program to claim."""
        row = Row(
            held.name,
            Filter(parse(held.filter).node),
            values_of(held.parameters),
            origin=held.origin_us,
            evolve=None if held.evolve is None else parse_evolve(held.evolve),
        )
        self.state.adopt(m.NamedSubscription(row, held.version, held.space))
        self.bind(self.add(held.name, None), held.handle)
        self._unclaimed.add(held.name)

    def _subscribe_again(self, subscription: Subscription) -> asyncio.Future[wire.Done]:
        """Subscribe with the present version; an error ends the inbox."""
        future = self._client.requests.add(
            lambda number: subscribe_request(number, subscription.named),
            AfterLoss.RESTORED,
            lambda done: self.bind(subscription, done.handles[0]),
        )

        def done(answer: asyncio.Future[wire.Done]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if isinstance(error, TidegateError):
                subscription.inbox.close(error)
                subscription.fail(error)
                self.drop(subscription)

        future.add_done_callback(done)
        return future

    def _ask_again(self, subscription: Subscription) -> None:
        """Send the whole present version as an update, and ask when it is in force."""
        update = self.state.update(subscription.name, {})
        subscription.named = self.state[subscription.name]
        _forget_result(
            self._client.requests.add(
                lambda number: update_request(number, subscription, update, wait=True, whole=True),
                AfterLoss.RESTORED,
            )
        )

    def _subscribe_pattern_again(self, pattern: PatternSubscription) -> None:
        future = self._client.requests.add(
            lambda number: _pattern_request(number, pattern),
            AfterLoss.REPEAT,
            lambda done: self.bind(pattern, done.handles[0]),
        )

        def done(answer: asyncio.Future[wire.Done]) -> None:
            error = None if answer.cancelled() else answer.exception()
            if isinstance(error, TidegateError):
                pattern.mailbox.close(error)

        future.add_done_callback(done)


def subscribe_request(
    number: int,
    named: m.NamedSubscription,
    text: str | None = None,
    *,
    wait: bool = True,
    replay_us: int | None = None,
) -> wire.Subscribe:
    """The request for a version of a subscription, with the filter as it was written."""
    row = named.subscription
    return wire.Subscribe(
        number,
        text or str(row.filter),
        row.id,
        {name: wire_value(value) for name, value in row.parameters.items()},
        None if row.evolve is None else str(row.evolve),
        named.version,
        row.origin,
        wait,
        named.space,
        replay_us,
    )


def update_request(
    number: int,
    subscription: Subscription,
    update: m.Update,
    *,
    wait: bool,
    whole: bool = False,
) -> wire.Update:
    """The request for an update; a ``whole`` one has the filter and all parameters."""
    parameters: Mapping[str, Any] = update.parameters
    filter = None if update.filter is None else str(update.filter)
    if whole:
        row = subscription.named.subscription
        parameters = {name: row.parameters.get(name) for name in row.filter.parameters}
        filter = str(row.filter)
    checked = {
        name: None if value is None else wire_value(subscription.parameters.get(name, value))
        for name, value in parameters.items()
    }
    assert subscription.handle is not None  # updates wait for the answer to `Subscribe`
    return wire.Update(number, subscription.handle, update.version, checked, filter, wait)


def _pattern_request(number: int, subscription: PatternSubscription) -> wire.Subscribe:
    return wire.Subscribe(number, str(subscription.pattern), space=subscription.space)


def _advertise_request(text: str, space: str | None) -> Any:
    return lambda number: wire.Advertise(number, text, space)


def _forget_result(future: asyncio.Future[Any]) -> None:
    """Take the result of a request that nobody waits for."""
    future.add_done_callback(lambda done: done.cancelled() or done.exception())


def _follow(pending: Pending, made: list[asyncio.Future[wire.Done]]) -> None:
    """Complete a request of the lost session when everything was made again."""

    def check(_: object) -> None:
        if all(each.done() for each in made) and not pending.future.done():
            pending.future.set_result(wire.Done(0))

    if not made:
        check(None)
    for each in made:
        each.add_done_callback(check)
