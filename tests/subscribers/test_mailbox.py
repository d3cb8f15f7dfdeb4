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


class Work:
    """Notes what it is given, and does what the test says."""

    def __init__(self, does: Callable[[int], object] = bool) -> None:
        self.done: list[int] = []
        self._does = does

    def handle(self, delivery: Delivery) -> None:
        self.done.append(delivery.event["n"])
        self._does(delivery.event["n"])

    async def handle_async(self, delivery: Delivery) -> None:
        self.done.append(delivery.event["n"])
        result = self._does(delivery.event["n"])
        if isinstance(result, Coroutine):
            await result


def numbered(number: int) -> Delivery:
    return Delivery(Event.of({"n": number}), (0,), (Environment(),))


def test_events_are_handled_in_order_and_one_at_a_time() -> None:
    def more(number: int) -> None:
        assert is_handling()
        if number < 3:
            mailbox.put(numbered(number + 2))
            mailbox.run()  # somebody is at it already
            assert work.done[-1] == number

    work = Work(more)
    mailbox = Mailbox("M", work, 10)
    mailbox.run()
    mailbox.put(numbered(1))
    mailbox.put(numbered(2))
    assert len(mailbox) == 2
    mailbox.run()
    assert work.done == [1, 2, 3, 4]
    assert not is_handling()


def test_threads_hand_over_to_whoever_is_at_it() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def first(number: int) -> None:
        if number == 0:
            begun.set()
            assert go_on.wait(TIMEOUT_S)

    work = Work(first)
    mailbox = Mailbox("M", work, 10)
    mailbox.put(numbered(0))
    thread = threading.Thread(target=mailbox.run)
    thread.start()
    assert begun.wait(TIMEOUT_S)
    for number in range(1, 5):
        mailbox.put(numbered(number))
        mailbox.run()
    assert work.done == [0]
    go_on.set()
    thread.join(TIMEOUT_S)
    assert work.done == [0, 1, 2, 3, 4]


def test_there_is_room_until_it_is_full() -> None:
    mailbox = Mailbox("M", Work(), 2)
    for number in range(2):
        assert not mailbox.is_full
        mailbox.put(numbered(number))
    assert mailbox.is_full
    assert mailbox.room() is None
    mailbox.put(numbered(3))
    room, rest = mailbox.room(), mailbox.rest()
    assert room is not None
    assert rest is not None
    assert not room.done()
    mailbox.run()
    assert room.done()
    assert rest.done()
    assert mailbox.rest() is None


def test_room_is_told_as_soon_as_there_is_some() -> None:
    def check(number: int) -> None:
        assert room is not None
        assert rest is not None
        assert room.done() == (number > 0)
        assert not rest.done()

    mailbox = Mailbox("M", Work(check), 2)
    for number in range(4):
        mailbox.put(numbered(number))
    room, rest = mailbox.room(), mailbox.rest()
    mailbox.run()
    assert rest is not None
    assert rest.done()


def test_nobody_has_to_wait_to_the_end() -> None:
    mailbox = Mailbox("M", Work(), 1)
    for number in range(3):
        mailbox.put(numbered(number))
    room = mailbox.room()
    assert room is not None
    assert room.cancel()
    mailbox.run()
    assert room.cancelled()


def test_what_is_closed_takes_nothing_and_lets_nobody_wait() -> None:
    work = Work()
    mailbox = Mailbox("M", work, 1)
    mailbox.put(numbered(0))
    mailbox.put(numbered(1))
    room, rest = mailbox.room(), mailbox.rest()
    mailbox.close()
    assert room is not None
    assert rest is not None
    assert room.done()
    assert rest.done()
    mailbox.put(numbered(2))
    mailbox.run()
    assert work.done == []


def test_a_mailbox_that_is_closed_while_busy_rests_when_the_handler_is_through() -> None:
    def close(number: int) -> None:
        assert number == 0
        rests.append(mailbox.rest())
        mailbox.close()
        assert rests[0] is not None
        assert not rests[0].done()

    rests: list[Future[None] | None] = []
    mailbox = Mailbox("M", Work(close), 1)
    mailbox.put(numbered(0))
    mailbox.put(numbered(1))
    mailbox.run()
    assert rests[0] is not None
    assert rests[0].done()


