"""`tidegate.connect_sync`: the client for programs without asyncio.

An event loop in a thread of its own runs the client; every call here waits for it. The calls may be
made from any thread, but an inbox has one reader at a time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from tidegate.errors import NetworkError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.events import Event
from tidegate.language.evolve import Evolve
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.language.values import Value
from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect
from tidegate.network.client.events import ReceivedEvent
from tidegate.network.client.subscription import PatternSubscription, Subscription
from tidegate.network.wire.event_block import EncodedEvent

T = TypeVar("T")


def connect_sync(
    broker: str | list[str] = "tidegate://localhost:7070", **options: Any
) -> SyncClient:
    """Connect to a broker; takes what `tidegate.connect` takes, and returns when connected.

    Use it as `with tidegate.connect_sync(...) as client`.
    """
    return SyncClient(connect(broker, **options))


class SyncClient:
    """As `Client`, with methods that return when the work is done."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="tidegate", daemon=True)
        self._thread.start()
        try:
            self._run(client.__aenter__())
        except BaseException:
            self._stop()
            raise

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise NetworkError("the client is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> SyncClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """As `Client.close`."""
        if self._thread.is_alive():
            self._run(self._client.close())
            self._stop()

    def drain(self, timeout: float | None = None) -> None:
        """As `Client.drain`; readers are other threads."""
        self._run(self._client.drain(timeout))
        self._stop()

    @property
    def identity(self) -> str:
        """The identity by which the broker knows the client."""
        return self._client.identity

    @property
    def broker(self) -> str:
        """The name of the broker."""
        return self._client.broker

    @property
    def missed(self) -> int:
        """Deliveries that the broker dropped because they were not taken in time."""
        return self._client.missed

    @property
    def received(self) -> int:
        """As `Client.received`."""
        return self._client.received

    @property
    def queued(self) -> int:
        """As `Client.queued`."""
        return self._client.queued

    @property
    def last_published(self) -> int:
        """As `Client.last_published`."""
        return self._client.last_published

    @property
    def subscriptions(self) -> Mapping[str, SyncSubscription]:
        """The named subscriptions, also those that a durable client has from before."""
        return {
            name: SyncSubscription(self, each) for name, each in self._client.subscriptions.items()
        }

    def subscribe(
        self,
        filter: str | Filter,
        *,
        name: str | None = None,
        evolve: Evolve | None = None,
        space: str | None = None,
        wait: bool = True,
        parameters: Mapping[str, Any] | None = None,
        since: datetime | None = None,
        **more: Any,
    ) -> SyncSubscription:
        """As `Client.subscribe`."""
        made = self._client.subscribe(
            filter,
            name=name,
            evolve=evolve,
            space=space,
            wait=wait,
            parameters={**(parameters or {}), **more},
            since=since,
        )
        return SyncSubscription(self, self._run(made))

    def subscribe_pattern(
        self, pattern: str | Pattern, *, space: str | None = None
    ) -> SyncPatternSubscription:
        """As `Client.subscribe_pattern`."""
        made = self._client.subscribe_pattern(pattern, space=space)
        return SyncPatternSubscription(self, self._run(made))

    def unsubscribe(self, filter: str | Filter, *, space: str | None = None) -> None:
        """As `Client.unsubscribe`."""
        self._run(self._client.unsubscribe(filter, space=space))

    def publish(
        self,
        event: Mapping[str, object] | Event,
        *,
        confirm: bool = False,
        space: str | None = None,
        time: Any = None,
    ) -> None:
        """As `Client.publish`."""
        self._run(self._client.publish(event, confirm=confirm, space=space, time=time))

    def publish_many(
        self,
        events: Iterable[Mapping[str, object] | Event],
        *,
        confirm: bool = False,
        space: str | None = None,
    ) -> None:
        """As `Client.publish_many`."""
        self._run(self._client.publish_many(list(events), confirm=confirm, space=space))

    def publish_numbered(self, events: Sequence[EncodedEvent], first: int) -> None:
        """As `Client.publish_numbered`."""
        self._run(self._client.publish_numbered(events, first))

    def advertise(self, advertisement: str | Advertisement, *, space: str | None = None) -> None:
        """As `Client.advertise`."""
        self._run(self._client.advertise(advertisement, space=space))

    def unadvertise(self, advertisement: str | Advertisement, *, space: str | None = None) -> None:
        """As `Client.unadvertise`."""
        self._run(self._client.unadvertise(advertisement, space=space))

    def suspend(self) -> None:
        """As `Client.suspend`."""
        self._run(self._client.suspend())

    def resume(self) -> None:
        """As `Client.resume`."""
        self._run(self._client.resume())

    def depart(self) -> None:
        """As `Client.depart`."""
        self._run(self._client.depart())
        self._stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the client in its event loop."""
        return self._run(work)


class SyncSubscription:
    """As `Subscription`; iterate over it for its events."""

    def __init__(self, client: SyncClient, subscription: Subscription) -> None:
        self._client = client
        self._subscription = subscription

    @property
    def name(self) -> str:
        """The name under which the broker has it."""
        return self._subscription.name

    @property
    def filter(self) -> Filter:
        """The filter."""
        return self._subscription.filter

    @property
    def parameters(self) -> Mapping[str, Value]:
        """The values of the parameters."""
        return self._subscription.parameters

    @property
    def version(self) -> int:
        """The present version."""
        return self._subscription.version

    def update(self, **parameters: Any) -> None:
        """As `Subscription.update`."""
        self._client.run(self._subscription.update(**parameters))

    def change(
        self,
        filter: str | Filter | None = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """As `Subscription.change`."""
        self._client.run(self._subscription.change(filter, parameters, wait=wait))

    def cancel(self) -> None:
        """As `Subscription.cancel`."""
        self._client.run(self._subscription.cancel())

    def next(self, timeout: float | None = None) -> ReceivedEvent | None:
        """As `Subscription.next`."""
        return self._client.run(self._subscription.next(timeout))

    def next_many(self, most: int, timeout: float | None = None) -> list[ReceivedEvent]:
        """As `Subscription.next_many`."""
        return self._client.run(self._subscription.next_many(most, timeout))

    def ack(self, event: ReceivedEvent) -> None:
        """Acknowledge an event, with ``ack="manual"``."""
        self.ack_many([event])

    def ack_many(self, events: Iterable[ReceivedEvent]) -> None:
        """Acknowledge events, with ``ack="manual"``."""

        async def acknowledge() -> None:
            for event in events:
                event.ack()

        self._client.run(acknowledge())

    def __iter__(self) -> Iterator[ReceivedEvent]:
        while (event := self.next()) is not None:
            yield event


class SyncPatternSubscription:
    """As `PatternSubscription`; iterate over it for sequences."""

    def __init__(self, client: SyncClient, subscription: PatternSubscription) -> None:
        self._client = client
        self._subscription = subscription

    def cancel(self) -> None:
        """As `PatternSubscription.cancel`."""
        self._client.run(self._subscription.cancel())

    def next(self, timeout: float | None = None) -> tuple[ReceivedEvent, ...] | None:
        """As `PatternSubscription.next`."""
        return self._client.run(self._subscription.next(timeout))

    def __iter__(self) -> Iterator[tuple[ReceivedEvent, ...]]:
        while (sequence := self.next()) is not None:
            yield sequence
