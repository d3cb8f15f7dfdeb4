from __future__ import annotations

import asyncio
from typing import cast

import pytest

from tidegate.errors import ConnectionLostError, NetworkError
from tidegate.language.events import Event
from tidegate.network.client.events import Delivery
from tidegate.network.client.inbox import Inbox, Mailbox
from tidegate.network.client.subscription import Subscription
from tidegate.routing.messages import Stamp


def test_items_come_in_order_and_then_the_end() -> None:
    async def main() -> None:
        mailbox: Mailbox[int] = Mailbox()
        mailbox.put(1)
        mailbox.put(2)
        assert len(mailbox) == 2
        waiting = asyncio.create_task(read_all(mailbox))
        await asyncio.sleep(0)
        mailbox.put(3)
        await asyncio.sleep(0)
        mailbox.close()
        mailbox.close(NetworkError("too late to matter"))
        assert await waiting == [1, 2, 3]

    asyncio.run(main())


async def read_all(mailbox: Mailbox[int]) -> list[int]:
    items = []
    while (item := await mailbox.next()) is not None:
        items.append(item)
    return items


def test_the_end_may_be_an_error_after_what_is_there() -> None:
    async def main() -> None:
        mailbox: Mailbox[int] = Mailbox()
        mailbox.put(1)
        mailbox.close(ConnectionLostError("gone"))
        assert await mailbox.next() == 1
        with pytest.raises(ConnectionLostError, match="gone"):
            await mailbox.next()

    asyncio.run(main())


def test_waiting_has_a_limit_and_can_be_repeated() -> None:
    async def main() -> None:
        mailbox: Mailbox[int] = Mailbox()
        with pytest.raises(TimeoutError):
            await mailbox.next(0.01)
        mailbox.put(5)
        assert await mailbox.next(0.01) == 5

    asyncio.run(main())


def test_a_mailbox_has_one_reader_at_a_time() -> None:
    async def main() -> None:
        mailbox: Mailbox[int] = Mailbox()
        first = asyncio.create_task(mailbox.next())
        await asyncio.sleep(0)
        with pytest.raises(NetworkError, match="somebody else waits"):
            await mailbox.next()
        mailbox.put(1)
        assert await first == 1

    asyncio.run(main())


class Counted:
    """An inbox, and what it has acknowledged."""

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.acknowledged: list[int] = []
        self.inbox = Inbox(
            acks_on_next=True,
            taken=lambda delivery: self.taken.append(delivery.position),
            acknowledge=self._acknowledge,
        )

    def _acknowledge(self, delivery: Delivery) -> None:
        delivery.unfinished -= 1
        if not delivery.unfinished:
            self.acknowledged.append(delivery.position)


class Present:
    """A subscription of which nothing is outdated."""

    def accepts(self, _version: int, _event: Event) -> bool:
        return True


def test_events_that_move_to_another_inbox_come_in_order_and_once() -> None:
    async def main() -> None:
        one, other = Counted(), Counted()
        first, second = cast("list[Subscription]", [Present(), Present()])
        for position, holders in ((1, "o"), (2, "a"), (3, "oa"), (4, "o"), (5, "a")):
            delivery = Delivery(Event({"x": position}), Stamp("a", 1, position), "p", position, 1)
            if "o" in holders:
                one.inbox.add(delivery, [(first, 1)])
            if "a" in holders:
                other.inbox.add(delivery, [(second, 1)])
        one.inbox.move_to(other.inbox)
        assert len(one.inbox) == 0
        found = [await other.inbox.next() for _ in range(5)]
        assert [each.position for each in found if each is not None] == [1, 2, 3, 4, 5]
        assert found[2] is not None
        assert found[2].matches == ((second, 1), (first, 1))
        assert other.taken == [1, 2, 3, 4, 5]
        assert sorted(one.acknowledged + other.acknowledged) == [1, 2, 3, 4]  # 5 is not done with

    asyncio.run(main())
