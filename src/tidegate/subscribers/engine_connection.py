"""A connection to an engine in the same process.

Rules. (1) ``subscribe``, ``remove`` and ``match`` are called by one thread at a time. The hub calls
them under its lock, which therefore also protects the table of handles. (2) ``update`` may be
called by any thread at any time; what it changes is protected by the lock in here.

Locks are taken in this order: the hub's, the one of a subscriber's parameter values, and last the
one in here. Nothing that takes another lock is called while it is held. In particular, ``renew``
takes the lock of the values and then comes back here through ``update``; under this lock it would
deadlock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.language.events import Event
from tidegate.language.evolve import Cached, Periodic
from tidegate.language.expressions import Environment
from tidegate.language.values import Value, from_us
from tidegate.matching.engine import Engine, EngineSubscription
from tidegate.matching.subscription import Moment
from tidegate.subscribers.connection import ALWAYS, Request, SubscriberEnd, TimeSpan
from tidegate.subscribers.mailbox import Delivery, Mailbox


class EngineConnection:
    """Subscribes to an engine on behalf of subscribers.

    Updates are kept until the next event. It is the first that could see them, so of a burst of
    updates only the last value of each parameter is written to the engine.
    """

    def __init__(self, engine: Engine) -> None:
        self.updates = 0
        """The number of updates received."""
        self._engine = engine
        self._lock = threading.Lock()
        self._handles: dict[str, tuple[EngineHandle, int]] = {}
        """By id of a subscription: the subscriber's handle, and which of its requests this is."""
        self._updated: dict[int, EngineHandle] = {}
        """Handles with pending values."""
        self._with_span: dict[int, EngineHandle] = {}
        """Handles whose values are right for a limited span of time only."""

    def subscribe(
        self,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        subscriber_end: SubscriberEnd,
    ) -> EngineHandle:
        """Subscribe for all handlers of a subscriber, or, if one filter is refused, for none."""
        since_us = self._engine.moment().time_us
        handle = EngineHandle(self, subscriber_end, since_us)
        try:
            for request in requests:
                handle.subscriptions.append(self._subscription(request, values, since_us))
        except BaseException:
            _cancel(handle.subscriptions)
            raise
        for index, subscription in enumerate(handle.subscriptions):
            self._handles[subscription.id] = (handle, index)
        handle.parameters = [frozenset(request.filter.parameters) for request in requests]
        handle.is_pinned = [isinstance(each.evolve, Periodic | Cached) for each in requests]
        return handle

    def _subscription(
        self, request: Request, values: Mapping[str, Value | None], since_us: int | None
    ) -> EngineSubscription:
        used = {name: values.get(name) for name in request.filter.parameters}
        evolve: dict[str, Any] = {} if request.evolve is None else {"evolve": request.evolve}
        since = None if since_us is None else from_us(since_us)
        return self._engine.subscribe(request.filter, since=since, parameters=used, **evolve)

    # -- updates ------------------------------------------------------------------------------

    def elapsed_s(self, since_us: int | None) -> float:
        """Seconds since a time, by the clock of the engine."""
        return _elapsed_s(self._engine.moment(), since_us)

    def update(
        self, handle: EngineHandle, values: Mapping[str, Value | None], span: TimeSpan
    ) -> None:
        """Keep values until the next event."""
        with self._lock:
            handle.span = span
            if span == ALWAYS:
                self._with_span.pop(id(handle), None)
            else:
                self._with_span[id(handle)] = handle
            if values:
                self.updates += 1
                handle.pending.update(values)
                self._updated[id(handle)] = handle

    def remove(self, handle: EngineHandle) -> None:
        """End the subscriptions of a subscriber."""
        with self._lock:
            self._updated.pop(id(handle), None)
            self._with_span.pop(id(handle), None)
        for subscription in handle.subscriptions:
            del self._handles[subscription.id]
        _cancel(handle.subscriptions)

    # -- events -------------------------------------------------------------------------------

    def match(self, event: Event) -> list[tuple[Mailbox, Delivery]]:
        """Write pending updates, then match an event; returns a delivery for each subscriber."""
        moment = self._engine.moment(event)
        self._write_updates(moment)
        if event.time is None and moment.time_us is not None:
            event = Event(event.attributes, from_us(moment.time_us))
        matched: dict[int, tuple[EngineHandle, list[int]]] = {}
        for id_ in self._engine.match_at(event, moment):
            if id_ in self._handles:  # others may subscribe at the same engine
                handle, index = self._handles[id_]
                matched.setdefault(id(handle), (handle, []))[1].append(index)
        return [
            (handle.subscriber_end.mailbox, self._delivery(event, moment, handle, sorted(indexes)))
            for handle, indexes in matched.values()
        ]

    def _delivery(
        self, event: Event, moment: Moment, handle: EngineHandle, indexes: list[int]
    ) -> Delivery:
        exact = _environment(moment, handle.since_us)
        environments = (
            self._pinned_environment(handle.subscriptions[index], moment)
            if handle.is_pinned[index]
            else exact
            for index in indexes
        )
        return Delivery(event, tuple(indexes), tuple(environments))

    def _pinned_environment(self, subscription: EngineSubscription, moment: Moment) -> Environment:
        """The time and variables as of which a Periodic or Cached filter was evaluated."""
        environment = self._engine.get(subscription.id).environment(moment)
        return replace(environment, parameters={})

    def _write_updates(self, moment: Moment) -> None:
        """Bring the engine up to date for an event of a moment."""
        # An assignment in another thread may send another band while one is renewed. So the spans
        # are checked again until all are right, in the critical section that takes the values.
        while outdated := self._outdated(moment):
            for handle in outdated:
                handle.subscriber_end.renew(_elapsed_s(moment, handle.since_us))

    def _outdated(self, moment: Moment) -> list[EngineHandle]:
        """The handles whose span does not include a moment; without any, writes all updates."""
        with self._lock:
            outdated = [
                handle
                for handle in self._with_span.values()
                if not handle.span[0] <= _elapsed_s(moment, handle.since_us) <= handle.span[1]
            ]
            if outdated:
                return outdated
            updated = [(handle, handle.pending) for handle in self._updated.values()]
            self._updated.clear()
            for handle, _ in updated:
                handle.pending = {}
        for handle, values in updated:
            for subscription, names in zip(handle.subscriptions, handle.parameters, strict=True):
                used = {name: value for name, value in values.items() if name in names}
                if used:
                    subscription.update(used)
        return []


