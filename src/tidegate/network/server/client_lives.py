"""How sessions of clients begin and end, at the broker and in the store."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from tidegate.errors import AccessError
from tidegate.network.server.deliveries.delivery_queue import DeliveryQueue
from tidegate.network.server.sessions import ClientSession
from tidegate.routing import messages as m

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.turns import Turn

_log = logging.getLogger(__name__)

CLIENT_QUEUE = "client"
"""The kind of the queues of clients in the store."""


class ClientLives:
    """Begins and ends the sessions of clients."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._ending: list[ClientSession] = []
        self._has_long_queues = False
        self._handed_over: list[m.Client] = []
        self._arrived: list[m.Client] = []

    def begin(self) -> None:
        """Take part in the moves of clients from and to this broker."""
        self._server.broker.moves.take_part(self._hand_over, self._arrived.append)

    # -- moves --------------------------------------------------------------------------------

    def _hand_over(self, client: m.Client) -> list[m.Deliver]:
        """What a client is to get that moves to another broker, before what the broker has kept."""
        session = self._server.sessions.get(client)
        if session is None:
            return []
        self._handed_over.append(client)
        output = self._server.output
        if session.is_durable:
            return output.stored_deliveries(session)
        return output.kept_deliveries(session, session.deliveries.take_all())

    def settle_moves(self, turn: Turn) -> None:
        """Forget clients that have left in this turn, and tell those that have arrived."""
        server = self._server
        left, self._handed_over = self._handed_over, []
        for client in left:
            session = server.sessions.get(client)
            if session is not None and client not in server.broker.sessions:
                self.departed(session, turn)
                del server.sessions[client]
                old, session.connection = session.connection, None
                if old is not None:
                    old.session = None
                    moved = AccessError("the client has moved to another broker")
                    turn.after_commit.append(partial(old.end, moved))
        for client in self._arrived:
            session = server.sessions.get(client)
            if session is not None:
                if session.is_durable:
                    server.durable.save_all(client, turn.transaction)
                turn.after_commit.append(partial(self.tell_held, session))
        self._arrived.clear()

    def tell_held(self, session: ClientSession) -> None:
        """Tell a client that has moved here what it has; if it is away, when it comes back."""
        is_arriving = self._server.broker.sessions.is_arriving(session.client)
        if session.owes_held and session.connection is not None and not is_arriving:
            session.owes_held = False
            for frame in self._server.durable.held(session.client):
                session.connection.send(frame)

    # -- begin and end ------------------------------------------------------------------------

    def make_durable(self, session: ClientSession, turn: Turn) -> None:
        """Keep a new client in the store."""
        store = self._server.store
        assert store is not None  # Admission refuses durable clients otherwise.
        session.queue = store.queue(CLIENT_QUEUE, session.client.identity)
        self._server.durable.begin(session, turn.transaction)

    def restore(self, client: m.Client) -> None:
        """Make the session of a client that the store has kept, without a connection."""
        server = self._server
        if client in server.sessions:
            return
        assert server.store is not None
        session = ClientSession(client, 0, DeliveryQueue(0), is_durable=True, is_behind=True)
        session.queue = server.store.queue(CLIENT_QUEUE, client.identity)
        server.sessions[client] = session

    def connection_lost(self, session: ClientSession) -> None:
        """Keep a session for a while; a durable one for good."""
        _log.info(
            "the connection of %s has ended", session.client.identity,
            extra={"event": "client_disconnected", "client": session.client.identity},
        )  # fmt: skip
        session.connection = None
        session.deliveries.disconnected()
        session.deliveries.is_patient = False  # nobody waits for a client that is away
        self._server.blocking.release(session)
        if not session.is_durable:
            session.ends_at = self._server.loop.time() + self._server.settings.limits.grace_s

    def expire(self, now: float) -> None:
        """End the sessions whose time is over, in the next turn."""
        for session in self._server.sessions.values():
            if session.ends_at is not None and session.ends_at <= now:
                self._ending.append(session)
        if self._ending:
            self._server.turns.wake()

    def look_at_queues(self) -> None:
        """Have queues on disk shortened in the next turn, if any is too long."""
        store, limit = self._server.store, self._server.settings.limits.durable_queue_events_max
        self._has_long_queues = store is not None and any(
            session.queue is not None and store.length(session.queue) > limit
            for session in self._server.sessions.values()
        )
        if self._has_long_queues:
            self._server.turns.wake()

    def shorten_queues(self, turn: Turn) -> None:
        """Drop the oldest events of queues on disk that are too long, count them, and say so."""
        store, limit = self._server.store, self._server.settings.limits.durable_queue_events_max
        if store is None or not self._has_long_queues:
            return
        self._has_long_queues = False
        for session in self._server.sessions.values():
            if session.queue is None:
                continue
            dropped = store.shorten(turn.transaction, session.queue, limit)
            if not dropped:
                continue
            self._server.counters.missed["disk"] += dropped
            session.deliveries.missed_total += dropped
            # What waits in memory may be gone from the disk: it is read again.
            session.deliveries.clear()
            session.is_behind = True
            if session.connection is not None:
                self.tell_missed(session, turn)
                self._server.output.touch(session)
            _log.warning(
                "the queue of %s on disk is too long: %d events were dropped",
                session.client.identity, dropped,
                extra={"event": "queue_shortened", "client": session.client.identity,
                       "missed": dropped},
            )  # fmt: skip

    def tell_missed(self, session: ClientSession, turn: Turn) -> None:
        """Have a durable client told what was dropped of its queue on disk."""
        store = self._server.store
        if store is None or session.queue is None or not store.missed(session.queue):
            return
        session.deliveries.missed += store.missed(session.queue)
        store.set_missed(turn.transaction, session.queue, 0)

    def end_expired(self, turn: Turn) -> None:
        """End sessions whose clients have not come back in time."""
        ending, self._ending = self._ending, []
        for session in ending:
            if session.connection is None and session.ends_at is not None:
                self.end(session, turn)

    def end(self, session: ClientSession, turn: Turn) -> None:
        """End a session: the broker cancels all that its client has asked for."""
        server = self._server
        handled = server.broker.handle_requests([(session.client, m.Depart())], server.now_us())
        server.dispatch(handled.sent, turn)
        self.departed(session, turn)
        server.sessions.pop(session.client, None)

    def departed(self, session: ClientSession, turn: Turn) -> None:
        """Forget what the store has of a client that has departed."""
        if session.is_durable:
            store = self._server.store
            assert store is not None
            self._server.durable.remove(session.client, turn.transaction)
            store.remove_queue(turn.transaction, CLIENT_QUEUE, session.client.identity)
            session.is_durable, session.queue = False, None
            session.is_behind = False
        session.patterns.clear()
