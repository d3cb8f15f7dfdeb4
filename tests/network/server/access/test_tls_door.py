"""The door of a TLS listener; more of it is in test_authentication.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

import tidegate
from support.certificates import Authority
from support.wire_client import running
from tidegate.network.server.access.settings import TlsSettings
from tidegate.network.server.settings import BrokerSettings, ClientLimits


def test_connections_are_counted_before_and_after_the_handshake(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    tls = TlsSettings(authority.sign("broker"))
    limits = ClientLimits(handshakes_max=2)

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, tls=tls, limits=limits)) as server:
            url = f"tidegates://127.0.0.1:{server.port}"
            async with tidegate.connect(url, tls=authority.client()) as client:
                sub = await client.subscribe("price > 0", name="s")
                await client.publish({"price": 1})
                assert [event["price"] async for event in _first(sub)] == [1]
                assert (len(server.entrance), len(server.doors)) == (1, 0)
                pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(3)]
                async with asyncio.timeout(60):
                    while not server.counters.refused_connections:
                        await asyncio.sleep(0.01)
                assert (len(server.entrance), len(server.doors)) == (3, 2)
                for _, writer in pairs:
                    writer.transport.abort()
        assert (len(server.entrance), len(server.doors)) == (0, 0)

    asyncio.run(main())


async def _first(sub: object):  # type: ignore[no-untyped-def]
    async for event in sub:  # type: ignore[attr-defined]
        yield event
        return
