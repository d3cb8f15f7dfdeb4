"""What a durable client has asked for is in the store, and is held for its next process."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from support.wire_client import WireClient, running
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire import requests as wire


def test_many_subscriptions_are_held_in_several_frames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.network.server.durable_clients.HELD_MAX", 4)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as server:
            ann = await WireClient.connect(server.port, "ann", is_durable=True)
            for number in range(8):
                await ann.request(wire.Subscribe, f"x = {number}", name=str(number), version=1)
            again = await WireClient.connect(server.port, "ann", is_durable=True, session=2)
            frames = [await again.next(wire.Held) for _ in range(2)]
            assert [each.is_last for each in frames] == [False, True]
            names = [each.name for frame in frames for each in frame.subscriptions]
            assert names == list("01234567")
            await again.close()

    asyncio.run(main())


def test_state_that_cannot_be_restored_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path, "a")
    transaction = Transaction()
    transaction.put_state("client", "ann", b"", b"")
    transaction.put_state("subscription", "ann", b"broken", b"\xc1")
    transaction.put_state("unnamed", "ann", b"\x92\xc0\xa3x <", b"")
    transaction.put_state("unnamed", "ann", b"\x92\xc0\xa5x < 1", b"")
    store.commit(transaction).result()
    store.close()

    async def main() -> None:
        with caplog.at_level(logging.ERROR):
            async with running(BrokerSettings("a", port=0, data=tmp_path)) as server:
                (client,) = server.sessions
                items = server.broker.subscriptions.items_of(client)
                assert [str(each) for each in items] == ["x < 1"]
        assert sorted(record.getMessage().partition(" cannot")[0] for record in caplog.records) == [
            "the subscription of 'ann'",
            "the unnamed of 'ann'",
        ]

    asyncio.run(main())
