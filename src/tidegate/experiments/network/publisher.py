"""A publisher of the network benchmark: frames that were encoded before, within the credit."""

from __future__ import annotations

import select
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tidegate.errors import NetworkError
from tidegate.experiments.network.raw_client import RawClient
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Confirmed, Credit, NotPublished

SILENCE_MAX_S = 60.0


class Publisher:
    """One connection that publishes the events of a block, again and again."""

    def __init__(self, port: int, identity: str = "publisher") -> None:
        self.client = RawClient(port, identity)
        welcome = self.client.welcome
        self._credit = welcome.credit_events
        self._bytes_credit = welcome.credit_bytes
        self._sent = self._sent_bytes = 0
        self._number = 0
        self._confirmed = 0
        self._answers_due = 0

    def publish(self, events: EventBlock, frame_events: int, *, confirm: bool = False) -> float:
        """Publish events as fast as the credit allows; returns when the first one left."""
        blocks = cut(events, frame_events)
        began = time.monotonic()
        for block in blocks:
            self._send(block, confirm=confirm)
        return began

    def publish_at(self, events: EventBlock, per_s: int, seconds: float, step_s: float) -> int:
        """Publish at a steady rate, each event with the time at which it leaves.

        Returns the number of events; the block begins again when it is used up.
        """
        steps = round(seconds / step_s)
        blocks = cut(events, max(1, round(per_s * step_s)))
        began, sent = time.monotonic(), 0
        for step in range(steps):
            wait_s = began + step * step_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            block = blocks[step % len(blocks)]
            now_us = time.time_ns() // 1_000
            self._send(block.with_times(np.full(len(block), now_us)), confirm=False)
            sent += len(block)
        return sent

    def _send(self, block: EventBlock, *, confirm: bool) -> None:
        self._take()
        while self._sent >= self._credit or self._sent_bytes >= self._bytes_credit:
            self._wait()
        self.client.wire.send(Publish(self._number + 1, block, confirm))
        self._number += len(block)
        self._sent += len(block)
        self._sent_bytes += int(block.starts[-1])
        self.client.flush()

    def _wait(self) -> None:
        if not select.select([self.client.socket], [], [], SILENCE_MAX_S)[0]:
            raise NetworkError("the broker has said nothing for a minute")
        self._take()

    def _take(self) -> None:
        for message in self.client.messages_now():
            match message:
                case Credit(events, bytes):
                    self._credit, self._bytes_credit = events, bytes
                case Confirmed(number):
                    self._confirmed = number
                case wire.Done() | wire.Refused():
                    self._answers_due -= 1
                case NotPublished(_, problem):
                    raise NetworkError(f"an event was refused: {problem.reason}")

    @property
    def published(self) -> int:
        """How many events were published."""
        return self._number

    def wait_until_taken(self) -> None:
        """Wait until the broker has handled all events."""
        # It handles what comes on a connection in order, so the answer to a request tells, although
        # it is that there is nothing to resume.
        self.client.wire.send(wire.Resume(self.client.next_request()))
        self.client.flush()
        self._answers_due += 1
        while self._answers_due:
            self._wait()

    def wait_until_confirmed(self) -> float:
        """Wait until all is confirmed; returns when it was."""
        while self._confirmed < self._number:
            self._wait()
        return time.monotonic()

    def close(self) -> None:
        """Close the connection."""
        self.client.socket.close()


def cut(events: EventBlock, size: int) -> list[EventBlock]:
    """The events in blocks of a size; the last one may be smaller."""
    bounds = [*range(0, len(events), size), len(events)]
    return [events.select(np.arange(*each)) for each in pairwise(bounds)]


def confirmed_one_by_one(port: int, events: EventBlock, publishers: int, seconds: float) -> float:
    """Events a second that publishers get confirmed that wait after each one."""
    clients = [RawClient(port, f"one-by-one-{at}") for at in range(publishers)]
    try:
        return _one_by_one(clients, cut(events, 1), seconds)
    finally:
        for each in clients:
            each.socket.close()


def _one_by_one(
    clients: Sequence[RawClient], blocks: Sequence[EventBlock], seconds: float
) -> float:
    numbers = [0] * len(clients)
    by_fd = {each.socket.fileno(): at for at, each in enumerate(clients)}
    began, confirmed = time.monotonic(), 0

    def send(at: int) -> None:
        block = blocks[(numbers[at] * len(clients) + at) % len(blocks)]
        numbers[at] += 1
        clients[at].wire.send(Publish(numbers[at], block, True))
        clients[at].flush()

    with select.epoll() as poll:
        for fd, at in by_fd.items():
            poll.register(fd, select.EPOLLIN)
            send(at)
        while time.monotonic() < began + seconds:
            for fd, _ in poll.poll(1):
                at = by_fd[fd]
                for message in clients[at].messages_now():
                    if isinstance(message, NotPublished):
                        raise NetworkError(f"an event was refused: {message.problem.reason}")
                    if isinstance(message, Confirmed) and message.number == numbers[at]:
                        confirmed += 1
                        send(at)
    return confirmed / (time.monotonic() - began)
