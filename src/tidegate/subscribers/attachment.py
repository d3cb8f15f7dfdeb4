"""The attachment of a subscriber to a connection: sends its updates and calls its handlers.

This is the client of Parametric Subscriptions, figure 5.

Rules. (1) A changed parameter is sent as an update of values, never as a new filter. (2) Right
before each handler is called, the event is checked against the filter as it was written, with the
current values of the parameters.

Why the last check is made at the handler, and not earlier: the event waits in a mailbox, and values
may change meanwhile; a handler called before for the same event may change them too; and the filter
that was sent is wider than the one that was written, because only this side knows the exact value
inside of a band.

Locks. Updates are computed and handed to the connection while the lock of the subscriber's values
is held, so they leave in the order of the assignments. That lock comes after the hub's, which
``renew`` and ``close`` are called under, and before the connection's own. Handlers are called
without any lock.
"""

from __future__ import annotations

import logging
from asyncio import AbstractEventLoop
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from tidegate.errors import FilterError, SubscriptionError
from tidegate.language.events import Event
from tidegate.language.expressions import as_float
from tidegate.language.semantics import holds
from tidegate.language.spaces import Space
from tidegate.language.values import Value
from tidegate.subscribers.connection import ALWAYS, Connection, Handle, Request, TimeSpan
from tidegate.subscribers.dead_reckoning import Track
from tidegate.subscribers.mailbox import Delivery, Mailbox, running_loop
from tidegate.subscribers.subscriber import Subscriber
from tidegate.subscribers.subscriber_plan import Handler

