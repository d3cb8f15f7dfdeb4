"""A subscription as the program holds it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.language.events import Event
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import Value
from tidegate.network.client.events import ReceivedEvent
from tidegate.network.client.inbox import Inbox, Mailbox
from tidegate.routing.clients.client_state import matches_now

if TYPE_CHECKING:
    from tidegate.network.client.client import Client
    from tidegate.routing.messages import NamedSubscription


class Subscription:
    """A named subscription: iterate over it for its events, update its parameters.

    It is made by ``Client.subscribe``.
    """

    def __init__(self, client: Client, named: NamedSubscription, inbox: Inbox) -> None:
        self._client = client
        self.named = named
        """The present version."""
        self.inbox = inbox
        """Where its events wait; several subscriptions may share one."""
        self.handle: int | None = None
        """The broker's number for it; None until the broker has answered."""
        self.in_force = -1
        """The last version that is in force in the whole network."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._to_come = -1
        """The last version that somebody waits for, or will when the broker has answered."""
        self._error: Exception | None = None

    @property
    def name(self) -> str:
        """The name under which the broker has it."""
        return self.named.subscription.id

    @property
    def filter(self) -> Filter:
        """The filter."""
        return self.named.subscription.filter

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The values of the parameters."""
        return self.named.subscription.parameters

    @property
    def version(self) -> int:
        """The present version; an event that it matched has the same."""
        return self.named.version

    async def update(self, **parameters: Any) -> None:
        """Change parameters; None unsets one. Returns when the change is in force everywhere.

        Every event published from then on is matched by the new values, and none is missed or
        doubled on the way.
        """
        await self._client.change(self, parameters)

    async def change(
        self,
        filter: str | Filter | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Change the filter, parameters, or both, in one step.

        With ``wait=False`` it returns when the client's own broker has the change.
        """
        await self._client.change(self, parameters or {}, filter=filter, wait=wait)

    async def cancel(self) -> None:
        """End the subscription; events that wait in its inbox are dropped."""
        await self._client.cancel(self)

    async def next(self, timeout: float | None = None) -> ReceivedEvent | None:
        """The next event; None after the end, TimeoutError after ``timeout`` seconds."""
        return await self.inbox.next(timeout)

    async def next_many(self, most: int, timeout: float | None = None) -> list[ReceivedEvent]:
        """The events that are here, at most so many; waits for the first as ``next`` does."""
        return await self.inbox.next_many(most, timeout)

    def __aiter__(self) -> AsyncIterator[ReceivedEvent]:
        return self.inbox

    # -- for the client -----------------------------------------------------------------------

    def accepts(self, version: int, event: Event) -> bool:
        """Whether an event that an earlier version may have matched still counts."""
        if not self._client.has(self):
            return False
        return version == self.named.version or matches_now(self.named.subscription, event)

    def came_into_force(self, version: int) -> None:
        """Note that a version, and all before it, is in force."""
        self.in_force = max(self.in_force, version)
        still = []
        for wanted, future in self._waiting:
            if wanted > self.in_force:
                still.append((wanted, future))
            elif not future.done():
                future.set_result(None)
        self._waiting = still

    def will_wait(self, version: int) -> None:
        """Note that somebody will wait for a version, once the broker has it.

        If the connection breaks, the word that it is in force may be lost before that.
        """
        self._to_come = max(self._to_come, version)

    @property
    def waits(self) -> bool:
        """Whether somebody waits, or will, for a version that is not in force yet."""
        return bool(self._waiting) or self._to_come > self.in_force

    async def wait_in_force(self, version: int) -> None:
        """Wait until a version is in force."""
        if self._error is not None:
            raise self._error
        if self.in_force < version:
            future = asyncio.get_running_loop().create_future()
            self._waiting.append((version, future))
            await future

    def fail(self, error: Exception) -> None:
        """Let all that wait for a version fail."""
        self._error = error
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            if not future.done():
                future.set_exception(error)


class PatternSubscription:
    """A subscription to a pattern: iterate over it for sequences of events.

    It begins anew where the client gets a new session; it is not durable.
    """

    def __init__(self, client: Client, pattern: Pattern, space: str | None) -> None:
        self._client = client
        self.pattern = pattern
        self.space = space
        self.handle: int | None = None
        """The broker's number for it; None until the broker has answered."""
        self.mailbox: Mailbox[tuple[ReceivedEvent, ...]] = Mailbox()

    async def cancel(self) -> None:
        """End the subscription."""
        await self._client.cancel_pattern(self)

    async def next(self, timeout: float | None = None) -> tuple[ReceivedEvent, ...] | None:
        """The next sequence; None after the end, TimeoutError after ``timeout`` seconds."""
        return await self.mailbox.next(timeout)

    def __aiter__(self) -> PatternSubscription:
        return self

    async def __anext__(self) -> tuple[ReceivedEvent, ...]:
        sequence = await self.next()
        if sequence is None:
            raise StopAsyncIteration
        return sequence
