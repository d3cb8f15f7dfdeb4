from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import EventError, NetworkError
from tidegate.language.events import Event
from tidegate.network.client import publishing
from tidegate.network.client.publishing import Publishing
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EncodedEvent, encode_event
from tidegate.network.wire.flow import Confirmed, Credit, NotPublished
from tidegate.network.wire.problems import Problem

PLENTY = Credit(1_000, 1 << 20)


def events(*numbers: int) -> list[EncodedEvent]:
    return [encode_event(Event({"x": number})) for number in numbers]


def numbers(sent: list[Publish]) -> list[tuple[int, list[int], bool]]:
    return [
        (each.first_number, [event["x"] for event in each.events.events()], each.confirm)
        for each in sent
    ]


def test_events_of_one_turn_are_one_frame() -> None:
    async def main() -> None:
        sent: list[Publish] = []
        made = Publishing(sent.append)
        made.connected(PLENTY)
        await made.add(events(1, 2), confirm=False)
        await made.add(events(3), confirm=False)
        await made.add(events(4), confirm=True)
        made.flush()
        assert numbers(sent) == [(1, [1, 2, 3], False), (4, [4], True)]
        assert made.last_number == 4

    asyncio.run(main())


def test_credit_is_kept() -> None:
    async def main() -> None:
        sent: list[Publish] = []
        made = Publishing(sent.append)
        made.connected(Credit(2, 1 << 20))
        await made.add(events(1, 2, 3, 4, 5), confirm=False)
        made.flush()
        made.flush()
        assert numbers(sent) == [(1, [1, 2], False)]
        # A body has two bytes here: four are used, and the fourth event may exceed the seven.
        made.grant(Credit(9, 7))
        made.flush()
        assert numbers(sent)[1:] == [(3, [3, 4], False)]
        made.grant(Credit(9, 8))
        made.flush()
        assert len(sent) == 2
        made.grant(Credit(9, 9))
        made.flush()
        assert numbers(sent)[2:] == [(5, [5], False)]
        assert made.is_idle

    asyncio.run(main())


def test_what_is_not_confirmed_is_sent_again_in_order() -> None:
    async def main() -> None:
        sent: list[Publish] = []
        made = Publishing(sent.append)
        made.connected(PLENTY)
        first = await made.add(events(1, 2), confirm=True)
        await made.add(events(3), confirm=False)
        second = await made.add(events(4), confirm=True)
        assert first is not None
        assert second is not None
        made.flush()
        made.confirmed(Confirmed(2))
        await first
        await made.add(events(5), confirm=True)  # while the connection is broken
        sent.clear()
        made.connected(PLENTY)
        made.flush()
        assert numbers(sent) == [(4, [4, 5], True)]
        made.confirmed(Confirmed(5))
        await second
        assert made.is_idle

    asyncio.run(main())


def test_a_refusal_reaches_the_one_who_waits() -> None:
    async def main() -> None:
        made = Publishing(lambda _: None)
        made.connected(PLENTY)
        good = await made.add(events(1), confirm=True)
        bad = await made.add(events(2, 3, 4), confirm=True)
        assert good is not None
        assert bad is not None
        made.flush()
        assert made.refused(NotPublished(3, Problem("event", "does not fit")))
        assert not made.refused(NotPublished(9, Problem("event", "nobody waits")))
        made.confirmed(Confirmed(4))
        await good
        with pytest.raises(EventError, match="does not fit") as caught:
            await bad
        assert caught.value.__notes__ == ["event 1 of the batch; 1 of them were refused"]

    asyncio.run(main())


def test_a_publisher_waits_while_too_much_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "WAITING_MAX", 3)

    async def main() -> None:
        made = Publishing(lambda _: None)
        await made.add(events(1, 2, 3), confirm=False)
        waiting = asyncio.create_task(made.add(events(4), confirm=False))
        await asyncio.sleep(0)
        assert not waiting.done()
        made.connected(PLENTY)
        made.flush()
        await waiting
        assert made.last_number == 4

    asyncio.run(main())


def test_numbers_go_on_after_those_of_an_earlier_process() -> None:
    async def main() -> None:
        sent: list[Publish] = []
        made = Publishing(sent.append)
        made.begin_after(40)
        made.begin_after(7)
        made.connected(PLENTY)
        await made.add(events(1), confirm=False)
        made.flush()
        assert numbers(sent) == [(41, [1], False)]

    asyncio.run(main())


def test_the_end_fails_all_that_wait() -> None:
    async def main() -> None:
        made = Publishing(lambda _: None)
        confirmation = await made.add(events(1), confirm=True)
        assert confirmation is not None
        made.fail(NetworkError("closed"))
        with pytest.raises(NetworkError, match="closed"):
            await confirmation

    asyncio.run(main())
