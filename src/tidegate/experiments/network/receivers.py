"""A process that holds connections with subscriptions, updates them, and counts what comes.

The process that measures gives it commands through a pipe:

    Check()                 keep all pairs from now on
    Expect(deliveries)      answer with a `Count` when so many have come since the last command
    Update(per_s, ...)      update parameters, until the next command
    None                    end

Times are those of `time.monotonic`, which all processes of a machine share.
"""

from __future__ import annotations

import multiprocessing
import random
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from typing import Any

import numpy as np

from tidegate.errors import NetworkError
from tidegate.experiments.network.load import PARAMETER, Wanted
from tidegate.experiments.network.raw_client import RawClient, Received
from tidegate.language.parsing.bulk import BulkParser
from tidegate.language.shapes import Row, Shape
from tidegate.matching.arrays import I64
from tidegate.network.wire import requests as wire
from tidegate.network.wire.values import wire_cells

ROWS_MAX = 1_000
UPDATES_UNANSWERED_MAX = 500
"""Of one connection; a broker takes 1,000."""
_STEP_S = 0.002


@dataclass(frozen=True, slots=True)
class Expect:
    """Wait until so many deliveries have come since the last `Expect`."""

    deliveries: int
    timeout_s: float
    with_times: bool = False
    with_pairs: bool = False


@dataclass(frozen=True, slots=True)
class Update:
    """Update parameters, so many a second in all, until the next command."""

    per_s: int


@dataclass(slots=True)
class Count:
    """What has come."""

    deliveries: int
    matches: int
    missed: int
    ended: float
    """When the last delivery came."""
    latencies_us: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: I64 = field(default_factory=lambda: np.zeros(0, np.int64))
    rows: I64 = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(slots=True)
class Updated:
    """What was updated."""

    updates: int
    seconds: float
    least: dict[int, int]
    """The values of the subscriptions that were updated."""


