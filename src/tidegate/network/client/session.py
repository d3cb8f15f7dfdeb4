"""The connection of a client to its broker, made again whenever it breaks.

Theory of operation. One task connects, waits until the connection is lost, and begins anew; in
between everything happens in callbacks: bytes come, messages are handed to a `Listener`, and what
was sent in one turn of the event loop is written at its end, together.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from typing import Any, Protocol

from tidegate.errors import ConnectionLostError, NetworkError, TidegateError
from tidegate.network.client.address import BrokerAddress
from tidegate.network.client.backoff import Backoff
from tidegate.network.client.settings import ClientSettings
from tidegate.network.client.transport import Transport, open_transport
from tidegate.network.wire.connection import Broken, Connection, Message
from tidegate.network.wire.flow import Heartbeat
from tidegate.network.wire.handshake import Goodbye, Hello, Welcome
from tidegate.network.wire.problems import Problem

_log = logging.getLogger("tidegate")


class Listener(Protocol):
    """What a session tells of."""

    def hello(self, session: int) -> Hello:
        """The first message of a connection."""
        ...

    def welcomed(self, welcome: Welcome) -> None:
        """Take the answer: the connection can be used."""
        ...

    def message_came(self, message: Message) -> None:
        """Take any other message."""
        ...

    def before_write(self) -> None:
        """Send what waits for the end of the turn."""
        ...

    def ended(self, error: TidegateError) -> None:
        """Note that there will be no further connection."""
        ...


class Session:
    """Keeps a client connected."""

    def __init__(self, settings: ClientSettings, listener: Listener) -> None:
        self._settings = settings
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self.number = random.getrandbits(62)
        """Identifies this process of the client to its broker."""
        self.brokers = list(settings.brokers)
        """Where to connect, in turn."""
        self._backoff = Backoff(random.Random())
        self._connection: Connection | None = None
        self._transport: Transport | None = None
        self._current: _Receiver | None = None
        self._lost: asyncio.Future[TidegateError] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_write_due = False
        self._is_closing = False
        self._last_read = self._last_written = 0.0
        self._silence_max_s = 0.0
        self._clock_offset_us = 0
        self.welcome: Welcome | None = None
        """Of the present connection, or of the last one."""

    # -- life ---------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect for the first time; raises if that does not succeed in time.

        An error that would come again, such as a wrong token, is raised at once.
        """
        deadline = self._loop.time() + self._settings.timeout_s
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    await self._connect()
                break
            except (ConnectionLostError, _RetryError) as error:
                delay_s = self._backoff.delay_s(getattr(error, "retry_s", 0.0))
                if self._loop.time() + delay_s >= deadline:
                    raise
                self.brokers.append(self.brokers.pop(0))
                await asyncio.sleep(delay_s)
            except TimeoutError:
                raise ConnectionLostError(
                    f"{self.brokers[0]} did not answer within {self._settings.timeout_s:g} s"
                ) from None
        self._task = self._loop.create_task(self._stay_connected(), name="tidegate client")

    async def close(self) -> None:
        """Say goodbye and end."""
        self._is_closing = True
        if self._connection is not None and self._connection.is_open:
            self._listener.before_write()
            self._connection.goodbye(Problem("network", "the client leaves"))
        self._leave()
        if self._task is not None:
            self._task.cancel()
            # Not `await self._task`: a cancellation of the caller would look like that of the task.
            await asyncio.wait([self._task])
            if not self._task.cancelled() and (error := self._task.exception()) is not None:
                raise error
        self._listener.ended(NetworkError("the client is closed"))

    def move(self, broker: BrokerAddress) -> None:
        """Leave this broker, and connect to another one, as a new session."""
        self.brokers = [broker]
        self.number = random.getrandbits(62)
        if self._connection is not None and self._connection.is_open:
            self._listener.before_write()
            self._connection.goodbye(Problem("network", "the client moves"))
        self._leave()
        self._backoff.reset()
        self._lose(ConnectionLostError(f"the client moves to {broker}"))

    def interrupt(self) -> None:
        """Break the connection, as a network failure would; the session connects again."""
        if self._transport is not None:
            self._transport.abort()

    def _leave(self) -> None:
        """Write what is left and close the transport."""
        if self._transport is not None and self._connection is not None:
            self._transport.write(self._connection.take_output())
            self._transport.close()

    async def _stay_connected(self) -> None:
        """Connect again whenever the connection is lost."""
        try:
            while True:
                assert self._lost is not None  # it was connected
                error = await self._wait_until_lost(self._lost)
                if not self._settings.reconnect or not _may_come_back(error):
                    self._listener.ended(error)
                    return
                _log.warning("connection lost, connecting again: %s", error)
                while True:
                    await asyncio.sleep(self._backoff.delay_s(getattr(error, "retry_s", 0.0)))
                    try:
                        async with asyncio.timeout(self._settings.timeout_s):
                            await self._connect()
                        break
                    except (TidegateError, TimeoutError) as caught:
                        if isinstance(caught, TidegateError):
                            error = caught
                        if not _may_come_back(error):
                            self._listener.ended(error)
                            return
                        self.brokers.append(self.brokers.pop(0))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # a bug must not leave the program waiting for ever
            self._listener.ended(NetworkError(f"the client failed: {error!r}"))
            raise

    async def _connect(self) -> None:
        """Open a transport and let the handshake come through."""
        self._connection = None
        self._current = receiver = _Receiver(self)
        self._lost = self._loop.create_future()
        self._transport = await open_transport(self.brokers[0], self._settings.tls, receiver)
        self._last_read = self._last_written = self._loop.time()
        self._silence_max_s = self._settings.timeout_s
        welcomed: asyncio.Future[Welcome] = self._loop.create_future()
        self._welcomed = welcomed
        self._connection = Connection.connecting(self._listener.hello(self.number))
        self.write_now()
        try:
            either: list[asyncio.Future[Any]] = [welcomed, self._lost]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not welcomed.done():
                raise self._lost.result()
        except BaseException:
            self._transport.abort()
            raise
        self._backoff.reset()

    async def _wait_until_lost(self, lost: asyncio.Future[TidegateError]) -> TidegateError:
        """Send heartbeats and watch for those of the broker until the connection is lost."""
        step_s = min(self._settings.heartbeat_s, self._silence_max_s) / 4
        while not lost.done():
            await asyncio.wait([lost], timeout=step_s)
            now = self._loop.time()
            if now - self._last_written >= self._settings.heartbeat_s / 2 and self.is_connected:
                self.send(Heartbeat())
                self.write_now()
            if now - self._last_read > self._silence_max_s:
                self._lose(ConnectionLostError(f"nothing came for {self._silence_max_s:g} s"))
        return lost.result()

    # -- output -------------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether messages can be sent now."""
        return self._connection is not None and self._connection.is_open

    @property
    def can_write(self) -> bool:
        """Whether the transport takes more."""
        return self._transport is not None and self._transport.can_write

    @property
    def connection(self) -> Connection | None:
        """The present connection; None if there is none."""
        return self._connection if self.is_connected else None

    def send(self, message: Any) -> None:
        """Send a message at the end of this turn of the event loop, if there is a connection."""
        if self._connection is not None and self._connection.is_open:
            self._connection.send(message)
            self.write_soon()

    def write_soon(self) -> None:
        """Write at the end of this turn of the event loop."""
        if not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._is_write_due = False
        if self.is_connected:
            self._listener.before_write()
        self.write_now()

    def write_now(self) -> None:
        """Write what was sent."""
        connection, transport = self._connection, self._transport
        if connection is not None and transport is not None and connection.has_output:
            transport.write(connection.take_output())
            self._last_written = self._loop.time()

    # -- input --------------------------------------------------------------------------------

    def is_current(self, receiver: _Receiver) -> bool:
        """Whether a receiver is that of the present transport, not of one that was given up."""
        return self._current is receiver

    def data_came(self, data: bytes) -> None:
        """Take bytes of the broker."""
        self._last_read = self._loop.time()
        connection = self._connection
        if connection is None:
            return
        for message in connection.receive(data):
            match message:
                case Welcome():
                    self._take_welcome(message)
                case Goodbye(problem, retry_ms):
                    error = problem.to_error()
                    if retry_ms is not None:
                        error = _RetryError(str(error), retry_ms / 1_000)
                    self._lose(error)
                case Broken(error):
                    self.write_now()
                    self._lose(error)
                case _:
                    self._listener.message_came(message)
        self.write_soon()

    def transport_lost(self, error: Exception | None) -> None:
        """Note that the transport is gone."""
        reason = "the broker has closed the connection" if error is None else str(error)
        if self._current_is_unanswered and self.brokers[0].is_encrypted:
            reason += "; it has not answered, and its log may say what it has against a certificate"
        self._lose(ConnectionLostError(reason))

    @property
    def _current_is_unanswered(self) -> bool:
        """Whether the present connection was not welcomed yet."""
        return self._connection is not None and not self._connection.is_open

    def _take_welcome(self, welcome: Welcome) -> None:
        self._silence_max_s = 3 * welcome.heartbeat_ms / 1_000
        self._clock_offset_us = welcome.time_us - time.time_ns() // 1_000
        self.welcome = welcome
        self._listener.welcomed(welcome)
        if not self._welcomed.done():
            self._welcomed.set_result(welcome)

    def _lose(self, error: TidegateError) -> None:
        """Give the connection up."""
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(error)
            self._connection = None
            if self._transport is not None:
                self._transport.close()

    def now_us(self) -> int:
        """The time by the clock of the broker, as far as it is known."""
        return time.time_ns() // 1_000 + self._clock_offset_us


class _Receiver:
    """What one transport calls; of no effect once another transport has taken its place."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def data_came(self, data: bytes) -> None:
        if self._session.is_current(self):
            self._session.data_came(data)

    def transport_lost(self, error: Exception | None) -> None:
        if self._session.is_current(self):
            self._session.transport_lost(error)

    def can_write_again(self) -> None:
        if self._session.is_current(self):
            self._session.write_soon()


class _RetryError(NetworkError):
    """The broker has said goodbye, and when to come back."""

    def __init__(self, reason: str, retry_s: float) -> None:
        super().__init__(reason)
        self.retry_s = retry_s


def _may_come_back(error: TidegateError) -> bool:
    """Whether connecting again can help."""
    return isinstance(error, ConnectionLostError | _RetryError)
