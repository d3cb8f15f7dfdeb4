from __future__ import annotations

import logging

import pytest

from support.recorded_connection import RecordedConnection
from tidegate.errors import SubscriptionError
from tidegate.language.events import Event
from tidegate.language.evolve import Periodic
from tidegate.language.filters import parse
from tidegate.subscribers.attachment import Attachment, Failure, log_failure
from tidegate.subscribers.connection import ALWAYS, Request
from tidegate.subscribers.handlers import on
from tidegate.subscribers.parameters import Parameter, Reckoned
from tidegate.subscribers.subscriber import Subscriber


class Monitor(Subscriber):
    last_buy = Parameter(100.0)
    other = Parameter()

    def __init__(self) -> None:
        self.bought: list[float] = []

    @on("price < :last_buy")
    def quote(self, event: Event) -> None:
        self.bought.append(event["price"])
        self.last_buy = event["price"]


class Car(Subscriber):
    place = Reckoned(0.0, tolerance=3)
    speed = Parameter(10.0, damping=2)

    def __init__(self) -> None:
        self.seen: list[float] = []

    @on("x between :place - 1 and :place + 1")
    def near(self, event: Event) -> None:
        self.seen.append(event["x"])

    @on("y > :speed + t")
    def fast(self, event: Event) -> None:
        self.seen.append(event["y"])


@pytest.fixture
def connection() -> RecordedConnection:
    return RecordedConnection()


def attach(subscriber: Subscriber, connection: RecordedConnection) -> Attachment:
    return Attachment(subscriber, connection, 10, log_failure)


# -- updates ----------------------------------------------------------------------------------


def test_a_request_for_each_handler_and_a_value_for_each_parameter(
    connection: RecordedConnection,
) -> None:
    class Both(Monitor):
        @on("price > 2 * :last_buy + t", evolve=Periodic(1.0))
        def dear(self, event: Event) -> None: ...

    both = Both()
    both.last_buy = 50
    attach(both, connection)
    assert connection.requests == [
        Request(parse("price < :last_buy")),
        Request(parse("price > 2 * :last_buy + t"), Periodic(1.0)),
    ]
    assert connection.values == {"last_buy": 50, "other": None}
    assert connection.updates == []


def test_an_update_goes_out_when_a_value_changes(connection: RecordedConnection) -> None:
    monitor = Monitor()
    attach(monitor, connection)
    monitor.last_buy = 90
    monitor.last_buy = 90
    monitor.other = "x"
    monitor.last_buy = 90.0
    monitor.other = None
    monitor.set(last_buy=90.0, other=True)
    monitor.other = 1
    assert connection.updates == [
        {"last_buy": 90},
        {"other": "x"},
        {"last_buy": 90.0},
        {"other": None},
        {"other": True},
        {"other": 1},
    ]
    assert set(connection.spans) == {ALWAYS}


def test_a_value_that_stays_in_its_band_is_not_sent(connection: RecordedConnection) -> None:
    car = Car()
    attach(car, connection)
    assert connection.values == {
        "place_low": -3.0, "place_high": 3.0, "place_rate": 0.0,
        "speed_low": 8.0, "speed_high": 12.0,
    }  # fmt: skip
    for speed in [11, 9, 12, 8, 10]:
        car.speed = speed
    assert connection.updates == []
    car.speed = 12.5
    assert connection.updates == [{"speed_low": 10.5, "speed_high": 14.5}]
    car.speed = 10.5
    car.speed = None
    car.speed = None
    assert connection.updates[1:] == [{"speed_low": None, "speed_high": None}]


def test_a_moving_band_is_sent_with_the_span_in_which_it_contains_the_value(
    connection: RecordedConnection,
) -> None:
    car = Car()
    attach(car, connection)
    for step in range(1, 101):
        connection.seconds = step / 10
        car.place = step / 5
    sent = [each for each in connection.updates if each]
    assert len(sent) <= 3
    assert sent[-1]["place_rate"] == pytest.approx(2.0)
    assert connection.spans[-1] == pytest.approx((8.5, 11.5))
    before = len(connection.updates)
    connection.subscriber_end.renew(11)
    assert connection.updates[before:] == []
    connection.subscriber_end.renew(12)
    assert connection.updates[before:] == [
        {"place_low": 17.0, "place_high": 23.0, "place_rate": 0.0}
    ]
    assert connection.spans[-1] == ALWAYS


def test_nothing_is_sent_after_close(connection: RecordedConnection) -> None:
    monitor = Monitor()
    attachment = attach(monitor, connection)
    with pytest.raises(SubscriptionError, match="this Monitor is already attached"):
        attach(monitor, RecordedConnection())
    attachment.close()
    assert connection.cancelled
    monitor.last_buy = 1
    assert connection.updates == []
    again = RecordedConnection()
    attach(monitor, again)
    assert again.values["last_buy"] == 1


