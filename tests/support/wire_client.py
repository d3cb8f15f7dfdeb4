"""A client of a broker that speaks the wire protocol as it is, for tests of the broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from tidegate.language.events import Event
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.settings import BrokerSettings
from tidegate.network.wire import requests
from tidegate.network.wire.connection import Connection
from tidegate.network.wire.deliveries import Deliver, Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.handshake import Hello, Welcome

T = TypeVar("T")
PLENTY = 1 << 40
WAIT_S = 60.0


Row = tuple[dict[str, Any], list[tuple[int, int]], int]
"""A delivery: its attributes, matches as handles and versions, and its position."""


class WireClient:
    """One connection; what comes is kept in order."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self.wire = Connection.connecting(hello)
        self.received: list[Any] = []
        self.number = 0
        self.published = 0
        self.is_closed = False
        self._changed = asyncio.Event()
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._task: asyncio.Task[None]

    @classmethod
    async def connect(
        cls, port: int, identity: str, *, wait: bool = True, **fields: Any
    ) -> WireClient:
        hello = Hello(
            identity,
            fields.pop("session", 1),
            **{
                "credit_events": PLENTY,
                "credit_bytes": PLENTY,
                "heartbeat_ms": 600_000,  # it sends none
                **fields,
            },
        )
        client = cls(hello)
        client._reader, client._writer = await asyncio.open_connection("127.0.0.1", port)
        client._task = asyncio.create_task(client._read())
        client.flush()
        if wait:
            await client.next(Welcome)
        return client

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(1 << 16):
                self.received += self.wire.receive(data)
                self._changed.set()
        except ConnectionError:
            pass
        self._writer.close()
        self.is_closed = True
        self._changed.set()

    def flush(self) -> None:
        self._writer.writelines(self.wire.take_output())

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._writer.write(data)

    def send(self, message: Any) -> None:
        self.wire.send(message)
        self.flush()

    async def next(self, kind: type[T]) -> T:
        """Take the first message of a kind out of what has come."""

        def take() -> T | None:
            for index, message in enumerate(self.received):
                if isinstance(message, kind):
                    del self.received[index]
                    return message
            return None

        async with asyncio.timeout(WAIT_S):
            while (found := take()) is None:
                if self.is_closed:
                    raise ConnectionError(f"closed; {self.received}")
                self._changed.clear()
                await self._changed.wait()
        return found

    async def closed(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while not self.is_closed:
                self._changed.clear()
                await self._changed.wait()

    async def request(self, kind: type[Any], *values: Any, **fields: Any) -> Any:
        """Make a request and wait for its answer."""
        self.number += 1
        self.send(kind(self.number, *values, **fields))
        while True:
            answer = await self.next(requests.Done | requests.Refused)  # type: ignore[arg-type]
            if answer.number == self.number:
                return answer

    def publish(
        self, *events: Mapping[str, Any], confirm: bool = False, space: str | None = None
    ) -> int:
        """Publish events; returns the number of the last one."""
        block = EventBlock.of([Event.of(each) for each in events], space)
        self.send(Publish(self.published + 1, block, confirm))
        self.published += len(events)
        return self.published

    async def deliveries(self, count: int) -> list[Row]:
        """The next deliveries."""
        found: list[Row] = []
        while len(found) < count:
            found += rows(await self.next(Deliver))
        return found

    async def close(self) -> None:
        self._writer.close()
        await self._task

    def abort(self) -> None:
        self._writer.transport.abort()


def rows(deliver: Deliver) -> list[Row]:
    found: list[Row] = []
    begin = 0
    pairs = list(zip(deliver.handles.tolist(), deliver.versions.tolist(), strict=True))
    for index, count in enumerate(deliver.match_counts.tolist()):
        attributes = dict(deliver.publications.events.event(index).attributes)
        found.append((attributes, pairs[begin : begin + count], deliver.positions.item(index)))
        begin += count
    return found


@asynccontextmanager
async def running(settings: BrokerSettings) -> AsyncIterator[BrokerServer]:
    server = BrokerServer(settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def bodies(found: Sequence[tuple[dict[str, Any], Any, int]]) -> list[dict[str, Any]]:
    return [attributes for attributes, _, _ in found]
