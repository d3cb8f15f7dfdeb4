"""Messages of the broker reach the part of the client that they are for."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tidegate import NetworkError, connect
from tidegate.network.client.session_listener import SessionListener
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests as wire
from tidegate.network.wire.flow import NotPublished
from tidegate.network.wire.problems import Problem


def test_what_is_lost_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = BrokerServer(BrokerSettings("a", port=0))
        await server.start()
        try:
            async with connect(f"tidegate://127.0.0.1:{server.port}", identity="ann") as client:
                listener = SessionListener(client)
                with caplog.at_level(logging.WARNING, "tidegate"):
                    listener.message_came(NotPublished(7, Problem("event", "too large")))
                    listener.message_came(wire.Missed(3))
                assert client.receiving.missed == 3
                hello = listener.hello(5)
                assert (hello.identity, hello.session, hello.is_durable) == ("ann", 5, False)
                assert hello.credit_events > 0
                listener.ended(NetworkError("for a test"))
                with pytest.raises(NetworkError, match="for a test"):
                    await client.publish({"x": 1})
        finally:
            await server.stop()

    asyncio.run(main())
    assert "publication 7 was refused: too large" in caplog.text
    assert "the broker dropped 3 deliveries for ann" in caplog.text
