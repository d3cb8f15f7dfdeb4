"""A subscriber at a connection: what is sent for it, and how what comes back is handled.

This is the client of Parametric Subscriptions, figure 5: a change of a value is sent as an update,
and an event is checked once more, with the values as they are, right before a handler is called.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.expressions import as_float
from tidegate.language.semantics import holds
from tidegate.language.values import Value
from tidegate.subscribers.connection import ALWAYS, Connection, Handle, Request, TimeSpan
from tidegate.subscribers.dead_reckoning import Track
from tidegate.subscribers.mailbox import Delivery, Mailbox, running_loop
from tidegate.subscribers.subscriber import Subscriber
from tidegate.subscribers.subscriber_plan import Handler

_log = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that came out of a handler."""

    subscriber: Subscriber
    handler: str
    event: Event
    error: Exception

    def __str__(self) -> str:
        where = f"{type(self.subscriber).__name__}.{self.handler}"
        return f"{where} failed on {dict(self.event.attributes)}: {self.error!r}"


OnError = Callable[[Failure], None]


def log_failure(failure: Failure) -> None:
    """Write what failed, and where, to the log named `tidegate`."""
    _log.error("%s", failure, exc_info=failure.error)


class Attachment:
    """Takes changes from the fields of a subscriber, and events from a connection."""

    def __init__(
        self, subscriber: Subscriber, connection: Connection, waiting_max: int, on_error: OnError
    ) -> None:
        self._subscriber = subscriber
        self._plan = subscriber._tidegate_plan
        self._fields = subscriber._tidegate_fields
        self._on_error = on_error
        self._tracks = {
            name: Track(each.band, moves=each.moves)
            for name, each in self._plan.parameters.items()
            if each.band is not None
        }
        self._sent: dict[str, Value | None] = {}
        self._span = ALWAYS
        self.mailbox = Mailbox(self._plan.owner, self, waiting_max, self._loop())
        requests = [Request(each.sent, each.evolve) for each in self._plan.handlers]
        with self._fields.lock:
            if self._fields.listener is not None:
                raise SubscriptionError(f"this {self._plan.owner} is attached already")
            values = self._news(
                {name: self._fields.values.get(name) for name in self._plan.parameters}, 0.0
            )
            self._handle: Handle = connection.subscribe(requests, values, self)
            self._fields.listener = self

    def _loop(self) -> AbstractEventLoop | None:
        if not self._plan.handlers:
            raise SubscriptionError(
                f"{self._plan.owner} handles nothing; decorate a method with `tidegate.on`"
            )
        loop = running_loop()
        if self._plan.is_async and loop is None:
            name = next(each.name for each in self._plan.handlers if each.is_async)
            raise SubscriptionError(
                f"{self._plan.owner}.{name} is async; attach it where an event loop runs"
            )
        return loop if self._plan.is_async else None

    def close(self) -> None:
        """End the subscriptions; what has not been handled yet is dropped."""
        with self._fields.lock:
            self._fields.listener = None
            self._handle.cancel()
        self.mailbox.close()

    # -- changes ------------------------------------------------------------------------------

    def changed(self, values: Mapping[str, Value | None]) -> None:
        """Send what has changed; called while the lock of the fields is held."""
        self._send(self._news(values, self._handle.t()))

    def renew(self, t: float) -> None:
        """Send what no longer holds at a time."""
        with self._fields.lock:
            news: dict[str, Value | None] = {}
            for name, track in self._tracks.items():
                if track.renew(t):
                    news |= self._bounds(name, track)
            self._send(news)

    def _news(self, values: Mapping[str, Value | None], t: float) -> dict[str, Value | None]:
        """What is to be sent for values: those that are others now, and bands that failed."""
        news: dict[str, Value | None] = {}
        for name, value in values.items():
            track = self._tracks.get(name)
            if track is None:
                if name not in self._sent or not _same(self._sent[name], value):
                    news[name] = self._sent[name] = value
            elif track.report(_number(value), t) or name not in self._sent:
                self._sent[name] = value
                news |= self._bounds(name, track)
        return news

    def _bounds(self, name: str, track: Track) -> dict[str, Value | None]:
        bounds, band = self._plan.bands[name], track.band
        sent: dict[str, Value | None] = {
            bounds.low: None if band is None else band.low,
            bounds.high: None if band is None else band.high,
        }
        if bounds.rate is not None:
            sent[bounds.rate] = None if band is None else band.rate
        return sent

    def _send(self, news: Mapping[str, Value | None]) -> None:
        span = _common(track.span for track in self._tracks.values())
        if news or span != self._span:
            self._span = span
            self._handle.update(news, span)

    # -- events -------------------------------------------------------------------------------

    def handle(self, delivery: Delivery) -> None:
        """Call the handlers that an event is for; none of them is async."""
        for handler in self._due(delivery):
            try:
                getattr(self._subscriber, handler.name)(delivery.event)
            except Exception as error:  # noqa: BLE001 - handed to whoever asked for it
                self._failed(handler, delivery.event, error)

    async def handle_async(self, delivery: Delivery) -> None:
        """Call the handlers that an event is for, and await those that are async."""
        for handler in self._due(delivery):
            try:
                result = getattr(self._subscriber, handler.name)(delivery.event)
                if handler.is_async:
                    await result
            except Exception as error:  # noqa: BLE001 - handed to whoever asked for it
                self._failed(handler, delivery.event, error)

    def _due(self, delivery: Delivery) -> Iterator[Handler]:
        """The handlers whose filters match; each is asked when the one before it is through."""
        for index, seen in zip(delivery.matched, delivery.seen, strict=True):
            handler = self._plan.handlers[index]
            mine = replace(seen, parameters=self._fields.values)
            attached = self._fields.listener is self
            if attached and holds(handler.filter.node, delivery.event.attributes, mine):
                yield handler

    def _failed(self, handler: Handler, event: Event, error: Exception) -> None:
        failure = Failure(self._subscriber, handler.name, event, error)
        try:
            self._on_error(failure)
        except Exception:  # noqa: BLE001 - there is nobody else to tell
            _log.exception("on_error failed on: %s", failure)


def _number(value: Value | None) -> float | None:
    return None if as_float(value) is None else value  # type: ignore[return-value]


def _same(a: Value | None, b: Value | None) -> bool:
    return type(a) is type(b) and a == b


def _common(spans: Iterator[TimeSpan]) -> TimeSpan:
    low, high = ALWAYS
    for span in spans:
        low, high = max(low, span[0]), min(high, span[1])
    return low, high