class Receivers:
    """Runs the process."""

    def __init__(self, port: int, by_connection: Sequence[Sequence[Wanted]]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, there = context.Pipe()
        self._process = context.Process(target=_run, args=(port, by_connection, there), daemon=True)
        self._process.start()
        there.close()

    def wait_until_subscribed(self) -> float:
        """Wait until all subscriptions are in force; returns how long it took, in seconds."""
        return float(self._answer())

    def tell(self, command: object) -> None:
        """Give a command."""
        self._pipe.send(command)

    def count(self) -> Count:
        """The answer to `Expect`."""
        answer = self._answer()
        assert isinstance(answer, Count)
        return answer

    def updated(self) -> Updated:
        """The answer that the command after `Update` brings about."""
        answer = self._answer()
        assert isinstance(answer, Updated)
        return answer

    def _answer(self) -> Any:
        try:
            answer = self._pipe.recv()
        except EOFError:
            raise NetworkError("the process of the subscribers has ended") from None
        if isinstance(answer, str):
            raise NetworkError(f"the process of the subscribers has failed: {answer}")
        return answer

    def close(self) -> None:
        """End the process."""
        with suppress(OSError):  # it may have ended by itself
            self._pipe.send(None)
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._pipe.close()


def _run(port: int, by_connection: Sequence[Sequence[Wanted]], pipe: Pipe) -> None:
    try:
        subscribers = [
            _Subscriber(port, f"subscriber-{at}", wanted) for at, wanted in enumerate(by_connection)
        ]
        began = time.monotonic()
        for each in subscribers:
            each.subscribe()
        for each in subscribers:
            each.wait_until_in_force()
        pipe.send(time.monotonic() - began)
        _Loop(subscribers, pipe).run()
    except (NetworkError, OSError) as error:
        pipe.send(str(error) or repr(error))


class _Subscriber:
    """One connection and its subscriptions."""

    def __init__(self, port: int, identity: str, wanted: Sequence[Wanted]) -> None:
        self.client = RawClient(port, identity)
        self.received = Received()
        self.wanted = wanted
        self.handles: dict[int, int] = {}
        """The rows of subscriptions by handle."""
        self._by_row: list[tuple[int, int]] = []
        self._version = 0
        self.updates = 0

    def subscribe(self) -> None:
        """Send all subscriptions, those of one shape together."""
        parser = BulkParser()
        by_shape: dict[Shape, list[tuple[Wanted, Row]]] = {}
        for each in self.wanted:
            shape, row = parser.read(each.text)
            by_shape.setdefault(shape, []).append((each, row))
        self._asked: list[list[Wanted]] = []
        for shape, members in by_shape.items():
            for start in range(0, len(members), ROWS_MAX):
                chunk = members[start : start + ROWS_MAX]
                number = self.client.wire.filter_shape(shape)
                assert number is not None  # the shapes of `market` are short
                self.client.wire.send(
                    wire.SubscribeRows(
                        self.client.next_request(), number,
                        [f"s{each.row}" for each, _ in chunk],
                        [wire_cells(row) for _, row in chunk],
                        [{PARAMETER: each.least} for each, _ in chunk],
                        None, self._version + 1, None, True,
                    )
                )  # fmt: skip
                self._version += len(chunk)
                self._asked.append([each for each, _ in chunk])
        self.client.flush()

    def wait_until_in_force(self) -> None:
        """Take the answers and wait for the last confirmation."""
        in_force, asked = 0, iter(self._asked)
        while in_force < len(self.wanted):
            message = self.client.next_message()
            if isinstance(message, wire.InForce):
                in_force += 1
            elif isinstance(message, wire.Done):
                for each, handle in zip(next(asked), message.handles, strict=True):
                    if not handle:
                        raise NetworkError(f"{each.text!r} was refused: {message.problems}")
                    self.handles[handle] = each.row
                    self._by_row.append((handle, each.row))

    def update(self, count: int, random_: random.Random, least: dict[int, int]) -> int:
        """Send some updates, as many as the broker takes now; returns how many."""
        room = UPDATES_UNANSWERED_MAX - (self.updates - self.received.answers)
        count = min(count, room)
        for _ in range(count):
            handle, row = self._by_row[random_.randrange(len(self._by_row))]
            self._version += 1
            value = least[row] = random_.randrange(1_000_001)
            self.client.wire.send(
                wire.Update(self.client.next_request(), handle, self._version, {PARAMETER: value})
            )
        self.updates += max(0, count)
        if count > 0:
            self.client.flush()
        return max(0, count)


class _Loop:
    """Reads all connections and follows the commands."""

    def __init__(self, subscribers: Sequence[_Subscriber], pipe: Pipe) -> None:
        self._subscribers = subscribers
        self._pipe = pipe
        self._poll = select.epoll()
        self._by_fd = {each.client.socket.fileno(): each for each in subscribers}
        for fd in self._by_fd:
            self._poll.register(fd, select.EPOLLIN)
        self._poll.register(pipe.fileno(), select.EPOLLIN)
        self._expect: Expect | None = None
        self._deadline = 0.0
        self._update: Update | None = None
        self._least: dict[int, int] = {}
        self._sent = 0
        self._random = random.Random(1)
        self._turn = 0
        self._latencies: list[I64] = []

    def run(self) -> None:
        """Until the pipe says None."""
        while True:
            timeout = _STEP_S if self._update else 0.2
            for fd, _ in self._poll.poll(timeout):
                if fd == self._pipe.fileno():
                    if not self._command(self._pipe.recv()):
                        return
                else:
                    self._read(self._by_fd[fd])
            if self._expect is not None:
                self._check_expected()
            if self._update is not None:
                self._send_updates()

    def _command(self, command: object) -> bool:
        if self._update is not None:
            self._pipe.send(self._updated())
        match command:
            case Expect():
                self._expect = command
                self._deadline = time.monotonic() + command.timeout_s
                for each in self._subscribers:
                    each.received.times_us = [] if command.with_times else None
                    each.received.pairs = [] if command.with_pairs else None
            case Update():
                self._update, self._began, self._sent = command, time.monotonic(), 0
        return command is not None

    def _read(self, subscriber: _Subscriber) -> None:
        data = subscriber.client.socket.recv(1 << 20)
        if not data:
            raise NetworkError("the broker has closed the connection of a subscriber")
        for frame in subscriber.received.feed(data):
            for message in subscriber.client.wire.receive(frame):
                if isinstance(message, wire.Missed):
                    subscriber.received.missed += message.count
                elif isinstance(message, wire.Refused):
                    raise NetworkError(f"an update was refused: {message.problem.reason}")
        times, subscriber.received.times_us = subscriber.received.times_us, []
        if times is None:
            subscriber.received.times_us = None
        elif times:
            self._latencies.append(time.time_ns() // 1_000 - np.concatenate(times))

    def _check_expected(self) -> None:
        expect, received = self._expect, [each.received for each in self._subscribers]
        assert expect is not None
        deliveries = sum(each.deliveries for each in received)
        now = time.monotonic()
        if deliveries < expect.deliveries and now < self._deadline:
            return
        count = Count(
            deliveries, sum(each.matches for each in received),
            sum(each.missed for each in received), now,
        )  # fmt: skip
        if self._latencies:
            count.latencies_us = np.concatenate(self._latencies)
            self._latencies = []
        if expect.with_pairs:
            count.numbers, count.rows = self._pairs()
        for each in received:
            each.deliveries = each.matches = each.missed = 0
        self._expect = None
        self._pipe.send(count)

    def _pairs(self) -> tuple[I64, I64]:
        numbers, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for each in self._subscribers:
            for found, handles in each.received.pairs or ():
                numbers.append(found)
                rows.append(np.array([each.handles[one] for one in handles.tolist()], np.int64))
        return np.concatenate(numbers), np.concatenate(rows)

    def _send_updates(self) -> None:
        assert self._update is not None
        due = int((time.monotonic() - self._began) * self._update.per_s) - self._sent
        for subscriber in self._in_turn():
            if due <= 0:
                return
            share = max(1, due // 4)
            sent = subscriber.update(min(due, share), self._random, self._least)
            self._sent += sent
            due -= sent

    def _in_turn(self) -> Iterator[_Subscriber]:
        """All subscribers, each time beginning with another one."""
        count = len(self._subscribers)
        for _ in range(count):
            self._turn = (self._turn + 1) % count
            yield self._subscribers[self._turn]

    def _updated(self) -> Updated:
        """End the updates when the last one is answered."""
        seconds = time.monotonic() - self._began
        self._update = None
        while any(each.updates > each.received.answers for each in self._subscribers):
            for fd, _ in self._poll.poll(10):
                if fd != self._pipe.fileno():
                    self._read(self._by_fd[fd])
        return Updated(self._sent, seconds, dict(self._least))
