"""The rules of connections, for every implementation and matcher."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from support.ticking import Clock
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.engine import Engine
from tidegate.subscribers.connection import ALWAYS, Connection, Handle, Request
from tidegate.subscribers.engine_connection import EngineConnection
from tidegate.subscribers.mailbox import Delivery, Mailbox


class NullHandler:
    """Handles nothing; the tests look at the deliveries."""

    def handle(self, _: Delivery) -> None: ...

    async def handle_async(self, _: Delivery) -> None: ...


@dataclass
class RecordingEnd:
    """Records the times for which it has to renew its values."""

    mailbox: Mailbox = field(default_factory=lambda: Mailbox("R", NullHandler(), 1000))
    renewed: list[float] = field(default_factory=list)
    on_renew: Callable[[float], None] = lambda _: None

    def renew(self, t: float) -> None:
        self.renewed.append(t)
        self.on_renew(t)


@dataclass
class ConnectionFixture:
    """A connection, its clock, and the function that matches an event."""

    connection: Connection
    publish: Callable[[Event], list[tuple[Mailbox, Delivery]]]
    clock: Clock

    def matched(self, **attributes: object) -> tuple[int, ...]:
        """The numbers of the requests that an event of now matches."""
        deliveries = self.publish(Event.of(attributes))
        return deliveries[0][1].matched if deliveries else ()


@pytest.fixture(params=["columnar", "naive", "poset"])
def fixture(request: pytest.FixtureRequest) -> ConnectionFixture:
    clock = Clock()
    connection = EngineConnection(Engine(matcher=request.param, clock=clock))
    return ConnectionFixture(connection, connection.match, clock)


def requests(*texts: str) -> list[Request]:
    return [Request(parse(text)) for text in texts]


def test_an_event_is_delivered_once_with_all_requests_it_matches(
    fixture: ConnectionFixture,
) -> None:
    subscriber_end = RecordingEnd()
    wanted = requests("x = 2", "x > 0 or y > 0 or x > 1", "x < :high", "z = 1")
    fixture.connection.subscribe(wanted, {"high": 5}, subscriber_end)
    other = RecordingEnd()
    fixture.connection.subscribe(requests("y = 1"), {}, other)
    fixture.clock.wait(1.5)
    ((mailbox, delivery),) = fixture.publish(Event.of({"x": 1, "y": 0}))
    assert mailbox is subscriber_end.mailbox
    assert delivery.matched == (1, 2)
    assert delivery.event["x"] == 1
    assert delivery.event.time == fixture.clock.now
    assert delivery.environments[0].t == 1.5
    assert delivery.environments[0].now == fixture.clock.now
    assert [mailbox for mailbox, _ in fixture.publish(Event.of({"y": 1}))] == [
        subscriber_end.mailbox, other.mailbox
    ]  # fmt: skip


def test_updates_take_effect_in_order_for_all_requests_that_use_them(
    fixture: ConnectionFixture,
) -> None:
    wanted = requests("x < :high", "x between :low and :high", "x > :low")
    handle = fixture.connection.subscribe(wanted, {"low": 0, "high": None}, RecordingEnd())
    assert fixture.matched(x=1) == (2,)
    handle.update({"high": 5})
    assert fixture.matched(x=1) == (0, 1, 2)
    handle.update({"high": 1})
    handle.update({"low": 3, "high": 4})
    handle.update({"high": 9})
    assert fixture.matched(x=8) == (0, 1, 2)
    assert fixture.matched(x=2) == (0,)
    handle.update({"low": None})
    assert fixture.matched(x=8) == (0,)


def test_time_counts_from_the_subscription(fixture: ConnectionFixture) -> None:
    fixture.clock.wait(100)
    handle = fixture.connection.subscribe(requests("x > :speed * t"), {"speed": 1}, RecordingEnd())
    fixture.clock.wait(2)
    assert handle.t() == 2
    assert fixture.matched(x=2.5) == (0,)
    handle.update({"speed": 2})  # which does not restart t
    assert fixture.matched(x=2.5) == ()
    later = Event.of({"x": 7}, fixture.clock.now)
    fixture.clock.wait(100)
    ((_, delivery),) = fixture.publish(later)
    assert delivery.environments[0].t == 2
    assert delivery.event.time == later.time


def test_nothing_matches_after_cancel(fixture: ConnectionFixture) -> None:
    handle = fixture.connection.subscribe(requests("x = 1", "x = 2"), {}, RecordingEnd())
    handle.update({}, (0, 1))
    handle.cancel()
    fixture.clock.wait(5)
    assert fixture.matched(x=1) == ()


def test_values_are_renewed_before_an_event_outside_of_their_span_is_matched(
    fixture: ConnectionFixture,
) -> None:
    def renew(t: float) -> None:
        handle.update({"limit": 100}, (t, math.inf))

    subscriber_end = RecordingEnd(on_renew=renew)
    handle: Handle = fixture.connection.subscribe(
        requests("x < :limit"), {"limit": 1}, subscriber_end
    )
    handle.update({}, (0.0, 1.0))
    fixture.clock.wait(1)
    assert fixture.matched(x=50) == ()
    fixture.clock.wait(0.5)
    assert fixture.matched(x=50) == (0,)
    assert subscriber_end.renewed == [1.5]
    fixture.publish(Event.of({"x": 1}, fixture.clock.now))
    assert subscriber_end.renewed == [1.5]
    handle.update({"limit": 3}, ALWAYS)
    fixture.clock.wait(100)
    assert fixture.matched(x=50) == ()
    assert subscriber_end.renewed == [1.5]


def test_values_are_renewed_for_an_event_of_the_past_too(fixture: ConnectionFixture) -> None:
    subscriber_end = RecordingEnd()
    handle = fixture.connection.subscribe(requests("x < :limit"), {"limit": 1}, subscriber_end)
    past = Event.of({"x": 0}, fixture.clock.now)
    subscriber_end.on_renew = lambda _: handle.update({"limit": 2}, ALWAYS)
    fixture.clock.wait(5)
    handle.update({}, (4.0, 6.0))
    fixture.publish(past)
    assert subscriber_end.renewed == [0.0]


def test_no_event_sees_half_of_an_update(fixture: ConnectionFixture) -> None:
    """One thread moves both limits at once; an event lies below both or above both."""
    wanted = requests("x >= :low", "x >= :high")
    handle = fixture.connection.subscribe(wanted, {"low": 0, "high": 0}, RecordingEnd())
    stop = threading.Event()

    def move() -> None:
        limit = 0
        while not stop.is_set():
            limit = 1 - limit
            handle.update({"low": limit, "high": limit})

    thread = threading.Thread(target=move)
    thread.start()
    matched = {fixture.matched(x=0) for _ in range(1000)}
    stop.set()
    thread.join()
    assert matched <= {(), (0, 1)}
