"""Links to other brokers: sessions that outlive connections, and what goes over them.

Rules.

(1) A link is a session of numbered messages (`routing.durability.link_session`). A connection that
    breaks is only a delay: what was not acknowledged is sent again on the next one.
(2) What has come is acknowledged after the commit of the turn that has handled it.
(3) Confirmed events for a neighbour are in its queue in the store until it acknowledges them. Other
    events are dropped, and counted, while there is no connection.

In the handshake of two brokers `session` is the epoch of the sender's stream; `epoch` (of
`Welcome`: `published`) and `received` are what it has committed of the other's stream; `is_durable`
(of `Welcome`: `is_resumed`) says whether it came back from its durable state.
"""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from tidegate.errors import (
    AccessError,
    LinkProtocolError,
    OverloadedError,
    RoutingError,
    SessionLostError,
)
from tidegate.network.server.durable_links import STREAM, stream_position
from tidegate.network.server.passing_on import selected, stored_notifications
from tidegate.network.server.turns import Turn
from tidegate.network.wire.flow import LinkAck
from tidegate.network.wire.handshake import Hello, Welcome
from tidegate.network.wire.links import Linked, LinkMessage, Notifications
from tidegate.network.wire.publications import IS_CONFIRMED
from tidegate.routing import messages as m
from tidegate.routing.durability.link_session import LinkSession, SessionOpen, StreamPosition
from tidegate.routing.durability.restoring import sync_for

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection

_log = logging.getLogger(__name__)

LINK_QUEUE = "link"
"""The kind of the queues of neighbours in the store."""
PLENTY = 1 << 62
"""Credit of links: what is not acknowledged bounds them, and the socket."""
READ_MAX = 1_000
UNACKNOWLEDGED_MAX = 1_000
"""Messages after which the positions of streams are written, although nothing else is."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A message for a neighbour."""

    message: LinkMessage
    position: int = 0
    """The last position in the store of the events in it; 0 if none is there."""


class Link:
    """The link to one neighbour."""

    def __init__(self, epoch: int, peer: m.Peer | None = None) -> None:
        self.peer = peer
        """The name of the neighbour; None before the first handshake of a link made here."""
        self.session: LinkSession[LinkMessage] = LinkSession(epoch)
        self._sent = 0
        """The number of the last message of the session."""
        self.positions: deque[tuple[int, int]] = deque()
        """Numbers of messages with stored events, each with the last position of these."""
        self.connection: ServedConnection | None = None
        self.is_ours = False
        """Whether this broker makes the connections."""
        self.address = ""
        """Where it connects to."""
        self.is_forgotten = False
        """Whether the neighbour was removed, so that nobody connects to it any more."""
        self.unacknowledged = 0
        """How many messages of the neighbour were handled and not acknowledged."""

    def opening(self) -> SessionOpen:
        """What this end says first on a connection."""
        return self.session.opening()

    def hello(self, broker: str, software: str, heartbeat_ms: int, token: str | None) -> Hello:
        """The handshake of a connection that is made here."""
        epoch, committed, is_restored = self.opening()
        return Hello(
            broker,
            epoch,
            role="broker",
            token=token,
            is_durable=is_restored,
            epoch=committed.epoch,
            received=committed.number,
            credit_events=PLENTY,
            credit_bytes=PLENTY,
            heartbeat_ms=heartbeat_ms,
            software=software,
        )

    def restore(self, session: LinkSession[LinkMessage], sync: m.Sync) -> None:
        """Go on after a restart of this broker."""
        self.session, self._sent = session, 1
        session.begin_with(sync)

    def begin_anew(self, session: LinkSession[LinkMessage]) -> None:
        """Go on with a session that knows nothing."""
        self.session, self._sent, self.unacknowledged = session, 0, 0
        self.positions.clear()

    def send(self, kept: Kept) -> int:
        """Send a message, or keep it for the next connection; returns how many events were
        dropped because there is none."""
        message, dropped = kept.message, 0
        if isinstance(message, Notifications) and self.connection is None:
            confirmed = np.flatnonzero(message.publications.flags & IS_CONFIRMED)
            dropped = len(message) - len(confirmed)
            if not len(confirmed):
                return dropped
            if dropped:
                kept = replace(kept, message=selected(message, confirmed))
        sent = self.session.send(kept.message)
        self._sent += 1
        if kept.position:
            self.positions.append((self._sent, kept.position))
        if sent is not None and self.connection is not None:
            self.connection.send_link(sent[0], kept.message)
        return dropped


