"""The hub with async handlers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest

from tidegate import Hub, Parameter, Subscriber, on
from tidegate.errors import QueueFullError, SubscriptionError
from tidegate.language.events import Event
from tidegate.matching.engine import Engine
from tidegate.subscribers.attachment import Failure

TIMEOUT_S = 20


def run(main: Callable[[], Coroutine[None, None, None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(main(), TIMEOUT_S)

    asyncio.run(limited())


class Monitor(Subscriber):
    last_buy = Parameter(100.0)

    def __init__(self) -> None:
        self.bought: list[float] = []

    @on("firm = 'IBM' and price < :last_buy")
    async def quote(self, event: Event) -> None:
        await asyncio.sleep(0)
        self.bought.append(event["price"])
        self.last_buy = event["price"]


class Log(Subscriber):
    def __init__(self) -> None:
        self.seen: list[int] = []

    @on("n is not null")
    async def number(self, event: Event) -> None:
        self.seen.append(event["n"])


class Blocked(Log):
    """Its handler does not return until ``go_on`` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()

    @on("n is not null")
    async def number(self, event: Event) -> None:
        self.seen.append(event["n"])
        await self.go_on.wait()


def hub_of(waiting_max: int = 100) -> Hub:
    return Hub(Engine(matcher="naive"), waiting_max=waiting_max)


def test_a_handler_changes_its_own_filter() -> None:
    async def main() -> None:
        hub = Hub()
        monitor = hub.attach(Monitor())
        for price in [99.0, 99.5, 98.0, 97.0]:
            await hub.publish({"firm": "IBM", "price": price})
        await hub.join()
        assert monitor.bought == [99.0, 98.0, 97.0]
        assert monitor.last_buy == 97.0

    run(main)


def test_an_event_that_matched_an_old_value_is_not_handled() -> None:
    """All three are matched before the first is handled. The check at the handler rejects the
    second, and checks the third with the value that the first has assigned.
    """

    async def main() -> None:
        hub = hub_of()
        monitor = hub.attach(Monitor())
        for price in [90.0, 95.0, 85.0]:
            hub.publish_now({"firm": "IBM", "price": price})
        assert monitor.bought == []
        await hub.join()
        assert monitor.bought == [90.0, 85.0]

    run(main)


def test_another_task_may_change_a_value_while_a_handler_waits() -> None:
    async def main() -> None:
        hub = hub_of()

        class Waiting(Blocked):
            limit = Parameter(10)

            @on("n < :limit")
            async def number(self, event: Event) -> None:
                await super().number(event)

        waiting = hub.attach(Waiting())
        for n in range(4):
            await hub.publish({"n": n})
        assert waiting.seen == [0]
        waiting.limit = 3
        waiting.go_on.set()
        await hub.join()
        assert waiting.seen == [0, 1, 2]

    run(main)


def test_subscribers_do_not_wait_for_each_other() -> None:
    async def main() -> None:
        hub = hub_of()
        blocked, log = hub.attach(Blocked()), hub.attach(Log())
        for n in range(3):
            await hub.publish({"n": n})
        while len(log.seen) < 3:
            await asyncio.sleep(0)
        assert blocked.seen == [0]
        blocked.go_on.set()
        await hub.join()
        assert blocked.seen == [0, 1, 2]

    run(main)


def test_plain_and_async_handlers_of_one_subscriber_take_turns() -> None:
    async def main() -> None:
        class Both(Log):
            @on("n is not null")
            def plain(self, event: Event) -> None:
                self.seen.append(-event["n"])
                assert threading.get_ident() == loop_thread

        def publish() -> None:
            for n in range(1, 4):
                hub.publish_now({"n": n})

        hub, loop_thread = hub_of(), threading.get_ident()
        both = hub.attach(Both())
        await asyncio.to_thread(publish)
        await hub.join()
        assert both.seen == [1, -1, 2, -2, 3, -3]

    run(main)


def test_plain_subscribers_are_called_before_publish_returns() -> None:
    class Plain(Log):
        def number(self, event: Event) -> None:  # type: ignore[override]
            self.seen.append(event["n"])

    async def main() -> None:
        hub = hub_of()
        plain = hub.attach(Plain())
        await hub.publish({"n": 1})
        assert plain.seen == [1]

    run(main)


