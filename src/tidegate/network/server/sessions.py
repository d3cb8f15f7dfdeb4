"""Sessions of clients: what a broker process knows of a client beside its subscriptions.

A session outlives its connection. That of an ordinary client ends some time after its connection;
its deliveries wait in memory until then. A durable client keeps its subscriptions and its queue on
disk, also when the broker or the client starts again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.language.patterns.pattern import Pattern
from tidegate.network.server.deliveries.delivery_queue import DeliveryQueue
from tidegate.network.wire.requests import Done, Refused
from tidegate.routing.messages import Client

if TYPE_CHECKING:
    from tidegate.network.server.deliveries.replays import Replay
    from tidegate.network.server.served_connection import ServedConnection

PATTERN_HANDLES = 1 << 31
"""Handles of patterns begin here; those of named subscriptions are below."""


@dataclass(slots=True)
class ClientSession:
    """One client of this broker."""

    client: Client
    number: int
    """Chosen by the client's process; another number is another process."""
    deliveries: DeliveryQueue
    is_durable: bool = False
    queue: int | None = None
    """The number of its queue in the store, if it is durable."""
    cursor: int = 0
    """Of a durable client: the last position that was put in ``deliveries``, or was sent."""
    is_behind: bool = False
    """Of a durable client: whether the store has deliveries that must come before new ones."""
    owes_held: bool = False
    """Whether the client has moved here and is to be told what it has, once it has arrived."""
    connection: ServedConnection | None = None
    ends_at: float | None = None
    """When a session without a connection ends, on the clock of the event loop."""
    delivered: int = 0
    """Deliveries since the session began."""
    replays: deque[Replay] = field(default_factory=deque)
    """What is replayed to the client before anything else, one after the other."""
    quiet_until: float = 0.0
    """Until when the log says no more that this client is slow."""
    handled: int = 0
    """The last request that was handled."""
    answers: deque[Done | Refused] = field(default_factory=deque)
    """The last answers, in case the connection breaks before they arrive."""
    epoch: int = -1
    """The epoch of its publications; -1 before the first connection."""
    published: int = 0
    """The last publication of the epoch that was taken."""
    patterns: dict[int, Pattern] = field(default_factory=dict)
    """The patterns of the client, by handle."""
    last_pattern: int = PATTERN_HANDLES

    def answer(self, answer: Done | Refused, answers_max: int) -> None:
        """Keep an answer, and send it if there is a connection."""
        self.answers.append(answer)
        while len(self.answers) > answers_max:
            self.answers.popleft()
        if self.connection is not None:
            self.connection.send(answer)

    def handle_of_pattern(self, pattern: Pattern) -> int | None:
        """The handle of a pattern of the client."""
        return next((handle for handle, each in self.patterns.items() if each == pattern), None)

    def add_pattern(self, pattern: Pattern) -> int:
        """The handle of a pattern, a new one if the client did not have the pattern."""
        handle = self.handle_of_pattern(pattern)
        if handle is None:
            self.last_pattern += 1
            handle = self.last_pattern
            self.patterns[handle] = pattern
        return handle
