"""A publisher in the broker's own process, for events that come over HTTP.

It is a client like any other: its bytes go through the wire protocol, admission, credit and turns,
only not through a socket.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from typing import Any

from tidegate.errors import NetworkError, OverloadedError
from tidegate.language.events import Event
from tidegate.network.server.broker_server import BrokerServer
from tidegate.network.server.served_connection import ServedConnection
from tidegate.network.wire import requests
from tidegate.network.wire.columns import Part
from tidegate.network.wire.connection import Broken, Connection
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Confirmed, Credit, Heartbeat, NotPublished
from tidegate.network.wire.handshake import Goodbye, Hello, Welcome

BLOCK_EVENTS = 1_000
"""Events that are sent together; each block waits for credit."""
_HEARTBEAT_MS = 600_000


class LocalClient:
    """Publishes events at a broker of this process."""

    def __init__(self, server: BrokerServer, identity: str) -> None:
        self._server = server
        self._identity = identity
        self._link: _LocalConnection | None = None
        self._lock = asyncio.Lock()

    async def publish(
        self, events: Sequence[Event], *, confirm: bool, space: str | None = None
    ) -> dict[int, str]:
        """Publish events in order; returns why some were refused, by index.

        With ``confirm`` the others are on disk when it returns.
        """
        async with self._lock:  # requests do not mix their events
            link = await self._connected()
            first = link.published + 1
            for begin in range(0, len(events), BLOCK_EVENTS):
                block = EventBlock.of(events[begin : begin + BLOCK_EVENTS], space)
                await link.credit(len(block), len(block.bodies))
                link.send(Publish(link.published + 1, block, confirm))
                link.published += len(block)
            await (link.confirmed(link.published) if confirm else link.handled())
            return {
                number - first: link.refused.pop(number)
                for number in list(link.refused)
                if number >= first
            }

    async def _connected(self) -> _LocalConnection:
        if self._link is None or self._link.error is not None:
            self._link = _LocalConnection(self._server, self._identity)
            await self._link.welcomed()
        return self._link

    def close(self) -> None:
        """End the session of the publisher."""
        if self._link is not None:
            self._link.close()


class _LocalConnection:
    """Both ends of one connection: the client's here, the broker's in ``_served``."""

    def __init__(self, server: BrokerServer, identity: str) -> None:
        session = random.getrandbits(62)
        hello = Hello(
            identity,
            session,
            epoch=session,
            heartbeat_ms=_HEARTBEAT_MS,
            software="the admin port",
        )
        self.published = 0
        self.refused: dict[int, str] = {}
        self.error: NetworkError | None = None
        self._server = server
        self._wire = Connection.connecting(hello)
        self._is_welcome = False
        self._confirmed = 0
        self._requested = self._answered = 0
        self._sent = [0, 0]
        self._granted = (0, 0)
        self._changed = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self._served = ServedConnection(server)
        self._served.is_local = True
        self._served.connection_made(_LocalTransport(self))
        self._write()

    # -- the client's end ---------------------------------------------------------------------

    def send(self, message: Any) -> None:
        """Send a message to the broker."""
        self._wire.send(message)
        self._write()

    def _write(self) -> None:
        data = b"".join(self._wire.take_output())
        if data and not self._served.is_lost:
            self._served.data_received(data)

    async def welcomed(self) -> None:
        """Wait for the end of the handshake; raises if the broker refuses."""
        await self._until(lambda: self._is_welcome)

    async def credit(self, events: int, bytes: int) -> None:
        """Wait until so much may be sent, and count it."""
        await self._until(
            lambda: self._sent[0] < self._granted[0] and self._sent[1] < self._granted[1]
        )
        self._sent[0] += events
        self._sent[1] += bytes

    async def confirmed(self, number: int) -> None:
        """Wait until all publications up to a number are on disk, or were refused."""
        await self._until(lambda: self._confirmed >= number)

    async def handled(self) -> None:
        """Wait until the broker has handled everything that was sent.

        A request is answered after the events before it; this one changes nothing.
        """
        self._requested += 1
        number = self._requested
        self.send(requests.Unsubscribe(number, "false"))
        await self._until(lambda: self._answered >= number)

    async def _until(self, holds: Any) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.error is not None or holds())
        if not holds() and self.error is not None:
            raise self.error

    def came(self, data: bytes) -> None:
        """Take bytes of the broker."""
        for message in self._wire.receive(data):
            match message:
                case Welcome():
                    self._is_welcome = True
                    self._granted = (message.credit_events, message.credit_bytes)
                case Credit(events, bytes):
                    self._granted = (events, bytes)
                case Confirmed(number):
                    self._confirmed = number
                case NotPublished(number, problem):
                    self.refused[number] = problem.reason
                case requests.Done(number) | requests.Refused(number):
                    self._answered = number
                case Goodbye(problem):
                    self.error = OverloadedError(problem.reason)
                case Broken(error):
                    self.error = error
        if self._wire.is_open:
            self.send(Heartbeat())
        self._wake()

    def lost(self) -> None:
        """Note that the broker has closed the connection."""
        if self.error is None:
            self.error = NetworkError("the broker has ended the session of the admin port")
        if not self._served.is_lost:
            self._served.connection_lost(None)
        self._wake()

    def close(self) -> None:
        """Close the connection."""
        self.lost()

    def _wake(self) -> None:
        async def wake() -> None:
            async with self._changed:
                self._changed.notify_all()

        task = asyncio.ensure_future(wake())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _LocalTransport(asyncio.Transport):
    """Gives what the broker writes to the client, in the next round of the event loop."""

    def __init__(self, link: _LocalConnection) -> None:
        super().__init__({"peername": "the admin port"})
        self._link = link
        self._loop = asyncio.get_running_loop()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits here."""

    def writelines(self, list_of_data: Any) -> None:
        parts: Sequence[Part] = list_of_data
        self._loop.call_soon(self._link.came, b"".join(parts))

    def pause_reading(self) -> None:
        """Nothing to pause: the client waits for credit."""

    def resume_reading(self) -> None:
        """Nothing to resume."""

    def close(self) -> None:
        self._loop.call_soon(self._link.lost)

    def abort(self) -> None:
        self._loop.call_soon(self._link.lost)
