"""Ports for brokers, and when these are linked."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from support.wire_client import WireClient
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.handshake import Welcome


def free_ports(count: int) -> list[int]:
    listeners = [socket.socket() for _ in range(count)]
    for each in listeners:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in listeners]
    for each in listeners:
        each.close()
    return ports


async def connected(port: int, identity: str, **fields: Any) -> tuple[WireClient, Welcome]:
    """A connection, as soon as the broker is there."""
    async with asyncio.timeout(120):
        while True:
            try:
                client = await WireClient.connect(port, identity, wait=False, **fields)
                return client, await client.next(Welcome)
            except (ConnectionError, OSError):
                await asyncio.sleep(0.05)


async def until_linked(first: int, last: int) -> None:
    """Wait until a subscription at the last broker has come to the first one."""
    subscriber, _ = await connected(last, "prober")
    await subscriber.request(wire.Subscribe, "probe = 1")
    publisher, _ = await connected(first, "probed")
    while not any(isinstance(each, Deliver) for each in subscriber.received):
        publisher.publish({"probe": 1})
        await asyncio.sleep(0.05)
    await subscriber.close()
    await publisher.close()
