"""`tidegate.connect`: the client of a broker, for asyncio."""

from __future__ import annotations

import random
import ssl
from collections.abc import Sequence

from tidegate.errors import NetworkError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.client import Client
from tidegate.network.client.settings import AckMode, ClientSettings
from tidegate.network.wire.handshake import SlowPolicy


def connect(
    broker: str | Sequence[str] = "tidegate://localhost:7070",
    *,
    identity: str | None = None,
    token: str | None = None,
    durable: bool = False,
    ack: AckMode = "next",
    epoch: int | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: float = 30.0,
    reconnect: bool = True,
    credit_events: int = 10_000,
    credit_bytes: int = 1 << 26,
    slow: SlowPolicy = "drop-oldest",
    slow_key: str | None = None,
    queue_max: int = 0,
    heartbeat: float = 10.0,
) -> Client:
    """A client of a broker, to be used as `async with tidegate.connect(...) as client`.

    ``broker`` is a URL, or several to be tried in turn: `tidegate://host:port`, `tidegates://` for
    TLS, `ws://` and `wss://` for WebSocket.

    A ``durable`` client needs an ``identity``: the broker keeps its subscriptions, and the
    confirmed events that match them, while it is away. Its events are acknowledged when the next
    one is asked for, or with ``ack="manual"`` by `event.ack()`. A publisher that numbers on after a
    restart gives an ``epoch`` (see `Client.last_published`).

    The broker may send ``credit_events`` events ahead of the reader. What comes beyond waits at the
    broker, up to ``queue_max``, and ``slow`` says what happens then: "block" (within a bound),
    "drop-oldest", "drop-newest", "latest" (one for each value of ``slow_key``) or "disconnect".

    ``timeout`` bounds, in seconds, each attempt to connect; the first fails after as long.
    """
    if identity is None and durable:
        raise NetworkError("a durable client needs an identity, by which the broker knows it again")
    urls = [broker] if isinstance(broker, str) else list(broker)
    settings = ClientSettings(
        [BrokerAddress.parse(url) for url in urls],
        identity or f"client-{random.getrandbits(48):012x}",
        token,
        durable,
        ack,
        epoch,
        tls,
        timeout,
        reconnect,
        credit_events,
        credit_bytes,
        slow,
        slow_key,
        queue_max,
        heartbeat,
    )
    return Client(settings)
