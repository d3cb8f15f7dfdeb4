from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future

import pytest

from tidegate.language.events import Event
from tidegate.language.expressions import Environment
from tidegate.subscribers.mailbox import Delivery, Mailbox, is_handling, running_loop

TIMEOUT_S = 20


class RecordingHandler:
    """Records the numbers of deliveries, and calls a function of the test with them."""

    def __init__(self, action: Callable[[int], object] = bool) -> None:
        self.handled: list[int] = []
        self._action = action

    def handle(self, delivery: Delivery) -> None:
        self.handled.append(delivery.event["n"])
        self._action(delivery.event["n"])

    async def handle_async(self, delivery: Delivery) -> None:
        self.handled.append(delivery.event["n"])
        result = self._action(delivery.event["n"])
        if isinstance(result, Coroutine):
            await result


def numbered(number: int) -> Delivery:
    return Delivery(Event.of({"n": number}), (0,), (Environment(),))


def test_events_are_handled_in_order_and_one_at_a_time() -> None:
    def more(number: int) -> None:
        assert is_handling()
        if number < 3:
            mailbox.put(numbered(number + 2))
            mailbox.run()  # it has a runner already
            assert handler.handled[-1] == number

    handler = RecordingHandler(more)
    mailbox = Mailbox("M", handler, 10)
    mailbox.run()
    mailbox.put(numbered(1))
    mailbox.put(numbered(2))
    assert len(mailbox) == 2
    mailbox.run()
    assert handler.handled == [1, 2, 3, 4]
    assert not is_handling()


def test_threads_leave_their_events_to_the_runner() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def first(number: int) -> None:
        if number == 0:
            begun.set()
            assert go_on.wait(TIMEOUT_S)

    handler = RecordingHandler(first)
    mailbox = Mailbox("M", handler, 10)
    mailbox.put(numbered(0))
    thread = threading.Thread(target=mailbox.run)
    thread.start()
    assert begun.wait(TIMEOUT_S)
    for number in range(1, 5):
        mailbox.put(numbered(number))
        mailbox.run()
    assert handler.handled == [0]
    go_on.set()
    thread.join(TIMEOUT_S)
    assert handler.handled == [0, 1, 2, 3, 4]


def test_there_is_room_until_the_mailbox_is_full() -> None:
    mailbox = Mailbox("M", RecordingHandler(), 2)
    for number in range(2):
        assert not mailbox.is_full
        mailbox.put(numbered(number))
    assert mailbox.is_full
    assert mailbox.until_room() is None
    mailbox.put(numbered(3))
    room, idle = mailbox.until_room(), mailbox.until_idle()
    assert room is not None
    assert idle is not None
    assert not room.done()
    mailbox.run()
    assert room.done()
    assert idle.done()
    assert mailbox.until_idle() is None


def test_waiters_for_room_are_released_as_soon_as_there_is_some() -> None:
    def check(number: int) -> None:
        assert room is not None
        assert idle is not None
        assert room.done() == (number > 0)
        assert not idle.done()

    mailbox = Mailbox("M", RecordingHandler(check), 2)
    for number in range(4):
        mailbox.put(numbered(number))
    room, idle = mailbox.until_room(), mailbox.until_idle()
    mailbox.run()
    assert idle is not None
    assert idle.done()


def test_waiting_for_room_can_be_cancelled() -> None:
    mailbox = Mailbox("M", RecordingHandler(), 1)
    for number in range(3):
        mailbox.put(numbered(number))
    room = mailbox.until_room()
    assert room is not None
    assert room.cancel()
    mailbox.run()
    assert room.cancelled()


def test_a_closed_mailbox_drops_events_and_releases_waiters() -> None:
    handler = RecordingHandler()
    mailbox = Mailbox("M", handler, 1)
    mailbox.put(numbered(0))
    mailbox.put(numbered(1))
    room, idle = mailbox.until_room(), mailbox.until_idle()
    mailbox.close()
    assert room is not None
    assert idle is not None
    assert room.done()
    assert idle.done()
    mailbox.put(numbered(2))
    mailbox.run()
    assert handler.handled == []


def test_a_mailbox_that_is_closed_by_a_handler_is_idle_when_it_returns() -> None:
    def close(number: int) -> None:
        assert number == 0
        waits.append(mailbox.until_idle())
        mailbox.close()
        assert waits[0] is not None
        assert not waits[0].done()

    waits: list[Future[None] | None] = []
    mailbox = Mailbox("M", RecordingHandler(close), 1)
    mailbox.put(numbered(0))
    mailbox.put(numbered(1))
    mailbox.run()
    assert waits[0] is not None
    assert waits[0].done()


