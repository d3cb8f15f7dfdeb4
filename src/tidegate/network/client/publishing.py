"""What a client publishes: numbered, within the broker's credit, kept until it is confirmed.

Rules.

(1) Numbers rise in the order of publishing, and are never used for another event. So the broker can
    tell that it has an event already when a client, after a reconnection, sends it again.
(2) An event whose publisher waits for a confirmation is kept, and sent again on each new connection
    until it is confirmed or refused. Any other event is sent at most once.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from tidegate.errors import TidegateError
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EncodedEvent, EventBlock
from tidegate.network.wire.flow import Confirmed, Credit, NotPublished

WAITING_MAX = 10_000
"""Events that wait for credit; a publisher beyond waits itself."""
BLOCK_EVENTS_MAX = 4_096


class _Waiting(NamedTuple):
    number: int
    event: EncodedEvent
    confirm: bool


@dataclass(slots=True)
class _Confirmation:
    """Somebody who waits for all publications up to a number."""

    first: int
    last: int
    future: asyncio.Future[None]
    problems: dict[int, TidegateError] = field(default_factory=dict)


class Publishing:
    """The publications of one client."""

    def __init__(self, send: Callable[[Publish], None]) -> None:
        self._send = send
        self._number = 0
        self._waiting: deque[_Waiting] = deque()
        self._kept: deque[_Waiting] = deque()
        """Sent, and to be confirmed."""
        self._confirmations: deque[_Confirmation] = deque()
        self._blocked: list[asyncio.Future[None]] = []
        self._events_left = 0
        self._bytes_left = 0
        self._credit = Credit(0, 0)

    @property
    def last_number(self) -> int:
        """The number of the last publication."""
        return self._number

    def begin_after(self, number: int) -> None:
        """Number on after what a broker has of an earlier process of this publisher."""
        self._number = max(self._number, number)

    async def add(
        self, events: Sequence[EncodedEvent], *, confirm: bool, after: int = 0
    ) -> asyncio.Future[None] | None:
        """Take events; returns, with ``confirm``, what is done when all are safe.

        They are numbered from ``after`` on, if that is higher than the last number.
        """
        while len(self._waiting) >= WAITING_MAX:
            blocked = asyncio.get_running_loop().create_future()
            self._blocked.append(blocked)
            await blocked
        # All at once: the numbers of one batch are one range.
        self._number = max(self._number, after)
        first = self._number + 1
        for event in events:
            self._number += 1
            self._waiting.append(_Waiting(self._number, event, confirm))
        if not (confirm and events):
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._confirmations.append(_Confirmation(first, self._number, future))
        return future

    # -- sending ------------------------------------------------------------------------------

    def connected(self, credit: Credit) -> None:
        """Begin with a new connection: send again what is not confirmed."""
        self._credit = credit
        self._events_left, self._bytes_left = credit.events, credit.bytes
        self._waiting = deque(sorted([*self._kept, *self._waiting]))
        self._kept.clear()

    def grant(self, credit: Credit) -> None:
        """Take more credit."""
        self._events_left += credit.events - self._credit.events
        self._bytes_left += credit.bytes - self._credit.bytes
        self._credit = credit

    def flush(self) -> None:
        """Send what the credit allows."""
        while self._waiting and self._events_left > 0 and self._bytes_left > 0:
            block = self._next_block()
            events = EventBlock.of_encoded([each.event for each in block])
            # The event that uses the credit up may exceed it.
            count = int(np.searchsorted(events.starts[:-1], self._bytes_left))
            if count < len(block):
                events, block = events.select(np.arange(count)), block[:count]
            first = block[0]
            self._send(Publish(first.number, events, first.confirm))
            self._events_left -= count
            self._bytes_left -= int(events.starts[-1])
            for _ in range(count):
                sent = self._waiting.popleft()
                if sent.confirm:
                    self._kept.append(sent)
        if len(self._waiting) < WAITING_MAX:
            blocked, self._blocked = self._blocked, []
            for future in blocked:
                if not future.done():
                    future.set_result(None)

    def _next_block(self) -> list[_Waiting]:
        """The next events that one frame takes: numbered one after the other, of one kind."""
        first = self._waiting[0]
        block: list[_Waiting] = []
        for each in islice(self._waiting, min(self._events_left, BLOCK_EVENTS_MAX)):
            if each.number != first.number + len(block) or each.confirm != first.confirm:
                break
            block.append(each)
        return block

    # -- answers ------------------------------------------------------------------------------

    def confirmed(self, message: Confirmed) -> None:
        """Take a confirmation of all publications up to a number."""
        while self._kept and self._kept[0].number <= message.number:
            self._kept.popleft()
        while self._confirmations and self._confirmations[0].last <= message.number:
            confirmation = self._confirmations.popleft()
            if confirmation.future.done():
                continue
            if confirmation.problems:
                number, error = min(confirmation.problems.items())
                if confirmation.first != confirmation.last:
                    place, count = number - confirmation.first, len(confirmation.problems)
                    error.add_note(f"event {place} of the batch; {count} of them were refused")
                confirmation.future.set_exception(error)
            else:
                confirmation.future.set_result(None)

    def refused(self, message: NotPublished) -> bool:
        """Take a refusal; returns whether somebody waits for this publication."""
        for each in self._confirmations:
            if each.first <= message.number <= each.last:
                each.problems[message.number] = message.problem.to_error()
                return True
        return False

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits to be sent or confirmed."""
        return not (self._waiting or self._kept)

    def fail(self, error: Exception) -> None:
        """Let all who wait fail."""
        futures: Iterable[asyncio.Future[None]] = [
            *(each.future for each in self._confirmations),
            *self._blocked,
        ]
        self._confirmations.clear()
        self._blocked.clear()
        self._waiting.clear()
        self._kept.clear()
        for future in futures:
            if not future.done():
                future.set_exception(error)
