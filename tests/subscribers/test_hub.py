"""The hub, with plain handlers, in one thread and in several; test_hub_async.py has event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from support.ticking import Clock
from tidegate import Cached, Hub, Lazy, Parameter, Periodic, Reckoned, Space, Subscriber, on
from tidegate.errors import (
    BadValueError,
    EventError,
    FilterError,
    QueueFullError,
    SubscriptionError,
)
from tidegate.language.events import Event
from tidegate.matching.engine import Engine
from tidegate.subscribers.attachment import Failure

TIMEOUT_S = 20


class Log(Subscriber):
    """Records the numbers of the events that it handles."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    @on("n is not null")
    def number(self, event: Event) -> None:
        self.seen.append(event["n"])


class Monitor(Subscriber):
    last_buy = Parameter(100.0)

    def __init__(self) -> None:
        self.bought: list[float] = []

    @on("firm = 'IBM' and price < :last_buy")
    def quote(self, event: Event) -> None:
        self.bought.append(event["price"])
        self.last_buy = event["price"]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def hub(clock: Clock) -> Hub:
    return Hub(Engine(clock=clock))


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Call a function in several threads that start together."""
    start = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        start.wait(TIMEOUT_S)
        try:
            work(number)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(each,), daemon=True) for each in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
    for error in errors:
        raise error


# -- in one thread ----------------------------------------------------------------------------


def test_a_handler_changes_its_own_filter(hub: Hub) -> None:
    monitor = hub.attach(Monitor())
    for price in [99.0, 99.5, 98.0, 98.0, 120.0, 97.5]:
        hub.publish_now({"firm": "IBM", "price": price})
        hub.publish_now({"firm": "SUN", "price": 1.0})
    assert monitor.bought == [99.0, 98.0, 97.5]
    assert hub.updates == 3


def test_an_assignment_holds_for_every_later_event(hub: Hub) -> None:
    monitor = hub.attach(Monitor())
    monitor.last_buy = 10
    hub.publish_now({"firm": "IBM", "price": 50})
    monitor.last_buy = 60
    hub.publish_now({"firm": "IBM", "price": 50})
    monitor.last_buy = None
    hub.publish_now({"firm": "IBM", "price": 1})
    assert monitor.bought == [50]


def test_each_subscriber_has_its_own_values(hub: Hub) -> None:
    first, second = hub.attach(Monitor()), hub.attach(Monitor())
    second.last_buy = 50
    hub.publish_now({"firm": "IBM", "price": 60})
    hub.publish_now({"firm": "IBM", "price": 40})
    assert (first.bought, second.bought) == ([60, 40], [40])


def test_a_filter_with_alternatives_is_one_handler(hub: Hub) -> None:
    class Either(Log):
        @on("n > 0 or n > 1 or n in (1, 2, 3)")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])

    either = hub.attach(Either())
    hub.publish_now({"n": 2})
    assert either.seen == [2]


def test_time_and_variables_are_those_of_the_event(hub: Hub, clock: Clock) -> None:
    class Moving(Log):
        @on("x between -3 + t and 3 + t and y < @load and sent <= now()")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            assert event.time == clock.now

    moving = hub.attach(Moving())
    hub.engine.set_variables(load=5)
    sent = clock.now + timedelta(seconds=10)
    hub.publish_now({"n": 0, "x": 10, "y": 1, "sent": sent})
    clock.wait(10)
    hub.publish_now({"n": 1, "x": 10, "y": 1, "sent": sent})
    hub.publish_now({"n": 2, "x": 10, "y": 6, "sent": sent})
    clock.wait(10)
    hub.publish_now({"n": 3, "x": 10, "y": 1, "sent": sent})
    hub.publish_now({"n": 4, "x": 20, "y": 1, "sent": sent})
    assert moving.seen == [1, 4]


def test_an_event_may_bring_its_own_time(hub: Hub, clock: Clock) -> None:
    class Moving(Log):
        @on("x between -1 + t and 1 + t")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])

    moving = hub.attach(Moving())
    then = clock.now + timedelta(seconds=5)
    hub.publish_now({"n": 1, "x": 5})
    hub.publish_now({"n": 2, "x": 5}, time=then)
    hub.publish_now(Event.of({"n": 3, "x": 5}, then))
    assert moving.seen == [2, 3]


def test_what_a_handler_publishes_is_handled_after_earlier_events(hub: Hub) -> None:
    class Echo(Log):
        @on("n < 10")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            hub.publish_now({"n": event["n"] + 10})
            hub.publish_now({"n": event["n"] + 5})
            assert log.seen[-1:] != [event["n"] + 10]

    echo, log = hub.attach(Echo()), hub.attach(Log())
    hub.publish_now({"n": 4})
    assert echo.seen == [4, 9]
    assert log.seen == [4, 14, 9, 19, 14]


def test_a_long_chain_of_handlers_does_not_nest(hub: Hub) -> None:
    class Link(Subscriber):
        number = Parameter()

        @on("n = :number")
        def pass_on(self, event: Event) -> None:
            hub.publish_now({"n": event["n"] + 1})

    for number in range(1500):
        link = Link()
        link.number = number
        hub.attach(link)
    log = hub.attach(Log())
    hub.publish_now({"n": 0})
    assert log.seen == list(range(1501))


def test_events_are_refused_as_the_engine_refuses_them(hub: Hub) -> None:
    hub.attach(Log())
    with pytest.raises(EventError, match="'n'"):
        hub.publish_now({"n": [1]})


# -- attaching and detaching ------------------------------------------------------------------


def test_attach_and_detach(hub: Hub) -> None:
    log = Log()
    with pytest.raises(SubscriptionError, match="this Log is not attached to this hub"):
        hub.detach(log)
    assert hub.attach(log) is log
    with pytest.raises(SubscriptionError, match="this Log is already attached"):
        hub.attach(log)
    hub.publish_now({"n": 1})
    hub.detach(log)
    hub.publish_now({"n": 2})
    hub.attach(log)
    hub.publish_now({"n": 3})
    assert log.seen == [1, 3]
    hub.detach(log)
    assert len(hub.engine) == 0


def test_two_hubs(hub: Hub) -> None:
    other = Hub(Engine(matcher="naive"))
    monitor = hub.attach(Monitor())
    with pytest.raises(SubscriptionError, match="already attached"):
        other.attach(monitor)
    with pytest.raises(SubscriptionError, match="not attached to this hub"):
        other.detach(monitor)
    other.publish_now({"firm": "IBM", "price": 99})
    hub.publish_now({"firm": "IBM", "price": 98})
    hub.detach(monitor)
    other.attach(monitor)
    hub.publish_now({"firm": "IBM", "price": 97})
    other.publish_now({"firm": "IBM", "price": 99})
    other.publish_now({"firm": "IBM", "price": 96})
    assert monitor.bought == [98, 96]


def test_handlers_of_two_hubs_may_publish_to_each_other(hub: Hub) -> None:
    other = Hub(Engine(matcher="naive"))

    class Back(Log):
        to: Hub

        @on("n < 3")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            self.to.publish_now({"n": event["n"] + 1})

    here, there = hub.attach(Back()), other.attach(Back())
    here.to, there.to = other, hub
    hub.publish_now({"n": 0})
    assert (here.seen, there.seen) == ([0, 2], [1])


def test_a_handler_may_detach_its_subscriber(hub: Hub) -> None:
    class Once(Log):
        @on("n is not null")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            hub.publish_now({"n": 5})
            hub.detach(self)

    once = hub.attach(Once())
    hub.publish_now({"n": 1})
    hub.publish_now({"n": 2})
    assert once.seen == [1]


# -- errors -----------------------------------------------------------------------------------


class Broken(Log):
    @on("n is not null")
    def number(self, event: Event) -> None:
        self.seen.append(event["n"])
        if event["n"] == 1:
            raise ValueError("one")
        if event["n"] == 2:
            raise KeyboardInterrupt


def test_an_exception_of_a_handler_goes_to_on_error() -> None:
    failures: list[Failure] = []
    hub = Hub(on_error=failures.append)
    broken, log = hub.attach(Broken()), hub.attach(Log())
    hub.publish_now({"n": 1})
    hub.publish_now({"n": 0})
    assert [(each.subscriber, each.handler, str(each.error)) for each in failures] == [
        (broken, "number", "one")
    ]
    assert broken.seen == log.seen == [1, 0]


def test_an_interrupt_reaches_the_publisher(hub: Hub) -> None:
    broken, log = hub.attach(Broken()), hub.attach(Log())
    with pytest.raises(KeyboardInterrupt):
        hub.publish_now({"n": 2})
    hub.publish_now({"n": 3})
    assert broken.seen == log.seen == [2, 3]  # nothing was lost


def test_what_a_handler_publishes_is_refused_where_it_would_have_to_wait() -> None:
    failures: list[Failure] = []
    hub = Hub(waiting_max=2, on_error=failures.append)

    class Rabbit(Log):
        @on("n = 0")
        def number(self, _: Event) -> None:
            for child in range(1, 4):
                hub.publish_now({"n": child})
                self.seen.append(child)

    rabbit, log = hub.attach(Rabbit()), hub.attach(Log())
    hub.publish_now({"n": 0})
    assert rabbit.seen == [1]  # the mother still waits too
    assert log.seen == [0, 1]
    (failure,) = failures
    assert isinstance(failure.error, QueueFullError)
    assert "2 events wait for Log, and the publisher cannot wait: it is a" in str(failure.error)


def test_a_wrong_limit_is_refused() -> None:
    with pytest.raises(BadValueError, match="waiting_max must be at least 1, not 0"):
        Hub(waiting_max=0)


# -- in several threads -----------------------------------------------------------------------


def test_the_last_value_of_each_parameter_wins(hub: Hub) -> None:
    class Pair(Log):
        a = Parameter(-1)
        b = Parameter(-1)

        @on("x = :a")
        def one(self, event: Event) -> None:
            self.seen.append(event["x"])

        @on("y = :b")
        def two(self, event: Event) -> None:
            self.seen.append(-event["y"])

    pair = hub.attach(Pair())

    def assign(number: int) -> None:
        for step in range(300):
            if number % 2:
                pair.a = 1000 * number + step
            else:
                pair.b = 1000 * number + step
            if number == 3 and step % 10 == 0:
                hub.publish_now({"x": -5})

    in_threads(6, assign)
    hub.publish_now({"x": pair.a})
    hub.publish_now({"y": pair.b})
    assert pair.seen == [pair.a, -pair.b]


def test_every_event_is_handled_once_and_in_the_order_of_its_publisher(hub: Hub) -> None:
    busy = threading.Lock()

    class Careful(Log):
        @on("n is not null")
        def number(self, event: Event) -> None:
            assert busy.acquire(blocking=False)  # no other thread is in here
            self.seen.append(event["n"])
            busy.release()

    failures: list[Failure] = []
    hub = Hub(hub.engine, waiting_max=5, on_error=failures.append)
    careful, log = hub.attach(Careful()), hub.attach(Log())

    def publish(number: int) -> None:
        for step in range(200):
            hub.publish_now({"n": 1000 * number + step})

    in_threads(4, publish)
    assert failures == []
    assert len(careful.seen) == len(log.seen) == 800
    assert careful.seen == log.seen  # all see the same order
    for number in range(4):
        own = range(1000 * number, 1000 * number + 200)
        assert [each for each in careful.seen if each in own] == list(own)


def test_no_more_events_wait_than_may(hub: Hub) -> None:
    hub = Hub(hub.engine, waiting_max=3)
    published = [0] * 4
    waiting: list[int] = []

    class Slow(Log):
        @on("n is not null")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            waiting.append(sum(published) - len(self.seen))

    slow = hub.attach(Slow())

    def publish(number: int) -> None:
        for n in range(200):
            published[number] += 1
            hub.publish_now({"n": n})

    in_threads(4, publish)
    assert len(slow.seen) == 800
    assert max(waiting) <= 3 + 4  # and one of each publisher


def test_a_publisher_waits_for_a_subscriber_that_is_behind(hub: Hub) -> None:
    hub = Hub(hub.engine, waiting_max=1)
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Log):
        @on("n is not null")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            if event["n"] == 0:
                begun.set()
                assert go_on.wait(TIMEOUT_S)

    async def wait_until_waiting(count: int) -> None:
        """Inside an event loop a publisher cannot wait, and the refusal has the count."""
        while True:
            with pytest.raises(QueueFullError) as caught:
                hub.publish_now({"n": -1})
            if str(caught.value).startswith(f"{count} events wait for Slow"):
                return
            await asyncio.sleep(0)

    slow = hub.attach(Slow())
    first = threading.Thread(target=hub.publish_now, args=({"n": 0},))
    first.start()
    assert begun.wait(TIMEOUT_S)
    hub.publish_now({"n": 1})  # there is room for one
    second = threading.Thread(target=hub.publish_now, args=({"n": 2},))
    second.start()
    asyncio.run(asyncio.wait_for(wait_until_waiting(2), TIMEOUT_S))
    assert slow.seen == [0]
    assert second.is_alive()
    go_on.set()
    first.join(TIMEOUT_S)
    second.join(TIMEOUT_S)
    assert slow.seen == [0, 1, 2]


def test_handlers_that_publish_to_each_other_do_not_lock_up(hub: Hub) -> None:
    class Ping(Log):
        wanted = Parameter()

        @on("to = :wanted and n > 0")
        def number(self, event: Event) -> None:
            self.seen.append(event["n"])
            hub.publish_now({"to": 1 - event["to"], "n": event["n"] - 1})

    sides = [hub.attach(Ping()), hub.attach(Ping())]
    for number, side in enumerate(sides):
        side.wanted = number
    in_threads(2, lambda number: hub.publish_now({"to": number, "n": 100}))
    assert sum(len(side.seen) for side in sides) == 200


def test_attaching_and_detaching_while_others_publish(hub: Hub) -> None:
    steady = hub.attach(Log())

    def work(number: int) -> None:
        for step in range(100):
            if number < 2:
                hub.publish_now({"n": step})
            else:
                other = hub.attach(Monitor())
                other.last_buy = step
                hub.publish_now({"firm": "IBM", "price": step - 1})
                hub.detach(other)

    in_threads(4, work)
    assert len(steady.seen) == 200
    assert len(hub.engine) == 1


def test_a_place_that_is_reported_often_is_sent_seldom(hub: Hub, clock: Clock) -> None:
    class Car(Log):
        place = Reckoned(0.0, tolerance=5)

        @on("x between :place - 1 and :place + 1")
        def near(self, event: Event) -> None:
            self.seen.append(event["x"])

    car = hub.attach(Car())
    for step in range(2000):
        clock.wait(0.1)
        car.place = step * 2.0
        hub.publish_now({"x": step * 2.0 + step % 3})
    assert car.seen == [step * 2.0 + step % 3 for step in range(2000) if step % 3 < 2]
    assert hub.updates < 10


# -- evolving filters -------------------------------------------------------------------------


class Player(Subscriber):
    """Has the same evolving filter in each evolve mode."""

    reach = Parameter(3.0)

    def __init__(self) -> None:
        self.seen: list[tuple[str, float]] = []

    @on("x between -:reach + t and :reach + t")
    def always(self, event: Event) -> None:
        self.seen.append(("always", event["x"]))

    @on("x between -:reach + t and :reach + t", evolve=Lazy())
    def lazily(self, event: Event) -> None:
        self.seen.append(("lazily", event["x"]))

    @on("x between -:reach + t and :reach + t", evolve=Periodic(1.0))
    def each_second(self, event: Event) -> None:
        self.seen.append(("each second", event["x"]))

    @on("x between -:reach + t and :reach + t", evolve=Cached(1.0))
    def now_and_then(self, event: Event) -> None:
        self.seen.append(("now and then", event["x"]))


def test_handlers_are_checked_as_of_the_time_their_filters_were_evaluated(
    hub: Hub, clock: Clock
) -> None:
    player = hub.attach(Player())

    def seen_at(seconds: float, x: float) -> list[str]:
        player.seen.clear()
        hub.publish_now({"x": x}, time=start + timedelta(seconds=seconds))
        assert {each for _, each in player.seen} <= {x}
        return [name for name, _ in player.seen]

    start = clock()
    assert start is not None
    exact, cached = ["always", "lazily"], ["now and then"]
    assert seen_at(0.75, 3.5) == [*exact, *cached]  # and the periodic one is as of 0
    assert seen_at(1.5, 4.4) == exact  # 1 and 0.75
    assert seen_at(1.6, -2.0) == ["each second", "now and then"]
    assert seen_at(1.8, 4.8) == [*exact, "now and then"]  # which has a new version
    assert seen_at(2.0, 4.9) == [*exact, "each second"]


def test_a_changed_parameter_makes_a_new_version(hub: Hub, clock: Clock) -> None:
    player = hub.attach(Player())
    start = clock()
    assert start is not None
    hub.publish_now({"x": 2.5}, time=start)
    assert len(player.seen) == 4
    player.reach = 1.0
    player.seen.clear()
    hub.publish_now({"x": 1.4}, time=start + timedelta(seconds=0.5))
    assert [name for name, _ in player.seen] == ["always", "lazily", "now and then"]


# -- in a space -----------------------------------------------------------------------------------


class Cheap(Subscriber):
    limit = Parameter(10.0)
    near = Parameter(0.0, damping=1.0)

    def __init__(self) -> None:
        self.seen: list[float] = []

    @on("price < :limit and place between :near - 5 and :near + 5")
    def quote(self, event: Event) -> None:
        self.seen.append(event["price"])


def in_space(**attributes: type) -> Hub:
    return Hub(Engine(space=Space("trades", attributes)))


def test_a_subscriber_that_does_not_fit_the_space_is_not_attached() -> None:
    hub, cheap = in_space(prize=float, place=float), Cheap()
    with pytest.raises(FilterError) as raised:
        hub.attach(cheap)
    assert str(raised.value) == (
        "Cheap.quote: space 'trades' has no attribute 'price' (did you mean 'prize'?)\n"
        "  price < :limit and place between :near - 5 and :near + 5\n"
        "  ^^^^^"
    )
    assert len(hub.engine) == 0
    assert hub.engine.space is not None
    hub.engine.space.add({"price": float})
    hub.attach(cheap)
    hub.publish_now({"price": 9, "place": 1})
    assert cheap.seen == [9]


def test_a_handler_is_checked_as_it_was_written() -> None:
    class Careless(Subscriber):
        @on("true or prize < 10")
        def quote(self, event: Event) -> None: ...

    with pytest.raises(FilterError, match=r"Careless\.quote: space 'trades' has no attribute"):
        in_space(price=float).attach(Careless())


def test_a_value_that_does_not_fit_the_space_is_not_assigned() -> None:
    hub = in_space(price=float, place=float)
    cheap = hub.attach(Cheap())
    with pytest.raises(FilterError, match="not :limit, a string"):
        cheap.limit = "low"
    with pytest.raises(FilterError, match="not :limit, a boolean"):
        cheap.set(limit=True, near=100.0)
    assert (cheap.limit, cheap.near, hub.updates) == (10.0, 0.0, 0)
    hub.publish_now({"price": 9, "place": 1})
    cheap.limit = 5
    hub.publish_now({"price": 9, "place": 1})
    assert cheap.seen == [9]
    hub.detach(cheap)
    cheap.limit = "low"  # no space speaks against it now
    with pytest.raises(FilterError):
        hub.attach(cheap)


def test_an_event_that_does_not_fit_the_space_is_not_published() -> None:
    hub = in_space(price=float, place=float)
    cheap = hub.attach(Cheap())
    with pytest.raises(EventError, match="not the string '9'"):
        hub.publish_now({"price": "9", "place": 1})
    with pytest.raises(EventError, match="has no attribute 'prize'"):
        asyncio.run(hub.publish({"prize": 9, "place": 1}))
    assert cheap.seen == []