class Links:
    """The links of a broker, by neighbour."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self.by_peer: dict[m.Peer, Link] = {}
        self._epoch = 0

    def new_link(self, peer: m.Peer | None = None) -> Link:
        """A link with a session that knows nothing; its epoch is later than any before."""
        self._epoch = max(self._epoch + 1, self._server.now_us())
        return Link(self._epoch, peer)

    def restore(self, outgoing: m.Outgoing) -> None:
        """Go on with the neighbours of the broker after a restart.

        The stream to each begins with a `Sync`. What the broker has to say besides follows, and
        then the confirmed events that the store has for the neighbour.
        """
        store, broker = self._server.store, self._server.broker
        assert store is not None  # else there is nothing to restore
        streams = store.positions(STREAM)
        for peer in broker.domains.domain_of:
            link = self.by_peer[peer] = self.new_link(peer)
            committed = stream_position(streams.get(peer))
            link.restore(LinkSession(self._epoch, committed=committed, restored=True),
                         sync_for(broker, peer))  # fmt: skip
        for address, message in outgoing:
            if isinstance(address, str):
                self.send(address, cast(m.PeerMessage, message))
        for link in self.by_peer.values():
            self._send_stored(link)

    # -- handshakes ---------------------------------------------------------------------------

    def admit(self, connection: ServedConnection, hello: Hello, turn: Turn) -> None:
        """Answer a neighbour that connects; raises AccessError or OverloadedError."""
        peer = hello.identity
        if peer == self._server.settings.name:
            raise AccessError(f"this broker has the name {peer!r} too; each needs one of its own")
        link = self.by_peer.get(peer)
        if link is not None and link.is_ours and self._server.settings.name < peer:
            raise OverloadedError(f"{self._server.settings.name!r} connects to {peer!r} itself")
        if link is None:
            link = self.by_peer[peer] = self.new_link(peer)
        elif link.connection is not None:
            self._drop(link)
        theirs = SessionOpen(
            hello.session, StreamPosition(hello.epoch, hello.received), hello.is_durable
        )
        opening = link.opening()
        try:
            again = link.session.opened(theirs)
        except (SessionLostError, LinkProtocolError) as error:
            link = self._begin_anew(link, error, turn)
            opening = link.opening()
            again = link.session.opened(theirs)
        self._attach(link, connection, hello.heartbeat_ms)
        welcome = Welcome(
            broker=self._server.settings.name,
            session=opening.epoch,
            is_resumed=opening.is_restored,
            published=opening.committed.epoch,
            received=opening.committed.number,
            credit_events=PLENTY,
            credit_bytes=PLENTY,
            heartbeat_ms=self._server.settings.limits.heartbeat_ms,
            time_us=self._server.now_us(),
            software=self._server.software,
        )
        connection.wire.welcome(welcome)
        self._send_again(link, again)
        _log.info(
            "linked with %s at %s",
            peer,
            connection.address,
            extra={"event": "link_up", "peer": peer},
        )

    def welcomed(self, connection: ServedConnection, welcome: Welcome, turn: Turn) -> None:
        """Go on with a link whose connection this broker has made."""
        link = connection.link
        assert link is not None  # only links make connections
        if link.peer not in (None, welcome.broker) or welcome.broker == self._server.settings.name:
            connection.end(AccessError(f"{link.peer!r} was expected, not {welcome.broker!r}"))
            return
        known = self.by_peer.get(welcome.broker)
        if known is not None and known is not link and known.connection is not None:
            connection.end(OverloadedError("there is a connection already"))
            return
        link.peer = welcome.broker
        self.by_peer[welcome.broker] = link
        self._server.durable_links.save_address(link.address, link.peer, turn.transaction)
        theirs = SessionOpen(
            welcome.session,
            StreamPosition(welcome.published, welcome.received),
            welcome.is_resumed,
        )
        try:
            again = link.session.opened(theirs)
        except (SessionLostError, LinkProtocolError) as error:
            # The handshake of the next connection says that this end begins anew.
            self._begin_anew(link, error, turn)
            connection.end(error)
            return
        self._attach(link, connection, welcome.heartbeat_ms)
        self._send_again(link, again)
        broker, settings = self._server.broker, self._server.settings
        if not broker.knows(welcome.broker):
            sent = broker.join(
                welcome.broker,
                settings.domain,
                settings.link_cost_us,
                as_client=settings.is_hierarchical,
            )
            self._server.dispatch(sent, turn)
        _log.info(
            "linked with %s at %s",
            link.peer,
            connection.address,
            extra={"event": "link_up", "peer": link.peer},
        )

    def _attach(self, link: Link, connection: ServedConnection, heartbeat_ms: int) -> None:
        link.connection, connection.link = connection, link
        self._server.entrance.introduced(connection)
        connection.heartbeat_s = self._server.settings.limits.heartbeat_ms / 1_000
        connection.silence_max_s = 3 * heartbeat_ms / 1_000

    def _send_again(self, link: Link, again: list[tuple[int, LinkMessage]]) -> None:
        assert link.connection is not None
        for number, message in again:
            link.connection.send_link(number, message)

    def _begin_anew(self, link: Link, error: Exception, turn: Turn) -> Link:
        """Give up what both ends know of each other; the stored events wait for the next link."""
        assert link.peer is not None
        _log.warning(
            "the link to %s begins anew: %s", link.peer, error,
            extra={"event": "link_anew", "peer": link.peer},
        )  # fmt: skip
        self._server.dispatch(self._server.broker.link_lost(link.peer, self._server.now_us()), turn)
        link.begin_anew(self.new_link().session)
        return link

    def _drop(self, link: Link) -> None:
        """Close the connection of a link that has a newer one."""
        old, link.connection = link.connection, None
        link.session.closed()
        if old is not None:
            old.link = None
            old.abort()

    def forget(self, peer: m.Peer, turn: Turn) -> dict[str, int]:
        """Remove a neighbour that is gone for good; returns what is given up with it.

        The events that wait for it are removed, and its filters withdrawn, here and, by what the
        other neighbours are sent, in the whole network.
        """
        server, link = self._server, self.by_peer.get(peer)
        if link is None:
            known = ", ".join(map(repr, self.by_peer)) or "none"
            raise RoutingError(f"{peer!r} is no neighbour of this broker; it has {known}")
        if link.connection is not None:
            raise RoutingError(f"{peer!r} is connected; only a neighbour that is gone is forgotten")
        given_up = {
            "filters": len(server.broker.subscriptions.nodes_of_peer(peer)),
            "messages": len(link.session),
            "stored_events": 0,
        }
        link.is_forgotten = True
        del self.by_peer[peer]
        server.dispatch(server.broker.link_lost(peer, server.now_us()), turn)
        if server.store is not None:
            queue = server.store.queue(LINK_QUEUE, peer)
            given_up["stored_events"] = server.store.length(queue)
            server.store.remove_queue(turn.transaction, LINK_QUEUE, peer)
            server.durable_links.forget_address(peer, turn.transaction)
        _log.warning(
            "the neighbour %s is forgotten, with %d events that waited for it",
            peer, given_up["stored_events"], extra={"event": "link_forgotten", "peer": peer},
        )  # fmt: skip
        return given_up

    def connection_lost(self, link: Link, connection: ServedConnection) -> None:
        """Keep what is not acknowledged for the next connection."""
        if link.connection is connection:
            link.connection = None
            link.session.closed()
            _log.warning(
                "the connection to %s is lost", link.peer,
                extra={"event": "link_down", "peer": link.peer},
            )  # fmt: skip

    # -- messages -----------------------------------------------------------------------------

    def handle(self, link: Link, linked: Linked, turn: Turn) -> None:
        """Handle a message of a neighbour that is not of events."""
        assert link.peer is not None
        assert not isinstance(linked.message, Notifications)
        if self.takes(link, linked):
            broker = self._server.broker
            was_neighbour = link.peer in broker.domains.domain_of
            _log_refusal(link.peer, linked.message)
            sent = broker.handle(linked.message, link.peer, self._server.now_us())
            for receiver, answer in sent:
                if receiver == link.peer and isinstance(answer, m.Refused):
                    _log.warning("a message of %s was refused: %s", link.peer, answer.reason)
            self._server.dispatch(sent, turn)
            if not was_neighbour and link.peer in broker.domains.domain_of:
                turn.after_commit.append(lambda: self._send_stored(link))

    def takes(self, link: Link, linked: Linked) -> bool:
        """Whether a message is new; a neighbour that leaves one out loses its connection.

        The parts of a message have one number: a copy of an earlier part is known by its stamps.
        """
        try:
            is_new = link.session.take(linked.number) if linked.is_last else True
        except LinkProtocolError as error:
            self._broke_protocol(link, error)
            return False
        link.unacknowledged += linked.is_last
        return is_new

    def _broke_protocol(self, link: Link, error: LinkProtocolError) -> None:
        """End the connection of a neighbour; the session goes on where it was on the next one."""
        _log.warning("%s broke the protocol of links: %s", link.peer, error)
        if link.connection is not None:
            link.connection.arrived.clear()
            link.connection.end(error)

    def acknowledge(self) -> None:
        """Acknowledge what was taken; the positions of the streams are in the store."""
        for link in self.by_peer.values():
            if link.unacknowledged:
                link.unacknowledged = 0
                number = link.session.commit()
                if link.connection is not None:
                    link.connection.send(LinkAck(number))

    @property
    def must_acknowledge(self) -> bool:
        """Whether a neighbour waits for many acknowledgements."""
        return any(each.unacknowledged > UNACKNOWLEDGED_MAX for each in self.by_peer.values())

    def acknowledged(self, link: Link, number: int, turn: Turn) -> None:
        """The neighbour has committed messages; their events can leave the store."""
        try:
            link.session.acknowledged(number)
        except LinkProtocolError as error:
            self._broke_protocol(link, error)
            return
        position = 0
        while link.positions and link.positions[0][0] <= number:
            position = link.positions.popleft()[1]
        store = self._server.store
        if store is not None and position and link.peer is not None:
            queue = store.queue(LINK_QUEUE, link.peer)
            store.acknowledge(turn.transaction, queue, position)

    def send(self, peer: m.Peer, message: LinkMessage, position: int = 0) -> None:
        """Send a neighbour a message, now or on the next connection."""
        link = self.by_peer.get(peer)
        if link is None:
            return  # removed meanwhile
        try:
            self._server.counters.dropped += link.send(Kept(message, position))
        except SessionLostError as error:
            self._give_up(link, error)

    @property
    def overloaded(self) -> m.Peer | None:
        """A neighbour for which so much waits that nothing more should be promised to clients."""
        return next((each for each, at in self.by_peer.items() if at.session.is_nearly_full), None)

    def _give_up(self, link: Link, error: SessionLostError) -> None:
        """Keep nothing more for a neighbour that has been away for too long."""
        turn = Turn()
        self._begin_anew(link, error, turn)
        if link.connection is not None:
            link.connection.end(error)
        for action in turn.after_commit:
            action()

    def _send_stored(self, link: Link) -> None:
        """Send the confirmed events that an earlier stream has left in the store."""
        store = self._server.store
        if store is None or link.peer is None:
            return
        queue, after = store.queue(LINK_QUEUE, link.peer), 0
        while (read := store.read_queue(queue, after, limit=READ_MAX)).last:
            after = read.last
            if read.events:
                notifications = stored_notifications(store, read.events)
                link.send(Kept(notifications, read.last))


def _log_refusal(peer: m.Peer, message: object) -> None:
    """Log that a neighbour has refused a message: without spaces, say, or where a cycle closes."""
    if isinstance(message, m.Refused):
        _log.warning("%s has refused a message of this broker: %s", peer, message.reason)
