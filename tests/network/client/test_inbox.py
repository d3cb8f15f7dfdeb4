from __future__ import annotations

import asyncio

import pytest

from tidegate.errors import ConnectionLostError, NetworkError
from tidegate.network.client.inbox import Mailbox


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
