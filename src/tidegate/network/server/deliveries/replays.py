"""Replays: what the store has kept of a time is delivered first, then what comes from now on.

Rules.

(1) A replay has the events that the store has between a time and the turn in which it was asked
    for, in the order in which they were stored. So nothing is left out and nothing comes twice
    between it and the deliveries that follow.
(2) Until it is through, other deliveries to its client wait in their queue. It goes as fast as the
    client gives credit, a chunk a turn; memory has one chunk of it.
(3) It is matched with the present version of its subscription, at the time of each event.
(4) Its deliveries have no positions and are not acknowledged, also those of a durable client. When
    the session ends, what is left of it ends too.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import AccessError
from tidegate.language.semantics import holds
from tidegate.matching.poset.wanted_filter import event_us
from tidegate.matching.subscription import Moment
from tidegate.network.server.deliveries.stored_events import publications_of
from tidegate.network.wire.deliveries import Deliver
from tidegate.routing.messages import NamedSubscription, Publication
from tidegate.routing.spaces import DEFAULT

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.sessions import ClientSession

_log = logging.getLogger(__name__)

CHUNK_EVENTS = 1_000
"""Stored events that are looked at in one turn for one client."""
REPLAYS_MAX = 100
"""Replays that wait for one client."""


@dataclass(slots=True)
class Replay:
    """A replay that is under way."""

    name: str
    """The subscription."""
    after: int
    """The position of the last event that was looked at."""
    until: int
    waiting: Deliver | None = None
    """Matching events that were read and wait for credit."""


class Replays:
    """Delivers what the store has kept."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def check(self, session: ClientSession) -> None:
        """Raise unless this broker can replay anything for a client."""
        store = self._server.store
        if store is None:
            raise AccessError("this broker has no store, so it replays nothing; use --data")
        if not store.retention.keep:
            raise AccessError(
                "this broker keeps no events for a replay; set `keep` in [store] of its settings"
            )
        if len(session.replays) >= REPLAYS_MAX:
            raise AccessError(f"{REPLAYS_MAX} replays wait for this client already")

    def begin(self, session: ClientSession, name: str, since_us: int) -> None:
        """Replay for a subscription what was stored from a time on, up to now."""
        store = self._server.store
        assert store is not None  # `check` says so
        session.replays.append(Replay(name, max(0, since_us - 1), store.last_position))
        session.deliveries.is_held = True
        self._server.output.touch(session)
        _log.info(
            "%s replays for %s", session.client.identity, name,
            extra={"event": "replay_begun", "client": session.client.identity,
                   "since_us": since_us},
        )  # fmt: skip

    def end_all(self, session: ClientSession) -> None:
        """End the replays of a session that has ended."""
        session.replays.clear()
        session.deliveries.is_held = False

    def advance(self, session: ClientSession) -> None:
        """Send the next chunk, as far as credit goes; asks for another turn if there is more."""
        if not session.replays or session.connection is None:
            return
        replay, queue = session.replays[0], session.deliveries
        if replay.waiting is None and queue.has_credit_at_all and not self._read(session, replay):
            session.replays.popleft()
            queue.is_held = bool(session.replays)
        if replay.waiting is not None:
            now, replay.waiting = queue.split_for_credit(replay.waiting)
            if now is not None:
                session.connection.send(now)
                session.delivered += len(now)
                self._server.counters.delivered += len(now)
        if replay.waiting is None and queue.has_credit_at_all:
            self._server.output.touch(session)
            self._server.turns.wake()

    def _read(self, session: ClientSession, replay: Replay) -> bool:
        """Read the next events and keep those that match; returns False after the last."""
        store, named = self._server.store, self._server.broker.named
        assert store is not None
        present = named.present(session.client, replay.name)
        if present is None:
            return False  # it was cancelled
        rows = store.read_events(replay.after, replay.until, CHUNK_EVENTS)
        if not rows:
            return False
        replay.after = rows[-1].position
        sound = [each for each in rows if store.description(each.shape) is not None]
        if not sound:
            return True
        block = publications_of(store, sound)
        found = [
            index
            for index in range(len(block))
            if self._is_granted(session, block.publication(index))
            and self._matches(present, block.publication(index))
        ]
        if found:
            handle = named.handle(session.client, replay.name) + 1
            replay.waiting = Deliver(
                block.select(np.array(found, np.int64)),
                np.zeros(len(found), np.int64),
                np.ones(len(found), np.int64),
                np.full(len(found), handle, np.int64),
                np.full(len(found), present.version, np.int64),
            )
        return True

    def _is_granted(self, session: ClientSession, publication: Publication) -> bool:
        """Whether a client may get an event at all; a subscription may ask for more."""
        granted = self._server.broker.grants.of(session.client).subscribe
        return granted is None or granted.matches(publication.event)

    def _matches(self, present: NamedSubscription, publication: Publication) -> bool:
        subscription, _, space = present
        broker, event = self._server.broker, publication.event
        if broker.spaces and (publication.space or DEFAULT) != (space or DEFAULT):
            return False
        time_us = event_us(event)
        moment = Moment(time_us, broker.variables.at(time_us))
        environment = subscription.exact_environment(moment)
        return holds(subscription.filter.node, event.attributes, environment)
