"""A link is connected again and again, until the neighbour is there."""

from __future__ import annotations

import asyncio
import socket

from support.wire_client import running
from tidegate.network.server.settings import BrokerSettings, PeerAddress


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_neighbour_may_start_later() -> None:
    async def main() -> None:
        port = free_port()
        settings = BrokerSettings("b", port=0, peers=(PeerAddress("127.0.0.1", port),))
        async with running(settings) as b:
            await asyncio.sleep(0)
            async with running(BrokerSettings("a", port=port)) as a:
                for one, other in ((a, "b"), (b, "a")):
                    while other not in one.broker.domains.domain_of:
                        await asyncio.sleep(0.01)
            assert "a" in b.broker.domains.domain_of  # it is only away

    asyncio.run(main())


def test_broker_does_not_link_with_itself_or_with_another_than_before() -> None:
    async def main() -> None:
        port = free_port()
        settings = BrokerSettings("b", port=port, peers=(PeerAddress("127.0.0.1", port),))
        async with running(settings) as b:
            while not b.counters.refused_connections:
                await asyncio.sleep(0.01)
            assert not b.broker.domains.domain_of
        settings = BrokerSettings("b", port=0, peers=(PeerAddress("127.0.0.1", port),))
        async with running(settings) as b:
            async with running(BrokerSettings("a", port=port)):
                while "a" not in b.broker.domains.domain_of:
                    await asyncio.sleep(0.01)
            async with running(BrokerSettings("c", port=port)) as c:
                while not c.counters.connections:
                    await asyncio.sleep(0.01)
                assert "b" not in c.broker.domains.domain_of
            assert list(b.links.by_peer) == ["a"]

    asyncio.run(main())