_log = logging.getLogger("tidegate")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that a handler raised."""

    subscriber: Subscriber
    handler: str
    event: Event
    error: Exception

    def __str__(self) -> str:
        where = f"{type(self.subscriber).__name__}.{self.handler}"
        return f"{where} failed on {dict(self.event.attributes)}: {self.error!r}"


OnError = Callable[[Failure], None]


def log_failure(failure: Failure) -> None:
    """Write a failure and its traceback to the log named `tidegate`."""
    _log.error("%s", failure, exc_info=failure.error)


class Attachment:
    """Sends the values of a subscriber to a connection, and calls its handlers with deliveries."""

    def __init__(
        self,
        subscriber: Subscriber,
        connection: Connection,
        waiting_max: int,
        on_error: OnError,
        space: Space | None = None,
    ) -> None:
        self._subscriber = subscriber
        self._plan = subscriber._tidegate_plan
        self._values = subscriber._tidegate_values
        self._on_error = on_error
        self._space = space
        self._tracks = {
            name: Track(parameter.tolerance, predicts=parameter.is_predicted)
            for name, parameter in self._plan.parameters.items()
            if parameter.tolerance is not None
        }
        self._sent: dict[str, Value | None] = {}
        self._span = ALWAYS
        self.mailbox = Mailbox(self._plan.owner, self, waiting_max, self._loop_for_handlers())
        requests = [Request(each.sent_filter, each.evolve) for each in self._plan.handlers]
        # Under the lock, so that no assignment falls between the values sent with the subscription
        # and the first update.
        with self._values.lock:
            if self._values.listener is not None:
                raise SubscriptionError(f"this {self._plan.owner} is already attached")
            self.check(self._values.values)
            values = self._values_to_send(
                {name: self._values.values.get(name) for name in self._plan.parameters}, 0.0
            )
            self._handle: Handle = connection.subscribe(requests, values, self)
            self._values.listener = self

    def _loop_for_handlers(self) -> AbstractEventLoop | None:
        """The event loop for async handlers; None if all are plain."""
        if not self._plan.handlers:
            raise SubscriptionError(
                f"{self._plan.owner} has no handlers; decorate a method with `tidegate.on`"
            )
        loop = running_loop()
        if self._plan.is_async and loop is None:
            name = next(each.name for each in self._plan.handlers if each.is_async)
            raise SubscriptionError(
                f"{self._plan.owner}.{name} is async; attach its subscriber inside an event loop"
            )
        return loop if self._plan.is_async else None

    def close(self) -> None:
        """End the subscriptions; deliveries that wait are dropped."""
        with self._values.lock:
            self._values.listener = None
            self._handle.cancel()
        self.mailbox.close()

    # -- updates ------------------------------------------------------------------------------

    def check(self, values: Mapping[str, Value]) -> None:
        """Raise FilterError unless all filters fit the space with these values.

        The filters as they were written: a user knows nothing of the bands that are sent. And here
        rather than in the engine, which gets updates only with the next event, too late to refuse.
        """
        if self._space is None:
            return
        for handler in self._plan.handlers:
            try:
                self._space.check_filter(handler.filter, values, text=handler.text)
            except FilterError as error:
                reason = f"{self._plan.owner}.{handler.name}: {error.reason}"
                raise FilterError(reason, error.text, error.start, error.end) from None

    def changed(self, values: Mapping[str, Value | None]) -> None:
        """Send updates for changed values; called while the lock of the values is held."""
        self._send(self._values_to_send(values, self._handle.t()))

    def renew(self, t: float) -> None:
        """Send new bands for those that do not contain their value at ``t``."""
        with self._values.lock:
            updated: dict[str, Value | None] = {}
            for name, track in self._tracks.items():
                if track.renew(t):
                    updated |= self._band_values(name, track)
            self._send(updated)

    def _values_to_send(
        self, values: Mapping[str, Value | None], t: float
    ) -> dict[str, Value | None]:
        """The values that differ from those sent, and new bands for values that left theirs."""
        updated: dict[str, Value | None] = {}
        for name, value in values.items():
            track = self._tracks.get(name)
            if track is None:
                if name not in self._sent or not _is_same(self._sent[name], value):
                    updated[name] = self._sent[name] = value
            elif track.report(_number(value), t) or name not in self._sent:
                self._sent[name] = value
                updated |= self._band_values(name, track)
        return updated

    def _band_values(self, name: str, track: Track) -> dict[str, Value | None]:
        """The band of a parameter as values of the parameters that stand for its bounds."""
        names, band = self._plan.bands[name], track.band
        sent: dict[str, Value | None] = {
            names.low: None if band is None else band.low,
            names.high: None if band is None else band.high,
        }
        if names.rate is not None:
            sent[names.rate] = None if band is None else band.rate
        return sent

    def _send(self, updated: Mapping[str, Value | None]) -> None:
        # The span may change without a new band: a report moves the value within its band.
        span = _intersection(track.span for track in self._tracks.values())
        if updated or span != self._span:
            self._span = span
            self._handle.update(updated, span)

    # -- deliveries ---------------------------------------------------------------------------

    def handle(self, delivery: Delivery) -> None:
        """Call the handlers whose filters match an event; none of them is async."""
        for handler in self._matching_handlers(delivery):
            try:
                getattr(self._subscriber, handler.name)(delivery.event)
            except Exception as error:  # noqa: BLE001 - passed to on_error
                self._report_failure(handler, delivery.event, error)

    async def handle_async(self, delivery: Delivery) -> None:
        """Call the handlers whose filters match an event, and await those that are async."""
        for handler in self._matching_handlers(delivery):
            try:
                result = getattr(self._subscriber, handler.name)(delivery.event)
                if handler.is_async:
                    await result
            except Exception as error:  # noqa: BLE001 - passed to on_error
                self._report_failure(handler, delivery.event, error)

    def _matching_handlers(self, delivery: Delivery) -> Iterator[Handler]:
        """The handlers whose filters match with the current values (rule 2).

        This must stay a generator: a filter is checked only after the handler before it has
        returned, as that one may have changed values or detached the subscriber.
        """
        for index, environment in zip(delivery.matched, delivery.environments, strict=True):
            handler = self._plan.handlers[index]
            current = replace(environment, parameters=self._values.values)
            is_attached = self._values.listener is self
            if is_attached and holds(handler.filter.node, delivery.event.attributes, current):
                yield handler

    def _report_failure(self, handler: Handler, event: Event, error: Exception) -> None:
        failure = Failure(self._subscriber, handler.name, event, error)
        try:
            self._on_error(failure)
        except Exception:  # noqa: BLE001 - the log is the last resort
            _log.exception("on_error failed on: %s", failure)


def _number(value: Value | None) -> float | None:
    return None if as_float(value) is None else value  # type: ignore[return-value]


def _is_same(a: Value | None, b: Value | None) -> bool:
    """Whether two values are one to every filter; 1, 1.0 and True are equal in Python only."""
    return type(a) is type(b) and a == b


def _intersection(spans: Iterator[TimeSpan]) -> TimeSpan:
    start, end = ALWAYS
    for span in spans:
        start, end = max(start, span[0]), min(end, span[1])
    return start, end
