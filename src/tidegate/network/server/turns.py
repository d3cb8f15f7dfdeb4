"""Turns: all that arrived since the last one is handled together, then one write per connection.

Rules.

(1) Turns are strictly serial: one has been committed and sent before the next begins.
(2) What one peer has sent is handled in its order; between different peers any order is right.
    So a turn has rounds: the requests at the head of each connection, then the events that follow.
(3) Nothing that depends on a transaction leaves before it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from tidegate.errors import StoreError, StoreFullError, TidegateError
from tidegate.network.server.requests import has_events
from tidegate.network.store.transaction import Transaction

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection

_log = logging.getLogger(__name__)
T = TypeVar("T")

EVENTS_MAX = 20_000
"""Events of one turn, about; more would let those that wait for a confirmation wait too long."""


class Turn:
    """What one turn has done so far, and what is still to be sent because of it."""

    def __init__(self) -> None:
        self.transaction = Transaction()
        self.after_commit: list[Callable[[], None]] = []
        """Sends what depends on the transaction, in order."""
        self.if_full: list[Callable[[], None]] = []
        """Takes back what the transaction has of events that can be refused."""


class Turns:
    """Runs the turns of a broker."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._wakened = asyncio.Event()
        self._waiting: dict[ServedConnection, None] = {}
        self._jobs: deque[Callable[[Turn], None]] = deque()
        self._idle = asyncio.Event()
        self.count = 0

    def wake(self, connection: ServedConnection | None = None) -> None:
        """Run a turn soon, with what has arrived on a connection."""
        if connection is not None:
            self._waiting[connection] = None
        self._idle.clear()
        self._wakened.set()

    async def ask(self, job: Callable[[Turn], T]) -> T:
        """Do something between the messages of a turn; returns, or raises, what it does."""
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def run(turn: Turn) -> None:
            try:
                result = job(turn)
            except TidegateError as error:
                if not done.done():
                    done.set_exception(error)
            else:
                turn.after_commit.append(partial(_resolve, done, result))

        self._jobs.append(run)
        self.wake()
        return await done

    async def idle(self) -> None:
        """Wait until everything that has arrived is handled and sent."""
        self._idle.set()
        if self._wakened.is_set():
            self._idle.clear()
        await self._idle.wait()

    async def run(self) -> None:
        """Run turns until cancelled; raises StoreError if the store fails."""
        while True:
            if not self._wakened.is_set():
                self._idle.set()
            await self._wakened.wait()
            self._wakened.clear()
            await self._turn()

    async def _turn(self) -> None:
        server, turn = self._server, Turn()
        self.count += 1
        begin = time.perf_counter()
        while self._jobs:
            self._jobs.popleft()(turn)
        connections, self._waiting = list(self._waiting), {}
        events, pause_s = 0, 0.0
        while any(_is_ready(each) for each in connections) and events < EVENTS_MAX:
            is_left = server.requests.handle(
                [each for each in connections if _is_ready(each)], turn
            )
            publishing = [each for each in connections if _is_ready(each) and _publishes(each)]
            taken = server.events.handle(publishing, turn)
            if publishing and not taken:
                pause_s = 0.005  # their clients are still on their way here
                break
            events += taken
            if is_left:
                break
        server.run_due(turn)
        server.save_links(turn)
        await self._commit(turn)
        for each in connections:
            if each.arrived:
                server.loop.call_later(max(pause_s, each.paused_s), self.wake, each)
                each.paused_s = 0.0
            else:
                each.handled()
        server.output.deliver()
        server.write_out()
        server.counters.turns.observe(time.perf_counter() - begin)
        await asyncio.sleep(0)  # so that sockets are read between two turns

    async def _commit(self, turn: Turn) -> None:
        store = self._server.store
        if store is not None and turn.transaction:
            begin = time.perf_counter()
            try:
                await asyncio.wrap_future(store.commit(turn.transaction))
                self._server.counters.commits.observe(time.perf_counter() - begin)
            except StoreFullError as error:
                _log.error("the store is full: %s", error, extra={"event": "store_full"})
                for undo in turn.if_full:
                    undo()
                await self._commit_when_there_is_room(turn)
            except StoreError:
                _log.critical(
                    "the store has failed; the broker stops", extra={"event": "store_failed"}
                )
                raise
        for action in turn.after_commit:
            action()

    async def _commit_when_there_is_room(self, turn: Turn) -> None:
        """Commit what cannot be refused any more: the acknowledgements free room for it."""
        store = self._server.store
        while store is not None and turn.transaction:
            try:
                await asyncio.wrap_future(store.commit(turn.transaction))
                return
            except StoreFullError:
                await asyncio.sleep(0.1)
                store.purge(self._server.now_us())


def _resolve(done: asyncio.Future[T], result: T) -> None:
    """Give a result to whoever waits for it, if somebody still does."""
    if not done.done():
        done.set_result(result)


def _publishes(connection: ServedConnection) -> bool:
    return bool(connection.arrived) and has_events(connection.arrived[0])


def _is_ready(connection: ServedConnection) -> bool:
    return bool(connection.arrived) and not connection.paused_s
