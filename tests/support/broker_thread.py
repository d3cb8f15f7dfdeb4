"""A broker in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.wire_client import running
from tidegate.network.server.settings import BrokerSettings


@contextmanager
def broker(folder: Path | None) -> Iterator[str]:
    """A broker in a thread, with a store if it has a folder for one; yields its URL."""
    url: list[str] = []
    started, ended = threading.Event(), threading.Event()

    async def main() -> None:
        async with running(BrokerSettings("a", port=0, data=folder)) as server:
            url.append(f"tidegate://127.0.0.1:{server.port}")
            started.set()
            while not ended.is_set():
                await asyncio.sleep(0.01)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert started.wait(60)
    try:
        yield url[0]
    finally:
        ended.set()
        thread.join()
