"""Mailboxes: the events that wait for a subscriber, handled one after another.

Rules. (1) Events are handled in the order in which they were put in, one at a time. (2) Nobody
handles events while holding a lock. (3) Whoever puts an event into a mailbox that is full then
waits until it is not; so no more events wait than ``waiting_max`` and one of each publisher.

Theory of operation. A mailbox at rest belongs to nobody. Whoever finds events in it begins to
handle them, and goes on until none is left: a thread that has published, or, where handlers are
async, a task of the mailbox's event loop. Meanwhile others only put events in, so handlers that
publish cannot wait for each other in a circle.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import Protocol

from tidegate.language.events import Event
from tidegate.language.expressions import Environment

_RunningIn = tuple[int, asyncio.Task[object] | None]
_handling: ContextVar[_RunningIn | None] = ContextVar("handling", default=None)


def is_handling() -> bool:
    """Whether this thread and task is in a handler; a task that a handler started is not."""
    return _handling.get() == _place()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _place() -> _RunningIn:
    return threading.get_ident(), asyncio.current_task() if running_loop() else None


@contextmanager
def _in_handler() -> Iterator[None]:
    token = _handling.set(_place())
    try:
        yield
    finally:
        _handling.reset(token)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for a subscriber: which of its requests it matched, and as of when each.

    ``seen`` has the times and the variables with which it was judged, and no parameters.
    """

    event: Event
    matched: tuple[int, ...]
    seen: tuple[Environment, ...]


class DeliveryWork(Protocol):
    """What is to be done with a delivery."""

    def handle(self, delivery: Delivery) -> None:
        """Call the handlers, none of which is async."""
        ...

    def handle_async(self, delivery: Delivery) -> Coroutine[None, None, None]:
        """Call the handlers, and await those that are async."""
        ...


class Mailbox:
    """What waits for one subscriber; ``owner`` is what messages call it.

    ``loop`` is where its handlers run, if some are async.
    """

    def __init__(
        self,
        owner: str,
        work: DeliveryWork,
        waiting_max: int,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.owner = owner
        self.loop = loop
        self._work = work
        self._waiting_max = waiting_max
        self._lock = threading.Lock()
        self._waiting: deque[Delivery] = deque()
        self._busy = False
        self._closed = False
        self._for_room: list[Future[None]] = []
        self._for_rest: list[Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._context = copy_context()  # that of whoever publishes would be another each time

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether who puts in another event should wait."""
        return len(self._waiting) >= self._waiting_max

    def put(self, delivery: Delivery) -> None:
        """Put an event behind those that wait; dropped if the mailbox is closed."""
        with self._lock:
            if not self._closed:
                self._waiting.append(delivery)

    def room(self) -> Future[None] | None:
        """Done when no more wait than may; None if that is so."""
        with self._lock:
            if len(self._waiting) <= self._waiting_max:
                return None
            return _added(self._for_room)

    def rest(self) -> Future[None] | None:
        """Done when everything has been handled; None if that is so."""
        with self._lock:
            if not self._waiting and not self._busy:
                return None
            return _added(self._for_rest)

    def close(self) -> None:
        """Drop what waits and what may yet come; a handler that runs comes to its end."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
            done, self._for_room = self._for_room, []
            if not self._busy:
                done += self._for_rest
                self._for_rest = []
        _finish(done)

    # -- handling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Have its event loop handle what waits; from any thread."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._start_task, context=self._context)

    def run(self) -> None:
        """Handle what waits, here, unless somebody is at it."""
        if not self._begin():
            return
        try:
            while (delivery := self._next()) is not None:
                with _in_handler():
                    self._work.handle(delivery)
        except BaseException:  # such as KeyboardInterrupt
            self._stop()
            raise

    def _start_task(self) -> None:
        if self.loop is not None and self._begin():
            self._task = self.loop.create_task(self._run_async(), context=self._context)

    async def _run_async(self) -> None:
        try:
            while (delivery := self._next()) is not None:
                with _in_handler():
                    await self._work.handle_async(delivery)
                await asyncio.sleep(0)  # let others have their turn
        except BaseException:  # such as the end of the event loop
            self._stop()
            raise

    def _begin(self) -> bool:
        with self._lock:
            if self._busy or not self._waiting:
                return False
            self._busy = True
            return True

    def _next(self) -> Delivery | None:
        """The next event; None, and the mailbox is at rest, if there is none."""
        done: list[Future[None]] = []
        with self._lock:
            delivery = self._waiting.popleft() if self._waiting else None
            if len(self._waiting) <= self._waiting_max:
                done, self._for_room = self._for_room, done
            if delivery is None:
                self._busy = False
                done += self._for_rest
                self._for_rest = []
        _finish(done)
        return delivery

    def _stop(self) -> None:
        """Leave what waits to whoever comes next, and let nobody wait for that."""
        with self._lock:
            self._busy = False
            done, self._for_room = self._for_room, []
        _finish(done)


def _added(futures: list[Future[None]]) -> Future[None]:
    future: Future[None] = Future()
    futures.append(future)
    return future


def _finish(futures: list[Future[None]]) -> None:
    for future in futures:
        if future.set_running_or_notify_cancel():
            future.set_result(None)