def test_async_handlers_need_an_event_loop(connection: RecordedConnection) -> None:
    class Waiting(Subscriber):
        @on("a = 1")
        async def one(self, event: Event) -> None: ...

    with pytest.raises(
        SubscriptionError, match=r"Waiting.one is async; attach its subscriber inside"
    ):
        attach(Waiting(), connection)


# -- deliveries -------------------------------------------------------------------------------


def test_an_event_is_checked_with_the_current_values(connection: RecordedConnection) -> None:
    monitor = Monitor()
    attach(monitor, connection)
    connection.put(price=90)
    connection.put(price=95)  # matched with the old value
    connection.put(price=80)
    connection.subscriber_end.mailbox.run()
    assert monitor.bought == [90, 80]
    connection.put(price=70)
    monitor.last_buy = 60
    connection.subscriber_end.mailbox.run()
    assert monitor.bought == [90, 80]
    monitor.last_buy = None
    connection.deliver(price=1)
    assert monitor.bought == [90, 80]


def test_handlers_see_the_values_that_earlier_handlers_changed(
    connection: RecordedConnection,
) -> None:
    class Two(Monitor):
        @on("price <= :last_buy")
        def after(self, event: Event) -> None:
            self.bought.append(-event["price"])

        @on("price < :last_buy")
        def never(self, _: Event) -> None:
            self.bought.append(0)

    two = Two()
    attach(two, connection)
    connection.deliver(0, 1, 2, price=90)
    assert two.bought == [90, -90]


def test_the_check_is_for_the_time_of_the_event_and_the_exact_value(
    connection: RecordedConnection,
) -> None:
    car = Car()
    attach(car, connection)
    car.place = 2.5
    connection.deliver(x=1.4)
    connection.deliver(x=1.5)
    connection.deliver(x=3.5)
    connection.deliver(x=3.6)
    assert car.seen == [1.5, 3.5]
    connection.seconds = 5.0
    connection.deliver(1, y=15)
    connection.deliver(1, y=16)
    assert car.seen == [1.5, 3.5, 16]


def test_events_that_wait_at_close_are_not_handled(connection: RecordedConnection) -> None:
    monitor = Monitor()
    attachment = attach(monitor, connection)
    connection.put(price=90)
    attachment.close()
    connection.deliver(price=80)
    assert monitor.bought == []


def test_a_handler_can_close_the_attachment(connection: RecordedConnection) -> None:
    class Once(Subscriber):
        count = 0

        @on("a = 1")
        def first(self, _: Event) -> None:
            self.count += 1
            attachment.close()

        @on("a = 1")
        def second(self, _: Event) -> None:
            self.count += 100

    once = Once()
    attachment = attach(once, connection)
    connection.deliver(0, 1, a=1)
    assert once.count == 1


# -- failures ---------------------------------------------------------------------------------


class Broken(Subscriber):
    def __init__(self) -> None:
        self.seen: list[int] = []

    @on("a = 1")
    def first(self, event: Event) -> None:
        raise ValueError(f"no {event['b']}")

    @on("a = 1")
    def second(self, event: Event) -> None:
        self.seen.append(event["b"])


def test_an_exception_is_reported_and_other_handlers_are_still_called(
    connection: RecordedConnection,
) -> None:
    broken = Broken()
    failures: list[Failure] = []
    Attachment(broken, connection, 10, failures.append)
    connection.put(0, 1, a=1, b=2)
    connection.put(0, 1, a=1, b=3)
    connection.subscriber_end.mailbox.run()
    assert broken.seen == [2, 3]
    assert [str(each) for each in failures] == [
        "Broken.first failed on {'a': 1, 'b': 2}: ValueError('no 2')",
        "Broken.first failed on {'a': 1, 'b': 3}: ValueError('no 3')",
    ]
    assert failures[0].subscriber is broken
    assert failures[0].event["b"] == 2


def test_by_default_failures_are_logged(
    connection: RecordedConnection, caplog: pytest.LogCaptureFixture
) -> None:
    attach(Broken(), connection)
    connection.deliver(0, a=1, b=2)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("tidegate", logging.ERROR)
    assert "Broken.first failed on {'a': 1, 'b': 2}" in record.message
    assert "in first" in caplog.text  # the traceback


def test_an_on_error_that_fails_is_logged(
    connection: RecordedConnection, caplog: pytest.LogCaptureFixture
) -> None:
    def on_error(_: Failure) -> None:
        raise RuntimeError("not now")

    broken = Broken()
    Attachment(broken, connection, 10, on_error)
    connection.deliver(0, 1, a=1, b=2)
    assert "not now" in caplog.text
    assert "no 2" in caplog.text
    assert broken.seen == [2]
