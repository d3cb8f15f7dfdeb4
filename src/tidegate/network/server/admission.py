"""Who may connect, and with which session: the broker's side of the handshake."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING

from tidegate.errors import AccessError, LinkProtocolError, OverloadedError
from tidegate.network.server.deliveries.delivery_queue import DeliveryQueue
from tidegate.network.server.sessions import ClientSession
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.requests import Missed
from tidegate.routing import messages as m

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection
    from tidegate.network.server.turns import Turn

_log = logging.getLogger(__name__)

DURABLE_QUEUE_MAX = 10_000
"""Deliveries that wait in memory for a durable client; those beyond are read from the store."""


class Admission:
    """Answers `Hello`."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._session_number = random.getrandbits(62)

    def admit(self, connection: ServedConnection, hello: Hello, turn: Turn) -> None:
        """Admit whoever has connected, or say why not."""
        server = self._server
        try:
            if not server.authentication.proves(connection, hello):
                return
            server.check_admission(hello)
            if hello.role == "broker":
                server.links.admit(connection, hello, turn)
                return
        except (AccessError, OverloadedError, LinkProtocolError) as error:
            server.log_refusal(connection, hello, error)
            connection.end(error, 1_000 if isinstance(error, OverloadedError) else None)
            return
        session, is_resumed = self._session(hello, turn)
        server.lives.tell_missed(session, turn)
        self._attach(session, connection, hello, is_resumed=is_resumed)
        held = server.durable.held(session.client) if session.is_durable else []
        answers = [each for each in session.answers if each.number > hello.answered]

        def send() -> None:
            # Only now it is known what became of the publications of this turn.
            stored = server.published.get(hello.identity, (0, 0))
            if session.epoch != hello.epoch:
                session.epoch = hello.epoch
                session.published = stored[1] if stored[0] == hello.epoch else 0
            connection.wire.welcome(self._welcome(session, is_resumed=is_resumed))
            if not is_resumed:
                for frame in held:
                    connection.send(frame)
            for answer in answers:
                connection.send(answer)
            if session.deliveries.missed:
                connection.send(Missed(session.deliveries.missed))
                session.deliveries.missed = 0
            server.lives.tell_held(session)
            server.output.touch(session)

        turn.after_commit.append(send)
        _log.info(
            "%s %s from %s", hello.identity, "is back" if is_resumed else "is connected",
            connection.address,
            extra={"event": "client_connected", "client": hello.identity,
                   "address": connection.address, "is_resumed": is_resumed,
                   "is_durable": hello.is_durable, "software": hello.software},
        )  # fmt: skip

    def _session(self, hello: Hello, turn: Turn) -> tuple[ClientSession, bool]:
        """The session of a client that connects, and whether it is the one from before."""
        server, client = self._server, m.Client(hello.identity)
        session = server.sessions.get(client)
        if session is not None and session.is_durable == hello.is_durable:
            is_resumed = session.number == hello.session
            if session.connection is not None:
                reason = "connected again" if is_resumed else "taken over by another process"
                self._close(session, reason, turn)
            if is_resumed:
                return session, True
            if session.is_durable:
                # The same subscriptions and queue, for another process of the client.
                session.number, session.handled = hello.session, 0
                session.answers.clear()
                session.patterns.clear()
                return session, False
        if session is not None:
            if session.connection is not None:
                self._close(session, "taken over by another process", turn)
            server.lives.end(session, turn)
        session = ClientSession(client, hello.session, DeliveryQueue(0))
        session.is_durable = hello.is_durable
        server.sessions[client] = session
        if session.is_durable:
            server.lives.make_durable(session, turn)
        return session, False

    def _close(self, session: ClientSession, reason: str, turn: Turn) -> None:
        old = session.connection
        assert old is not None
        old.session = session.connection = None
        turn.after_commit.append(lambda: old.end(AccessError(reason)))

    def _attach(
        self,
        session: ClientSession,
        connection: ServedConnection,
        hello: Hello,
        *,
        is_resumed: bool,
    ) -> None:
        limits = self._server.settings.limits
        session.connection, connection.session = connection, session
        session.ends_at = None
        deliveries = session.deliveries
        if not is_resumed:
            self._server.replays.end_all(session)
        deliveries.events_max = DURABLE_QUEUE_MAX if session.is_durable else limits.queue_events_max
        deliveries.overrun_max = limits.publish_events_max
        deliveries.connected(hello)
        if session.is_durable:
            # What waited in memory is read from the store again, in order with what is there.
            deliveries.clear()
            session.cursor = hello.received if is_resumed else 0
            session.is_behind = True
        self._server.entrance.introduced(connection)
        connection.heartbeat_s = limits.heartbeat_ms / 1_000
        connection.silence_max_s = 3 * hello.heartbeat_ms / 1_000
        self._server.flow.connected(connection)

    def _queued(self, session: ClientSession) -> int:
        """The position of the last event that waits for a client in the store."""
        store = self._server.store
        if store is None or session.queue is None:
            return 0
        return store.last_in_queue(session.queue)

    def _welcome(self, session: ClientSession, *, is_resumed: bool) -> Welcome:
        limits = self._server.settings.limits
        return Welcome(
            broker=self._server.settings.name,
            session=self._session_number,
            is_resumed=is_resumed,
            handled=session.handled,
            published=session.published,
            requests_max=limits.requests_max,
            frame_bytes_max=limits.frame_bytes_max,
            credit_events=limits.publish_events_max,
            credit_bytes=limits.publish_bytes_max,
            heartbeat_ms=limits.heartbeat_ms,
            time_us=self._server.now_us(),
            software=self._server.software,
            queued=self._queued(session),
        )
