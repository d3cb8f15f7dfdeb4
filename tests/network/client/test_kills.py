"""Nothing confirmed is lost, doubled or out of order when the broker's process is killed."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tidegate.network.client.client import Client
from tidegate.network.client.connect import connect

KILLS = 3
BATCHES = 60


class Victim:
    """A broker in a process of its own, which is killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._command = [
            sys.executable, "-c", "from tidegate.cli import main; main()", "broker", "--name", "a",
            "--listen", f"127.0.0.1:{self.port}", "--data", str(folder),
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(
            self._command, stdout=nowhere, stderr=nowhere, env={**os.environ}
        )

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@pytest.mark.slow
def test_a_broker_is_killed_again_and_again(tmp_path: Path) -> None:
    victim, random = Victim(tmp_path / "data"), Random(17)

    async def publish(publisher: Client, done: list[int]) -> None:
        for batch in range(BATCHES):
            numbers = range(batch * 10, batch * 10 + 10)
            await publisher.publish_many([{"x": number} for number in numbers], confirm=True)
            done += numbers
            await asyncio.sleep(0.02)

    async def kill(publishing: asyncio.Task[None], done: list[int]) -> None:
        for kill in range(KILLS):
            while len(done) < (kill + 1) * BATCHES * 10 // (KILLS + 2) and not publishing.done():
                await asyncio.sleep(0.005)
            await asyncio.sleep(random.random() / 20)
            victim.kill()
            victim.start()

    async def main() -> None:
        url = f"tidegate://127.0.0.1:{victim.port}"
        confirmed: list[int] = []
        async with (
            connect(url, identity="feed", epoch=1, timeout=60) as publisher,
            connect(url, identity="desk", durable=True, timeout=60) as subscriber,
        ):
            subscription = await subscriber.subscribe("x >= 0", name="all")
            publishing = asyncio.create_task(publish(publisher, confirmed))
            killing = asyncio.create_task(kill(publishing, confirmed))
            received = []
            for _ in range(BATCHES * 10):
                event = await subscription.next(60)
                assert event is not None
                received.append(event["x"])
            await publishing
            await killing
            assert confirmed == received == list(range(BATCHES * 10))
            with pytest.raises(TimeoutError):
                await subscription.next(0.2)

    victim.start()
    try:
        asyncio.run(main())
    finally:
        victim.kill()
