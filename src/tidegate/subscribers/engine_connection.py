"""The engine as a connection: subscribers and the matching of events in one process.

Locks are taken in this order: that of the hub, that of a subscriber's fields, and last the one in
here, under which nothing else is called.
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
    """Subscriptions of an engine on behalf of subscribers.

    Changes wait until the next event: it is the first that could see them, and of a burst of
    changes only the last value of each parameter is written. One at a time may call ``judge``.
    """

    def __init__(self, engine: Engine) -> None:
        self.updates = 0
        """How many updates were handed over."""
        self._engine = engine
        self._lock = threading.Lock()
        self._seats: dict[str, tuple[EngineHandle, int]] = {}
        self._changed: dict[int, EngineHandle] = {}
        self._moving: dict[int, EngineHandle] = {}

    def subscribe(
        self,
        requests: Sequence[Request],
        values: Mapping[str, Value | None],
        receiver: SubscriberEnd,
    ) -> EngineHandle:
        """Subscribe for all handlers of a subscriber."""
        since = self._engine.moment().time_us
        seat = EngineHandle(self, receiver, since)
        try:
            for request in requests:
                seat.subscriptions.append(self._subscription(request, values, since))
        except BaseException:
            _cancel(seat.subscriptions)
            raise
        for index, subscription in enumerate(seat.subscriptions):
            self._seats[subscription.id] = (seat, index)
        seat.names = [frozenset(request.filter.parameters) for request in requests]
        seat.is_held = [isinstance(each.evolve, Periodic | Cached) for each in requests]
        return seat

    def _subscription(
        self, request: Request, values: Mapping[str, Value | None], since: int | None
    ) -> EngineSubscription:
        asked = {name: values.get(name) for name in request.filter.parameters}
        evolve: dict[str, Any] = {} if request.evolve is None else {"evolve": request.evolve}
        time = None if since is None else from_us(since)
        return self._engine.subscribe(request.filter, since=time, parameters=asked, **evolve)

    # -- changes ------------------------------------------------------------------------------

    def now(self, since: int | None) -> float:
        """The seconds since then, by the clock of the engine."""
        return _elapsed(self._engine.moment(), since)

    def change(
        self, seat: EngineHandle, values: Mapping[str, Value | None], span: TimeSpan
    ) -> None:
        """Keep values until the next event."""
        with self._lock:
            seat.span = span
            if span == ALWAYS:
                self._moving.pop(id(seat), None)
            else:
                self._moving[id(seat)] = seat
            if values:
                self.updates += 1
                seat.waiting.update(values)
                self._changed[id(seat)] = seat

    def remove(self, seat: EngineHandle) -> None:
        """Forget a subscriber."""
        with self._lock:
            self._changed.pop(id(seat), None)
            self._moving.pop(id(seat), None)
        for subscription in seat.subscriptions:
            del self._seats[subscription.id]
        _cancel(seat.subscriptions)

    # -- events -------------------------------------------------------------------------------

    def judge(self, event: Event) -> list[tuple[Mailbox, Delivery]]:
        """Into which mailboxes an event goes, and for which handlers, in order."""
        moment = self._engine.moment(event)
        self._write_changes(moment)
        if event.time is None and moment.time_us is not None:
            event = Event(event.attributes, from_us(moment.time_us))
        found: dict[int, tuple[EngineHandle, list[int]]] = {}
        for id_ in self._engine.match_at(event, moment):
            if id_ in self._seats:
                seat, index = self._seats[id_]
                found.setdefault(id(seat), (seat, []))[1].append(index)
        return [
            (seat.receiver.mailbox, self._delivery(event, moment, seat, sorted(indexes)))
            for seat, indexes in found.values()
        ]

    def _delivery(
        self, event: Event, moment: Moment, seat: EngineHandle, indexes: list[int]
    ) -> Delivery:
        seen = _seen(moment, seat.since)
        versions = (
            self._version(seat.subscriptions[index], moment) if seat.is_held[index] else seen
            for index in indexes
        )
        return Delivery(event, tuple(indexes), tuple(versions))

    def _version(self, subscription: EngineSubscription, moment: Moment) -> Environment:
        """What a filter saw that is not evaluated at each event."""
        seen = self._engine.get(subscription.id).environment(moment)
        return replace(seen, parameters={})

    def _write_changes(self, moment: Moment) -> None:
        """Bring the engine up to date for an event of a moment."""
        while late := self._late(moment):
            for seat in late:
                seat.receiver.renew(_elapsed(moment, seat.since))

    def _late(self, moment: Moment) -> list[EngineHandle]:
        """Those whose bands do not hold at a moment; if there are none, changes are written."""
        with self._lock:
            late = [
                seat
                for seat in self._moving.values()
                if not seat.span[0] <= _elapsed(moment, seat.since) <= seat.span[1]
            ]
            if late:
                return late
            changed = [(seat, seat.waiting) for seat in self._changed.values()]
            self._changed.clear()
            for seat, _ in changed:
                seat.waiting = {}
        for seat, values in changed:
            for subscription, names in zip(seat.subscriptions, seat.names, strict=True):
                asked = {name: value for name, value in values.items() if name in names}
                if asked:
                    subscription.update(asked)
        return []


@dataclass(eq=False)
class EngineHandle:
    """The place of a subscriber at the engine."""

    connection: EngineConnection
    receiver: SubscriberEnd
    since: int | None
    subscriptions: list[EngineSubscription] = field(default_factory=list)
    names: list[frozenset[str]] = field(default_factory=list)
    is_held: list[bool] = field(default_factory=list)
    waiting: dict[str, Value | None] = field(default_factory=dict)
    span: TimeSpan = ALWAYS

    def t(self) -> float:
        """The seconds since the subscriptions began."""
        return self.connection.now(self.since)

    def update(self, values: Mapping[str, Value | None], span: TimeSpan = ALWAYS) -> None:
        """Change parameters, for the next event."""
        self.connection.change(self, values, span)

    def cancel(self) -> None:
        """End the subscriptions."""
        self.connection.remove(self)


def _elapsed(moment: Moment, since: int | None) -> float:
    return 0.0 if moment.time_us is None or since is None else (moment.time_us - since) / 1e6


def _seen(moment: Moment, since: int | None) -> Environment:
    now = None if moment.time_us is None else from_us(moment.time_us)
    return Environment({}, moment.variables, _elapsed(moment, since), now)


def _cancel(subscriptions: Iterable[EngineSubscription]) -> None:
    for subscription in subscriptions:
        subscription.cancel()