def test_publishers_wait_while_the_queue_is_full() -> None:
    async def main() -> None:
        hub = hub_of(waiting_max=2)
        blocked = hub.attach(Blocked())
        await hub.publish({"n": 0})
        while not blocked.seen:
            await asyncio.sleep(0)
        await hub.publish({"n": 1})
        await hub.publish({"n": 2})
        waiting = [asyncio.create_task(hub.publish({"n": n})) for n in (3, 4)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
        with pytest.raises(QueueFullError, match="4 events wait for Blocked"):
            hub.publish_now({"n": 5})
        waiting[1].cancel()  # which does not take the event back
        blocked.go_on.set()
        await waiting[0]
        await hub.join()
        assert blocked.seen == [0, 1, 2, 3, 4]

    run(main)


def test_a_thread_waits_while_the_queue_is_full() -> None:
    async def main() -> None:
        published = [0] * 3
        waiting: list[int] = []

        class Counting(Log):
            async def number(self, event: Event) -> None:
                self.seen.append(event["n"])
                waiting.append(sum(published) - len(self.seen))

        hub = hub_of(waiting_max=2)
        log = hub.attach(Counting())

        def publish(number: int) -> None:
            for step in range(100):
                published[number] += 1
                hub.publish_now({"n": 1000 * number + step})

        await asyncio.gather(*(asyncio.to_thread(publish, number) for number in range(3)))
        await hub.join()
        assert len(log.seen) == 300
        assert max(waiting) <= 2 + 3  # and one of each publisher
        for number in range(3):
            own = range(1000 * number, 1000 * number + 100)
            assert [each for each in log.seen if each in own] == list(own)

    run(main)


def test_a_handler_that_publishes_to_itself_is_refused_when_the_queue_is_full() -> None:
    async def main() -> None:
        class Rabbit(Log):
            @on("n is not null")
            async def number(self, event: Event) -> None:
                self.seen.append(event["n"])
                await hub.publish({"n": event["n"] + 1})
                await hub.publish({"n": event["n"] + 1})

        failures: list[Failure] = []
        hub = Hub(Engine(matcher="naive"), waiting_max=3, on_error=failures.append)
        rabbit = hub.attach(Rabbit())
        await hub.publish({"n": 0})
        while len(failures) < 5:
            await asyncio.sleep(0)
        hub.detach(rabbit)
        await hub.join()
        assert all(isinstance(each.error, QueueFullError) for each in failures)
        assert rabbit.seen[:3] == [0, 1, 1]

    run(main)


def test_join_waits_for_what_handlers_publish() -> None:
    async def main() -> None:
        class Countdown(Log):
            @on("n > 0")
            async def number(self, event: Event) -> None:
                self.seen.append(event["n"])
                await hub.publish({"n": event["n"] - 1})

        class Late(Log):
            @on("n = 0")
            async def number(self, event: Event) -> None:
                with pytest.raises(SubscriptionError, match="a handler cannot wait until all"):
                    await hub.join()
                self.seen.append(event["n"])

        hub = hub_of()
        countdown, late = hub.attach(Countdown()), hub.attach(Late())
        await hub.join()
        await hub.publish({"n": 3})
        await hub.join()
        assert countdown.seen == [3, 2, 1]
        assert late.seen == [0]

    run(main)


def test_detaching_drops_waiting_events_and_releases_publishers() -> None:
    async def main() -> None:
        hub = hub_of(waiting_max=1)
        blocked = hub.attach(Blocked())
        await hub.publish({"n": 0})
        while not blocked.seen:
            await asyncio.sleep(0)
        await hub.publish({"n": 1})
        waiting = asyncio.create_task(hub.publish({"n": 2}))
        await asyncio.sleep(0)
        hub.detach(blocked)
        await waiting
        blocked.go_on.set()
        await hub.join()
        for _ in range(5):
            await asyncio.sleep(0)
        assert blocked.seen == [0]

    run(main)


def test_an_exception_of_an_async_handler_goes_to_on_error() -> None:
    async def main() -> None:
        class Broken(Log):
            async def number(self, event: Event) -> None:
                await super().number(event)
                raise ValueError(event["n"])

        failures: list[Failure] = []
        hub = Hub(Engine(matcher="naive"), on_error=failures.append)
        broken = hub.attach(Broken())
        await hub.publish({"n": 1})
        await hub.publish({"n": 2})
        await hub.join()
        assert broken.seen == [1, 2]
        assert [each.error.args for each in failures] == [(1,), (2,)]

    run(main)


def test_an_event_loop_that_has_ended_is_an_error() -> None:
    hub = hub_of()

    async def main() -> Log:
        return hub.attach(Log())

    log = asyncio.run(main())
    with pytest.raises(SubscriptionError, match="the event loop of this Log has ended; detach it"):
        hub.publish_now({"n": 1})
    hub.publish_now({"m": 1})  # which is not for it
    hub.detach(log)
    hub.publish_now({"n": 1})
    assert log.seen == []


def test_the_end_of_an_event_loop_cancels_handlers() -> None:
    hub = hub_of()

    async def main() -> Blocked:
        blocked = hub.attach(Blocked())
        await hub.publish({"n": 1})
        await hub.publish({"n": 2})
        while not blocked.seen:
            await asyncio.sleep(0)
        return blocked

    blocked = asyncio.run(main())
    assert blocked.seen == [1]
    hub.detach(blocked)
