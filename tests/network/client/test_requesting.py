from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidegate.errors import NetworkError, RoutingError
from tidegate.network.client.requesting import AfterLoss, Requests
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.requests import Advertise, Cancel, Done, Refused, Suspend


def test_answers_find_their_requests() -> None:
    async def main() -> None:
        sent: list[Any] = []
        requests = Requests(sent.append)
        handles: list[list[int]] = []
        one = requests.add(Suspend, AfterLoss.REPEAT, lambda done: handles.append(done.handles))
        two = requests.add(Suspend, AfterLoss.REPEAT)
        assert sent == [Suspend(1), Suspend(2)]
        requests.answer(Refused(2, Problem("routing", "no")))
        assert requests.answered == 0
        requests.answer(Done(1, [7]))
        assert handles == [[7]]  # at once, not when the task comes round
        requests.answer(Done(1, [7]))
        assert (requests.answered, len(requests), handles) == (2, 0, [[7]])
        assert (await one).handles == [7]
        with pytest.raises(RoutingError, match="no"):
            await two

    asyncio.run(main())


def test_a_resumed_session_is_sent_what_was_not_handled() -> None:
    async def main() -> None:
        sent: list[Any] = []
        requests = Requests(sent.append)
        for _ in range(3):
            requests.add(Suspend, AfterLoss.REPEAT)
        sent.clear()
        requests.resume(handled=1)
        assert sent == [Suspend(2), Suspend(3)]

    asyncio.run(main())


def test_what_becomes_of_requests_in_a_new_session() -> None:
    async def main() -> None:
        sent: list[Any] = []
        requests = Requests(sent.append)
        requests.add(Suspend, AfterLoss.REPEAT)
        ended = requests.add(lambda number: Cancel(number, 5), AfterLoss.DONE)
        requests.add(lambda number: Advertise(number, "x > 0"), AfterLoss.RESTORED)
        sent.clear()
        repeated, restored = requests.lose_session()
        assert (await ended, len(repeated), len(restored), sent) == (Done(0), 1, 1, [])
        requests.repeat(repeated[0])
        assert sent == [Suspend(1)]
        requests.answer(Done(1))
        assert (await repeated[0].future).number == 1

    asyncio.run(main())


def test_the_window_bounds_what_waits() -> None:
    async def main() -> None:
        requests = Requests(lambda _: None)
        requests.window = 1
        await requests.room()
        first = requests.add(Suspend, AfterLoss.REPEAT)
        waiting = asyncio.create_task(requests.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        requests.answer(Done(1))
        await waiting
        await first

    asyncio.run(main())


def test_the_end_fails_all_that_wait() -> None:
    async def main() -> None:
        requests = Requests(lambda _: None)
        requests.window = 1
        future = requests.add(Suspend, AfterLoss.REPEAT)
        waiting = asyncio.create_task(requests.room())
        await asyncio.sleep(0)
        requests.fail(NetworkError("closed"))
        for each in (future, waiting):
            with pytest.raises(NetworkError, match="closed"):
                await each

    asyncio.run(main())
