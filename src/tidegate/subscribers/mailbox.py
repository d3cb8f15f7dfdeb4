"""Mailboxes: the events that wait for a subscriber, handled one after another.

Rules. (1) Events are handled in the order in which they were put in, one at a time. (2) Nobody
handles events while holding a lock. (3) Whoever puts an event into a full mailbox waits until it is
no longer full; so at most ``waiting_max`` events wait, and one of each publisher.

Theory of operation. An idle mailbox belongs to nobody. Whoever puts events into it becomes its
runner and handles them until none is left: a thread that has published or, if handlers are async, a
task of the mailbox's event loop. Meanwhile all others only put events in. So a handler never waits
for another handler: if A and B publish to each other, each puts its event into the other's mailbox
and returns. If instead a publisher waited until its event was handled, the two would deadlock.

Locks. `Mailbox._lock` is a leaf: no other lock is taken and no handler, callback or future is run
while it is held. Futures are therefore collected under it and completed after it is released.
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

_ThreadAndTask = tuple[int, asyncio.Task[object] | None]
_handling: ContextVar[_ThreadAndTask | None] = ContextVar("handling", default=None)


def is_handling() -> bool:
    """Whether this thread or task is inside a handler; a task that a handler started is not."""
    # A new task inherits a copy of the context variable, so its being set is not enough: it must
    # have been set by this very thread and task.
    return _handling.get() == _thread_and_task()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that runs in this thread, if any."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _thread_and_task() -> _ThreadAndTask:
    return threading.get_ident(), asyncio.current_task() if running_loop() else None


@contextmanager
def _in_handler() -> Iterator[None]:
    token = _handling.set(_thread_and_task())
    try:
        yield
    finally:
        _handling.reset(token)


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event for a subscriber, with the numbers of the handlers whose sent filters it matched.

    ``environments`` has, for each of them, the times and variables it was matched with; parameters
    are left out, because a handler is checked with the current ones.
    """

    event: Event
    matched: tuple[int, ...]
    environments: tuple[Environment, ...]


class DeliveryHandler(Protocol):
    """Handles the deliveries of a mailbox; implemented by `Attachment`."""

    def handle(self, delivery: Delivery) -> None:
        """Call the handlers, none of which is async."""
        ...

    def handle_async(self, delivery: Delivery) -> Coroutine[None, None, None]:
        """Call the handlers, and await those that are async."""
        ...


class Mailbox:
    """The deliveries that wait for one subscriber; ``owner`` is its name in error messages.

    ``loop`` is the event loop in which its handlers run, if some are async.
    """

    def __init__(
        self,
        owner: str,
        delivery_handler: DeliveryHandler,
        waiting_max: int,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.owner = owner
        self.loop = loop
        self._delivery_handler = delivery_handler
        self._waiting_max = waiting_max
        self._lock = threading.Lock()
        self._waiting: deque[Delivery] = deque()
        self._has_runner = False
        self._is_closed = False
        self._room_waiters: list[Future[None]] = []
        self._idle_waiters: list[Future[None]] = []
        self._task: asyncio.Task[None] | None = None  # a loop itself holds tasks only weakly
        # Handlers run in the context of whoever attached the subscriber. That of the publisher
        # would be another one each time.
        self._context = copy_context()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Whether a publisher that cannot wait must be refused."""
        return len(self._waiting) >= self._waiting_max

    def put(self, delivery: Delivery) -> None:
        """Append a delivery; a closed mailbox drops it."""
        with self._lock:
            if not self._is_closed:
                self._waiting.append(delivery)

    def until_room(self) -> Future[None] | None:
        """A future that is done when at most ``waiting_max`` wait; None if that is so now."""
        with self._lock:
            if len(self._waiting) <= self._waiting_max:
                return None
            return _new_waiter(self._room_waiters)

    def until_idle(self) -> Future[None] | None:
        """A future that is done when all events have been handled; None if that is so now."""
        with self._lock:
            if not self._waiting and not self._has_runner:
                return None
            return _new_waiter(self._idle_waiters)

    def close(self) -> None:
        """Drop all waiting and future deliveries; a handler that runs now is not interrupted."""
        with self._lock:
            self._is_closed = True
            self._waiting.clear()
            done, self._room_waiters = self._room_waiters, []
            if not self._has_runner:  # otherwise the runner completes them
                done += self._idle_waiters
                self._idle_waiters = []
        _complete(done)

    # -- handling -----------------------------------------------------------------------------

    def start(self) -> None:
        """Let the event loop of the mailbox handle the waiting events; callable from any thread."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self._start_task, context=self._context)

    def run(self) -> None:
        """Handle the waiting events in this thread, unless the mailbox has a runner."""
        if not self._become_runner():
            return
        try:
            while (delivery := self._next()) is not None:
                with _in_handler():
                    self._delivery_handler.handle(delivery)
        except BaseException:  # such as KeyboardInterrupt
            self._give_up()
            raise

    def _start_task(self) -> None:
        if self.loop is not None and self._become_runner():
            self._task = self.loop.create_task(self._run_async(), context=self._context)

    async def _run_async(self) -> None:
        try:
            while (delivery := self._next()) is not None:
                with _in_handler():
                    await self._delivery_handler.handle_async(delivery)
                await asyncio.sleep(0)  # let other tasks run between two events
        except BaseException:  # such as CancelledError when the event loop ends
            self._give_up()
            raise

    def _become_runner(self) -> bool:
        with self._lock:
            if self._has_runner or not self._waiting:
                return False
            self._has_runner = True
            return True

    def _next(self) -> Delivery | None:
        """The next delivery; if there is none, the mailbox becomes idle."""
        # Both in one critical section: between finding the mailbox empty and becoming idle no
        # publisher may put an event and take it that there is a runner.
        done: list[Future[None]] = []
        with self._lock:
            delivery = self._waiting.popleft() if self._waiting else None
            if len(self._waiting) <= self._waiting_max:
                done, self._room_waiters = self._room_waiters, done
            if delivery is None:
                self._has_runner = False
                done += self._idle_waiters
                self._idle_waiters = []
        _complete(done)
        return delivery

    def _give_up(self) -> None:
        """Stop running with events left: the next publisher handles them.

        Publishers that wait for room are released, because nobody may come to make any.
        """
        with self._lock:
            self._has_runner = False
            done, self._room_waiters = self._room_waiters, []
        _complete(done)


def _new_waiter(waiters: list[Future[None]]) -> Future[None]:
    future: Future[None] = Future()
    waiters.append(future)
    return future


def _complete(waiters: list[Future[None]]) -> None:
    for future in waiters:
        if future.set_running_or_notify_cancel():  # false if the publisher gave up waiting
            future.set_result(None)
