"""The rules of connections, for every connection that there is."""

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


class Nothing:
    """Handles nothing; the tests look at what waits."""

    def handle(self, _: Delivery) -> None: ...

    async def handle_async(self, _: Delivery) -> None: ...


@dataclass
class Receiver:
    """Notes when it is asked to renew."""

    mailbox: Mailbox = field(default_factory=lambda: Mailbox("R", Nothing(), 1000))
    asked: list[float] = field(default_factory=list)
    on_renew: Callable[[float], None] = lambda _: None

    def renew(self, t: float) -> None:
        self.asked.append(t)
        self.on_renew(t)


@dataclass
class World:
    """A connection, and a way to publish."""

    connection: Connection
    publish: Callable[[Event], list[tuple[Mailbox, Delivery]]]
    clock: Clock

    def matched(self, **attributes: object) -> tuple[int, ...]:
        """The requests that an event of now matches."""
        found = self.publish(Event.of(attributes))
        return found[0][1].matched if found else ()


@pytest.fixture(params=["columnar", "naive", "poset"])
def world(request: pytest.FixtureRequest) -> World:
    clock = Clock()
    connection = EngineConnection(Engine(matcher=request.param, clock=clock))
    return World(connection, connection.judge, clock)


def requests(*texts: str) -> list[Request]:
    return [Request(parse(text)) for text in texts]


def test_an_event_comes_once_with_all_that_it_matches(world: World) -> None:
    receiver = Receiver()
    asked = requests("x = 2", "x > 0 or y > 0 or x > 1", "x < :high", "z = 1")
    world.connection.subscribe(asked, {"high": 5}, receiver)
    other = Receiver()
    world.connection.subscribe(requests("y = 1"), {}, other)
    world.clock.wait(1.5)
    ((mailbox, delivery),) = world.publish(Event.of({"x": 1, "y": 0}))
    assert mailbox is receiver.mailbox
    assert delivery.matched == (1, 2)
    assert delivery.event["x"] == 1
    assert delivery.event.time == world.clock.now
    assert delivery.seen[0].t == 1.5
    assert delivery.seen[0].now == world.clock.now
    assert [mailbox for mailbox, _ in world.publish(Event.of({"y": 1}))] == [
        receiver.mailbox, other.mailbox
    ]  # fmt: skip


def test_changes_take_effect_in_order_for_all_requests_that_ask_for_them(world: World) -> None:
    asked = requests("x < :high", "x between :low and :high", "x > :low")
    handle = world.connection.subscribe(asked, {"low": 0, "high": None}, Receiver())
    assert world.matched(x=1) == (2,)
    handle.update({"high": 5})
    assert world.matched(x=1) == (0, 1, 2)
    handle.update({"high": 1})
    handle.update({"low": 3, "high": 4})
    handle.update({"high": 9})
    assert world.matched(x=8) == (0, 1, 2)
    assert world.matched(x=2) == (0,)
    handle.update({"low": None})
    assert world.matched(x=8) == (0,)


def test_time_counts_from_the_subscription(world: World) -> None:
    world.clock.wait(100)
    handle = world.connection.subscribe(requests("x > :speed * t"), {"speed": 1}, Receiver())
    world.clock.wait(2)
    assert handle.t() == 2
    assert world.matched(x=2.5) == (0,)
    handle.update({"speed": 2})  # which does not make it start anew
    assert world.matched(x=2.5) == ()
    later = Event.of({"x": 7}, world.clock.now)
    world.clock.wait(100)
    ((_, delivery),) = world.publish(later)
    assert delivery.seen[0].t == 2
    assert delivery.event.time == later.time


def test_nothing_comes_after_the_end(world: World) -> None:
    handle = world.connection.subscribe(requests("x = 1", "x = 2"), {}, Receiver())
    handle.update({}, (0, 1))
    handle.cancel()
    world.clock.wait(5)
    assert world.matched(x=1) == ()


def test_what_no_longer_holds_is_renewed_before_an_event_is_judged(world: World) -> None:
    def renew(t: float) -> None:
        handle.update({"limit": 100}, (t, math.inf))

    receiver = Receiver(on_renew=renew)
    handle: Handle = world.connection.subscribe(requests("x < :limit"), {"limit": 1}, receiver)
    handle.update({}, (0.0, 1.0))
    world.clock.wait(1)
    assert world.matched(x=50) == ()
    world.clock.wait(0.5)
    assert world.matched(x=50) == (0,)
    assert receiver.asked == [1.5]
    world.publish(Event.of({"x": 1}, world.clock.now))
    assert receiver.asked == [1.5]
    handle.update({"limit": 3}, ALWAYS)
    world.clock.wait(100)
    assert world.matched(x=50) == ()
    assert receiver.asked == [1.5]


def test_an_event_of_the_past_is_renewed_for_too(world: World) -> None:
    receiver = Receiver()
    handle = world.connection.subscribe(requests("x < :limit"), {"limit": 1}, receiver)
    past = Event.of({"x": 0}, world.clock.now)
    receiver.on_renew = lambda _: handle.update({"limit": 2}, ALWAYS)
    world.clock.wait(5)
    handle.update({}, (4.0, 6.0))
    world.publish(past)
    assert receiver.asked == [0.0]


def test_no_event_sees_half_of_a_change(world: World) -> None:
    """One thread moves both limits at once; an event lies below both or above both."""
    asked = requests("x >= :low", "x >= :high")
    handle = world.connection.subscribe(asked, {"low": 0, "high": 0}, Receiver())
    stop = threading.Event()

    def move() -> None:
        limit = 0
        while not stop.is_set():
            limit = 1 - limit
            handle.update({"low": limit, "high": limit})

    thread = threading.Thread(target=move)
    thread.start()
    found = {world.matched(x=0) for _ in range(1000)}
    stop.set()
    thread.join()
    assert found <= {(), (0, 1)}
