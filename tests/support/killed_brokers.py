"""Brokers in processes that are killed, and clients that come back to them."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.wire_client import WireClient, rows
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.flow import Ack, Confirmed
from tidegate.network.wire.handshake import Welcome

PROGRAM = [sys.executable, "-c", "from tidegate.cli import main; main()", "broker"]


def free_ports(count: int) -> list[int]:
    listeners = [socket.socket() for _ in range(count)]
    for each in listeners:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in listeners]
    for each in listeners:
        each.close()
    return ports


class KilledBroker:
    """A broker in a process of its own, with a store."""

    def __init__(self, name: str, port: int, folder: Path, peers: list[int]) -> None:
        self.port = port
        self._command = [*PROGRAM, "--name", name, "--listen", f"127.0.0.1:{port}"]
        self._command += ["--data", str(folder / name)]
        for peer in peers:
            self._command += ["--peer", f"tidegate://127.0.0.1:{peer}"]
        self._log = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        return self._log.read_text()


async def connected(port: int, identity: str, **fields: Any) -> tuple[WireClient, Welcome]:
    """A connection, as soon as the broker is there."""
    async with asyncio.timeout(120):
        while True:
            try:
                client = await WireClient.connect(port, identity, wait=False, **fields)
                return client, await client.next(Welcome)
            except (ConnectionError, OSError):
                await asyncio.sleep(0.05)


class Publisher:
    """Publishes numbers, each confirmed, and again until it is."""

    def __init__(self, port: int, identity: str) -> None:
        self._port, self._identity = port, identity
        self.confirmed = 0

    async def publish(self, count: int, batch: int) -> None:
        while self.confirmed < count:
            try:
                client, welcome = await connected(self._port, self._identity, epoch=1)
                client.published = self.confirmed = max(self.confirmed, welcome.published)
                while self.confirmed < count:
                    last = min(count, client.published + batch)
                    numbers = range(client.published + 1, last + 1)
                    client.publish(*({"n": n, "by": self._identity} for n in numbers), confirm=True)
                    while self.confirmed < last:
                        self.confirmed = (await client.next(Confirmed)).number
                await client.close()
            except (ConnectionError, OSError):
                continue


class Subscriber:
    """A durable subscriber that notes what it gets, in order."""

    def __init__(self, port: int, identity: str, filter: str) -> None:
        self._port, self._identity, self._filter = port, identity, filter
        self.received: list[dict[str, Any]] = []
        self._last = 0

    async def subscribe(self) -> None:
        """Subscribe, and return once that is in force at all brokers."""
        client, _ = await connected(self._port, self._identity, is_durable=True)
        await client.request(wire.Subscribe, self._filter, name="all", version=1, confirm=True)
        await client.next(wire.InForce)
        await client.close()

    async def receive(self, count: int) -> None:
        """Receive until there are so many."""
        session = 1
        while len(self.received) < count:
            session += 1
            try:
                client, _ = await connected(
                    self._port, self._identity, is_durable=True, session=session
                )
                while len(self.received) < count:
                    for attributes, _, position in rows(await client.next(Deliver)):
                        if position > self._last:  # else it was not acknowledged in time
                            self.received.append(attributes)
                            self._last = position
                    client.send(Ack(self._last))
                await client.close()
            except (ConnectionError, OSError):
                continue


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
