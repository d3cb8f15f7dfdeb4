"""Requests of a client that wait for their answer, also over a reconnection.

A broker that resumes the session is sent those again that it has not handled, with their numbers.
In a new session the subscriptions and advertisements themselves are made again (see `restoring`);
what that does not bring about is sent again with new numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from tidegate.network.wire.requests import Done, Refused, Request

MakeRequest = Callable[[int], Request]
"""Makes a request with a number."""


class AfterLoss(Enum):
    """What becomes of a request without an answer when the broker has lost the session."""

    REPEAT = auto()
    """It is sent again."""
    DONE = auto()
    """It counts as done: what it was to end is gone with the session."""
    RESTORED = auto()
    """It counts as done when the subscriptions of the client are there again."""


@dataclass(slots=True)
class Pending:
    """A request without an answer."""

    make: MakeRequest
    after_loss: AfterLoss
    future: asyncio.Future[Done]
    on_done: Callable[[Done], None] | None = None
    """Called at once with the answer: what comes right behind it may need what it says."""


class Requests:
    """Numbers the requests of a session and matches the answers."""

    def __init__(self, send: Callable[[Request], None]) -> None:
        self._send = send
        self._number = 0
        self._pending: dict[int, Pending] = {}
        self._room: list[asyncio.Future[None]] = []
        self.window = 1_000
        """How many may be without an answer."""
        self.answered = 0
        """All requests up to this number are answered."""

    async def all_answered(self) -> None:
        """Wait for the answers to what was asked up to now."""
        waiting = [each.future for each in self._pending.values()]
        if waiting:
            await asyncio.wait(waiting)

    def __len__(self) -> int:
        return len(self._pending)

    async def room(self) -> None:
        """Wait until one more request is allowed."""
        while len(self._pending) >= self.window:
            future = asyncio.get_running_loop().create_future()
            self._room.append(future)
            await future

    def add(
        self,
        make: MakeRequest,
        after_loss: AfterLoss,
        on_done: Callable[[Done], None] | None = None,
    ) -> asyncio.Future[Done]:
        """Send a request; returns the future answer."""
        future: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._add(Pending(make, after_loss, future, on_done))
        return future

    def _add(self, pending: Pending) -> None:
        self._number += 1
        self._pending[self._number] = pending
        self._send(pending.make(self._number))

    def answer(self, answer: Done | Refused) -> None:
        """Take an answer; one that came before is ignored."""
        pending = self._pending.pop(answer.number, None)
        self.answered = min(self._pending, default=self._number + 1) - 1
        if pending is not None and isinstance(answer, Done) and pending.on_done is not None:
            pending.on_done(answer)
        if pending is not None and not pending.future.done():
            if isinstance(answer, Done):
                pending.future.set_result(answer)
            else:
                pending.future.set_exception(answer.problem.to_error())
        while self._room and len(self._pending) < self.window:
            future = self._room.pop()
            if not future.done():
                future.set_result(None)

    def resume(self, handled: int) -> None:
        """Send again what the broker has not handled."""
        for number, pending in self._pending.items():
            if number > handled:
                self._send(pending.make(number))

    def lose_session(self) -> tuple[list[Pending], list[Pending]]:
        """Begin to count anew; returns those to repeat, and those to be done when restored."""
        pending = list(self._pending.values())
        self._pending, self._number, self.answered = {}, 0, 0
        for each in pending:
            if each.after_loss is AfterLoss.DONE and not each.future.done():
                each.future.set_result(Done(0))
        repeated = [each for each in pending if each.after_loss is AfterLoss.REPEAT]
        return repeated, [each for each in pending if each.after_loss is AfterLoss.RESTORED]

    def repeat(self, pending: Pending) -> None:
        """Send a request of the lost session in the new one."""
        if not pending.future.done():
            self._add(pending)

    def fail(self, error: Exception) -> None:
        """Let all requests fail."""
        pending, self._pending = self._pending, {}
        for each in pending.values():
            if not each.future.done():
                each.future.set_exception(error)
        for future in self._room:
            if not future.done():
                future.set_exception(error)
