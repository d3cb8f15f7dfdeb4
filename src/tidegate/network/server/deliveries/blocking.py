"""Publishers that wait for a subscriber whose slow policy is `block`.

Rules.

(1) While more deliveries wait for the subscriber than its bound, nothing is taken of the clients of
    this broker that published them. What they have sent stays in their connections, and they get no
    credit for more. Publishers at other brokers do not wait: links never stand still.
(2) This ends when half of the deliveries have gone, when the subscriber disconnects, or after
    `ClientLimits.block_s`. Then the subscriber has lost its right until half have gone: the oldest
    deliveries beyond its bound are dropped and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.routing.messages import Client

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.sessions import ClientSession

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Hold:
    """What one subscriber holds back."""

    until: float
    publishers: set[str] = field(default_factory=set)


class Blocking:
    """Knows which publishers are held back."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._holds: dict[str, _Hold] = {}
        """By the identity of the subscriber."""
        self._held: set[str] = set()
        """The publishers of all holds."""
        self._published: dict[str, set[str]] = {}
        """By subscriber: whose events it was given in this turn."""

    def holds(self, identity: str) -> bool:
        """Whether nothing is taken of a publisher now."""
        return identity in self._held

    def given(self, session: ClientSession, publishers: Iterable[str]) -> None:
        """Note whose events a subscriber with the policy has got in this turn."""
        self._published.setdefault(session.client.identity, set()).update(publishers)

    def look_at(self, session: ClientSession) -> None:
        """Hold publishers back, or let them go, by what waits for a subscriber after a turn."""
        identity, queue = session.client.identity, session.deliveries
        publishers = self._published.pop(identity, set())
        if len(queue) * 2 <= queue.events_max:
            queue.is_patient = True
            self.release(session)
        elif len(queue) > queue.events_max and queue.is_patient and publishers:
            hold = self._holds.get(identity)
            if hold is None:
                limit = self._server.settings.limits.block_s
                hold = self._holds[identity] = _Hold(self._server.loop.time() + limit)
                self._server.counters.held_back += 1
                _log.warning(
                    "%s takes its deliveries too slowly; its publishers are held back", identity,
                    extra={"event": "publishers_held_back", "client": identity},
                )  # fmt: skip
            hold.publishers |= publishers
            self._held |= publishers

    def release(self, session: ClientSession) -> None:
        """Let go what a subscriber holds back."""
        if self._holds.pop(session.client.identity, None) is not None:
            self._count_anew()

    def expire(self, now: float) -> None:
        """Let go what was held back for too long; deliveries are dropped then."""
        for identity, hold in list(self._holds.items()):
            if hold.until > now:
                continue
            del self._holds[identity]
            session = self._server.sessions.get(Client(identity))
            if session is not None:
                session.deliveries.is_patient = False
                self._server.output.touch(session)
                self._server.turns.wake()
        self._count_anew()

    def release_all(self) -> None:
        """Let go all, because the broker drains."""
        self._holds.clear()
        self._held.clear()

    def _count_anew(self) -> None:
        self._held = {name for each in self._holds.values() for name in each.publishers}