def test_an_interrupt_leaves_the_rest_to_the_next() -> None:
    def interrupt(number: int) -> None:
        if number == 0:
            raise KeyboardInterrupt

    work = Work(interrupt)
    mailbox = Mailbox("M", work, 1)
    for number in range(3):
        mailbox.put(numbered(number))
    room = mailbox.room()
    with pytest.raises(KeyboardInterrupt):
        mailbox.run()
    assert not is_handling()
    assert room is not None
    assert room.done()
    mailbox.run()
    assert work.done == [0, 1, 2]


# -- in an event loop -------------------------------------------------------------------------


def test_async_work_is_awaited_in_order() -> None:
    async def main() -> list[int]:
        async def pause(number: int) -> None:
            assert is_handling()
            for _ in range(5 - number):
                await asyncio.sleep(0)

        work = Work(pause)
        mailbox = Mailbox("M", work, 10, running_loop())
        for number in range(5):
            mailbox.put(numbered(number))
            mailbox.start()
        assert work.done == []
        rest = mailbox.rest()
        assert rest is not None
        await asyncio.wrap_future(rest)
        return work.done

    assert asyncio.run(main()) == [0, 1, 2, 3, 4]


def test_another_thread_can_start_it() -> None:
    async def main() -> list[int]:
        loop_thread = threading.get_ident()
        work = Work(lambda _: threads.append(threading.get_ident()))
        mailbox = Mailbox("M", work, 10, running_loop())

        def publish() -> None:
            for number in range(3):
                mailbox.put(numbered(number))
                mailbox.start()

        await asyncio.to_thread(publish)
        rest = mailbox.rest()
        if rest is not None:
            await asyncio.wrap_future(rest)
        assert set(threads) == {loop_thread}
        return work.done

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

        mailbox = Mailbox("M", Work(start), 10, running_loop())
        mailbox.put(numbered(0))
        mailbox.start()
        rest = mailbox.rest()
        assert rest is not None
        await asyncio.wrap_future(rest)
        await asyncio.gather(*tasks)
        return found

    assert asyncio.run(main()) == [True, False]


def test_handlers_run_in_the_context_of_the_attachment() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    async def main() -> list[str]:
        found: list[str] = []
        who.set("owner")
        mailbox = Mailbox("M", Work(lambda _: found.append(who.get())), 10, running_loop())
        who.set("publisher")
        mailbox.put(numbered(0))
        mailbox.start()
        rest = mailbox.rest()
        assert rest is not None
        await asyncio.wrap_future(rest)
        return found

    assert asyncio.run(main()) == ["owner"]


def test_a_handler_that_is_cancelled_leaves_the_rest_to_the_next() -> None:
    async def main() -> list[int]:
        async def cancel(number: int) -> None:
            if number == 0:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
                await asyncio.sleep(0)

        work = Work(cancel)
        mailbox = Mailbox("M", work, 10, running_loop())
        mailbox.put(numbered(0))
        mailbox.put(numbered(1))
        mailbox.start()
        while mailbox._task is None or not mailbox._task.done():
            await asyncio.sleep(0)
        assert work.done == [0]
        mailbox.start()
        rest = mailbox.rest()
        assert rest is not None
        await asyncio.wrap_future(rest)
        return work.done

    assert asyncio.run(main()) == [0, 1]


def test_others_have_their_turn_between_two_events() -> None:
    async def main() -> list[str]:
        log: list[str] = []
        boxes = [
            Mailbox("A", Work(lambda n: log.append(f"a{n}")), 10, running_loop()),
            Mailbox("B", Work(lambda n: log.append(f"b{n}")), 10, running_loop()),
        ]
        for mailbox in boxes:
            for number in range(2):
                mailbox.put(numbered(number))
            mailbox.start()
        for mailbox in boxes:
            if (rest := mailbox.rest()) is not None:
                await asyncio.wrap_future(rest)
        return log

    assert asyncio.run(main()) == ["a0", "b0", "a1", "b1"]