def test_an_interrupt_leaves_the_events_to_the_next_runner() -> None:
    def interrupt(number: int) -> None:
        if number == 0:
            raise KeyboardInterrupt

    handler = RecordingHandler(interrupt)
    mailbox = Mailbox("M", handler, 1)
    for number in range(3):
        mailbox.put(numbered(number))
    room = mailbox.until_room()
    with pytest.raises(KeyboardInterrupt):
        mailbox.run()
    assert not is_handling()
    assert room is not None
    assert room.done()
    mailbox.run()
    assert handler.handled == [0, 1, 2]


# -- in an event loop -------------------------------------------------------------------------


def test_async_handlers_are_awaited_in_order() -> None:
    async def main() -> list[int]:
        async def pause(number: int) -> None:
            assert is_handling()
            for _ in range(5 - number):
                await asyncio.sleep(0)

        handler = RecordingHandler(pause)
        mailbox = Mailbox("M", handler, 10, running_loop())
        for number in range(5):
            mailbox.put(numbered(number))
            mailbox.start()
        assert handler.handled == []
        idle = mailbox.until_idle()
        assert idle is not None
        await asyncio.wrap_future(idle)
        return handler.handled

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def test_another_thread_can_start_the_task() -> None:
    async def main() -> list[int]:
        loop_thread = threading.get_ident()
        handler = RecordingHandler(lambda _: threads.append(threading.get_ident()))
        mailbox = Mailbox("M", handler, 10, running_loop())

        def publish() -> None:
            for number in range(3):
                mailbox.put(numbered(number))
                mailbox.start()

        await asyncio.to_thread(publish)
        idle = mailbox.until_idle()
        if idle is not None:
            await asyncio.wrap_future(idle)
        assert set(threads) == {loop_thread}
        return handler.handled

    threads: list[int] = []
    assert asyncio.run(main()) == [0, 1, 2]


def test_a_task_that_a_handler_starts_is_no_handler() -> None:
    async def main() -> list[bool]:
        found: list[bool] = []
        tasks: list[asyncio.Task[None]] = []

        async def look() -> None:
            found.append(is_handling())

        async def start(_: int) -> None:
            await look()
            tasks.append(asyncio.create_task(look()))

        mailbox = Mailbox("M", RecordingHandler(start), 10, running_loop())
        mailbox.put(numbered(0))
        mailbox.start()
        idle = mailbox.until_idle()
        assert idle is not None
        await asyncio.wrap_future(idle)
        await asyncio.gather(*tasks)
        return found

    assert asyncio.run(main()) == [True, False]


def test_handlers_run_in_the_context_of_the_attachment() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def main() -> list[str]:
        found: list[str] = []
        who.set("owner")
        mailbox = Mailbox(
            "M", RecordingHandler(lambda _: found.append(who.get())), 10, running_loop()
        )
        who.set("publisher")
        mailbox.put(numbered(0))
        mailbox.start()
        idle = mailbox.until_idle()
        assert idle is not None
        await asyncio.wrap_future(idle)
        return found

    assert asyncio.run(main()) == ["owner"]


def test_a_handler_that_is_cancelled_leaves_the_events_to_the_next_task() -> None:
    async def main() -> list[int]:
        async def cancel(number: int) -> None:
            if number == 0:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)

        handler = RecordingHandler(cancel)
        mailbox = Mailbox("M", handler, 1, running_loop())
        for number in range(3):
            mailbox.put(numbered(number))
        mailbox.start()
        stopped = mailbox.until_room()  # two still wait when the task gives up
        assert stopped is not None
        await asyncio.wrap_future(stopped)
        assert len(mailbox) == 2
        assert handler.handled == [0]
        mailbox.start()
        idle = mailbox.until_idle()
        assert idle is not None
        await asyncio.wrap_future(idle)
        return handler.handled

    assert asyncio.run(main()) == [0, 1, 2]


def test_other_tasks_run_between_two_events() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        boxes = [
            Mailbox("A", RecordingHandler(lambda n: log.append(f"a{n}")), 10, running_loop()),
            Mailbox("B", RecordingHandler(lambda n: log.append(f"b{n}")), 10, running_loop()),
        ]
        for mailbox in boxes:
            for number in range(2):
                mailbox.put(numbered(number))
            mailbox.start()
        for mailbox in boxes:
            if (idle := mailbox.until_idle()) is not None:
                await asyncio.wrap_future(idle)
        return log

    assert asyncio.run(main()) == ["a0", "b0", "a1", "b1"]
