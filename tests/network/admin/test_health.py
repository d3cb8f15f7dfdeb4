from __future__ import annotations

import asyncio
from pathlib import Path

from support.wire_client import running
from tidegate.network.admin.health import unready
from tidegate.network.server.settings import BrokerSettings, PeerAddress


def test_neighbour_that_was_there_once_may_be_away(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(BrokerSettings("b", port=0)) as b:
            assert unready(b) == []
            port = b.port
            peers = (PeerAddress("127.0.0.1", port),)
            settings = BrokerSettings("a", port=0, peers=peers, data=tmp_path)
            async with running(settings) as a:
                while unready(a):
                    assert unready(a) == [f"the neighbour at 127.0.0.1:{port} was never reached"]
                    await asyncio.sleep(0.01)
        async with running(settings) as a:
            assert unready(a) == []
        assert unready(a) == ["the broker drains", "the broker has failed"]

    asyncio.run(main())


def test_full_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=tmp_path)) as a:
            assert a.store is not None
            a.store.is_full = True
            assert unready(a) == ["the store is full; it takes no confirmed events"]

    asyncio.run(main())