@dataclass(eq=False)
class EngineHandle:
    """The subscriptions of one subscriber at an engine, in the order of its requests."""

    connection: EngineConnection
    subscriber_end: SubscriberEnd
    since_us: int | None
    """When the subscriptions began; None without a clock."""
    subscriptions: list[EngineSubscription] = field(default_factory=list)
    parameters: list[frozenset[str]] = field(default_factory=list)
    """The names of the parameters that each filter uses."""
    is_pinned: list[bool] = field(default_factory=list)
    """Whether each filter is evaluated as of an earlier time than that of the event."""
    pending: dict[str, Value | None] = field(default_factory=dict)
    """The values to write before the next event."""
    span: TimeSpan = ALWAYS
    """The span of time for which the values are right."""

    def t(self) -> float:
        """Seconds since the subscriptions began."""
        return self.connection.elapsed_s(self.since_us)

    def update(self, values: Mapping[str, Value | None], span: TimeSpan = ALWAYS) -> None:
        """Change parameters before the next event."""
        self.connection.update(self, values, span)

    def cancel(self) -> None:
        """End the subscriptions."""
        self.connection.remove(self)


def _elapsed_s(moment: Moment, since_us: int | None) -> float:
    if moment.time_us is None or since_us is None:
        return 0.0
    return (moment.time_us - since_us) / 1e6


def _environment(moment: Moment, since_us: int | None) -> Environment:
    now = None if moment.time_us is None else from_us(moment.time_us)
    return Environment({}, moment.variables, _elapsed_s(moment, since_us), now)


def _cancel(subscriptions: Iterable[EngineSubscription]) -> None:
    for subscription in subscriptions:
        subscription.cancel()
