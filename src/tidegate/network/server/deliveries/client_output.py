"""What goes out to clients: deliveries of a turn, or from the store, and other messages.

A durable client is *behind* while the store has deliveries that must come before new ones. Then
nothing is put in its memory queue; it gets the next ones from the store whenever it has credit,
until none are left. So it may be away or slow for any time without taking memory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidegate.matching.arrays import I64
from tidegate.network.server.deliveries.stored_events import (
    client_detail,
    deliveries_of,
    publications_of,
    store_events,
)
from tidegate.network.server.routed_turn import ClientDeliveries
from tidegate.network.store.reading import QueuedEvent
from tidegate.network.wire import requests as wire
from tidegate.network.wire.deliveries import Deliver, DeliverSequence
from tidegate.network.wire.delivery_frames import DeliveryFrames, DeliveryRows
from tidegate.network.wire.publications import IS_CONFIRMED, PublicationBlock
from tidegate.routing import messages as m
from tidegate.routing.batching.routed import Deliveries

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.deliveries.delivery_queue import Batch
    from tidegate.network.server.served_connection import ServedConnection
    from tidegate.network.server.sessions import ClientSession
    from tidegate.network.server.turns import Turn

_log = logging.getLogger(__name__)

SHAPES_AT_ONCE_MAX = 16
"""Shapes of events in a turn, beyond which each client is told only of those that it gets."""
READ_MAX = 1_000
"""Deliveries read from the store for one client in one turn."""
COMPLAINT_S = 10.0
"""How often the log says that a client is slow, at most."""


class ClientOutput:
    """Puts messages for clients in their queues, and sends what their credit allows."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._touched: dict[m.Client, ClientSession] = {}

    def touch(self, session: ClientSession) -> None:
        """Look at the queue of a client at the end of this turn."""
        self._touched[session.client] = session

    # -- at once ------------------------------------------------------------------------------

    def send_at_once(self, found: Deliveries, block: PublicationBlock) -> set[m.Client]:
        """Send deliveries to all clients that can take theirs now; returns these clients.

        The others are durable, have no connection, or too little credit, or deliveries wait for
        them already: theirs go through the queues.
        """
        shapes = block.events.shapes
        if len(shapes) > SHAPES_AT_ONCE_MAX or not len(found):
            return set()
        rows = DeliveryRows.of(
            found.client_starts, found.events, found.match_starts, found.handles, found.versions,
            found.unnamed,
        )  # fmt: skip
        written = DeliveryFrames(block, rows)
        counts, sizes = written.counts.tolist(), written.bytes_of.tolist()
        taken: list[tuple[int, ServedConnection]] = []
        numbers: list[list[int]] = []
        for index, (client, frame_bytes) in enumerate(
            zip(found.clients, written.frame_bytes.tolist(), strict=True)
        ):
            session = self._server.sessions.get(client)
            if session is None or session.is_durable or session.owes_held:
                continue
            connection = session.connection
            if connection is None or not connection.can_write or not connection.wire.is_open:
                continue
            if not session.deliveries.takes_at_once(counts[index], sizes[index]):
                continue
            defined = connection.wire.shape_numbers(shapes, frame_bytes)
            if defined is not None:
                session.deliveries.sent_at_once(counts[index], sizes[index])
                session.delivered += counts[index]
                taken.append((index, connection))
                numbers.append(defined)
        if not taken:
            return set()
        frames = written.frames([index for index, _ in taken], numbers)
        for (_, connection), frame in zip(taken, frames, strict=True):
            connection.wire.send_frame(frame)
        self._server.counters.delivered += sum(counts[index] for index, _ in taken)
        return {found.clients[index] for index, _ in taken}

    # -- back to the broker ---------------------------------------------------------------------

    def take_back(self, session: ClientSession) -> None:
        """Let the broker keep what was not sent yet, ahead of what comes during the suspension.

        So nothing is sent to the client from now on. A durable one has its queue in the store.
        """
        if not session.is_durable:
            kept = self._server.broker.sessions[session.client].kept
            kept.extendleft(reversed(self.kept_deliveries(session, session.deliveries.take_all())))

    def stored_deliveries(self, session: ClientSession) -> list[m.Deliver]:
        """What the store has for a durable client that has not acknowledged it."""
        store, found, after = self._server.store, [], 0
        assert store is not None
        assert session.queue is not None
        while (read := store.read_queue(session.queue, after, limit=READ_MAX)).last:
            after = read.last
            session.deliveries.missed += read.lost
            sound = [each for each in read.events if store.description(each.event.shape)]
            if sound:
                found += self.kept_deliveries(
                    session, [deliveries_of(store, sound, self._handle_of(session))]
                )
        return found

    def kept_deliveries(self, session: ClientSession, batches: Iterable[Batch]) -> list[m.Deliver]:
        """Deliveries as the broker keeps them; sequences of patterns are not kept."""
        found = []
        for batch in batches:
            if not isinstance(batch, Deliver):
                continue
            at, handles = 0, batch.handles.tolist()
            versions = batch.versions.tolist()
            for index, count in enumerate(batch.match_counts.tolist()):
                pairs = list(zip(handles[at : at + count], versions[at : at + count], strict=True))
                at += count
                matches = tuple(
                    m.MatchedVersion(name, version)
                    for handle, version in pairs
                    if handle and (name := self._name(session, handle)) is not None
                )
                unnamed = any(handle == 0 for handle, _ in pairs)
                if matches or unnamed:
                    publication = batch.publications.publication(index)
                    found.append(m.Deliver(publication, matches, unnamed=unnamed))
        return found

    def _name(self, session: ClientSession, handle: int) -> str | None:
        """The name of a subscription of a client; None if it has ended meanwhile."""
        try:
            asker = self._server.broker.named.handles.asker(handle - 1)
        except IndexError:
            return None
        return asker.name if asker.client == session.client else None

    def _handle_of(self, session: ClientSession) -> Callable[[str], int | None]:
        named = self._server.broker.named

        def handle_of(name: str) -> int | None:
            if named.present(session.client, name) is None:
                return None
            return named.handle(session.client, name) + 1

        return handle_of

    # -- into the queues ----------------------------------------------------------------------

    def add(
        self,
        session: ClientSession,
        rows: ClientDeliveries,
        block: PublicationBlock,
        positions: I64,
    ) -> None:
        """Add deliveries of this turn; those of a durable client have positions."""
        self.touch(session)
        if session.is_durable and (session.is_behind or session.connection is None):
            session.is_behind = True
            return
        if session.deliveries.policy == "block" and not session.is_durable:
            publishers = np.unique(block.publisher_of[rows.events]).tolist()
            self._server.blocking.given(session, (block.publishers[each] for each in publishers))
        # An event that is kept for replay has a position, which others need not know.
        at = positions[rows.events] if session.is_durable else np.zeros(len(rows.events), np.int64)
        self._put(session, rows.deliver(block, at))

    def _put(self, session: ClientSession, deliver: Deliver) -> None:
        session.deliveries.add(deliver)
        if session.is_durable and len(session.deliveries) > session.deliveries.events_max:
            session.deliveries.clear()
            session.is_behind = True

    def add_messages(
        self, session: ClientSession, deliveries: Sequence[m.Deliver], turn: Turn
    ) -> None:
        """Add deliveries that the broker had kept, or that came with a client from elsewhere."""
        named, grants = self._server.broker.named, self._server.broker.grants
        granted = [
            each for each in deliveries if grants.may_get(session.client, each.publication.event)
        ]
        self._not_granted(session, len(deliveries) - len(granted))  # kept by a wider grant
        deliveries = granted
        matches = [
            [
                (named.handle(session.client, each.name) + 1, each.version)
                for each in delivery.matches
                if named.present(session.client, each.name) is not None
            ]
            for delivery in deliveries
        ]
        block = PublicationBlock.of([each.publication for each in deliveries])
        positions = np.zeros(len(block), np.int64)
        store = self._server.store
        if session.is_durable and store is not None and session.queue is not None:
            block.flags[:] = IS_CONFIRMED
            taken = [store.next_position() for _ in deliveries]
            store_events(store, turn.transaction, block, range(len(block)), taken)
            for position, delivery in zip(taken, deliveries, strict=True):
                detail = client_detail(
                    delivery.unnamed, [(each.name, each.version) for each in delivery.matches]
                )
                turn.transaction.enqueue(session.queue, position, detail)
            positions[:] = taken
        pairs = [
            pair
            for found, delivery in zip(matches, deliveries, strict=True)
            for pair in [*found, *([(0, 0)] if delivery.unnamed else [])]
        ]
        counts = [
            len(found) + delivery.unnamed
            for found, delivery in zip(matches, deliveries, strict=True)
        ]
        rows = ClientDeliveries(
            session.client,
            np.arange(len(block)),
            np.array(counts, np.int64),
            np.array([handle for handle, _ in pairs], np.int64),
            np.array([version for _, version in pairs], np.int64),
        )
        turn.after_commit.append(lambda: self.add(session, rows, block, positions))

    def dispatch(self, client: m.Client, messages: Sequence[m.Message], turn: Turn) -> None:
        """Send messages of the broker to a client, once the turn is committed."""
        session = self._server.sessions.get(client)
        if session is None:
            return
        delivered: list[m.Deliver] = []
        for message in [*messages, None]:
            if isinstance(message, m.Deliver):
                delivered.append(message)
                continue
            if delivered:
                self.add_messages(session, delivered, turn)
                delivered = []
            match message:
                case m.InForce(name, version):
                    if self._server.broker.named.present(client, name) is not None:
                        handle = self._server.broker.named.handle(client, name) + 1
                        self._send(session, wire.InForce(handle, version), turn)
                case m.DeliverSequence(pattern, publications):
                    handle = session.handle_of_pattern(pattern) or 0
                    sequence = DeliverSequence(handle, PublicationBlock.of(publications))
                    turn.after_commit.append(lambda s=sequence: self._add_sequence(session, s))  # type: ignore[misc]
                case m.Missed(count):
                    self._send(session, wire.Missed(count), turn)

    def _add_sequence(self, session: ClientSession, sequence: DeliverSequence) -> None:
        if session.connection is not None or not session.is_durable:
            session.deliveries.add(sequence)
            self.touch(session)

    def _send(
        self, session: ClientSession, message: wire.InForce | wire.Missed, turn: Turn
    ) -> None:
        def send() -> None:
            if session.connection is not None:
                session.connection.send(message)

        turn.after_commit.append(send)

    # -- out of the queues --------------------------------------------------------------------

    def deliver(self) -> None:
        """Send what credits allow to all clients that were touched in this turn."""
        touched, self._touched = self._touched, {}
        for session in touched.values():
            connection = session.connection
            if connection is not None and connection.can_write:
                self._server.replays.advance(session)
                self._catch_up(session)
                session.deliveries.send(lambda batch, s=session: self._send_batch(s, batch))  # type: ignore[misc]
                if session.is_behind and session.deliveries.has_credit:
                    self.touch(session)
                    self._server.turns.wake()
            if not session.is_durable:
                self._shorten(session)
            elif session.deliveries.missed:
                self._tell_missed(session)

    def _send_batch(self, session: ClientSession, batch: Batch) -> None:
        if session.connection is not None:
            session.connection.send(batch)
        if session.is_durable and isinstance(batch, Deliver):
            session.cursor = int(batch.positions[-1])

    def _catch_up(self, session: ClientSession) -> None:
        """Take the next deliveries of a durable client from the store, if it is behind."""
        store, limit = self._server.store, min(READ_MAX, session.deliveries.credit_events)
        if not session.is_behind or len(session.deliveries) or limit <= 0:
            return
        assert store is not None
        assert session.queue is not None
        read = store.read_queue(session.queue, session.cursor, limit=limit)
        handle_of = self._handle_of(session)
        sound = [each for each in read.events if store.description(each.event.shape) is not None]
        lost = read.lost + len(read.events) - len(sound)
        if lost:
            session.deliveries.missed += lost
            self._server.counters.missed["damaged"] += lost
        if self._server.broker.grants.of(session.client).subscribe is not None:
            # They may have been stored under a wider grant, before a restart.
            granted = self._granted(session.client, sound)
            self._not_granted(session, len(sound) - len(granted))
            sound = granted
        if sound:
            session.deliveries.add(deliveries_of(store, sound, handle_of))
        session.is_behind = len(read.events) + read.lost == limit
        if not sound and read.last:
            session.cursor = read.last
        self._tell_missed(session)

    def _not_granted(self, session: ClientSession, count: int) -> None:
        """Count events that a client may not get any more."""
        if count:
            session.deliveries.missed += count
            self._server.counters.missed["grant"] += count

    def _granted(self, client: m.Client, queued: list[QueuedEvent]) -> list[QueuedEvent]:
        """Those of some stored events that a client may get by its present grant."""
        store, grants = self._server.store, self._server.broker.grants
        assert store is not None
        if not queued:
            return []
        events = publications_of(store, [each.event for each in queued]).events
        return [
            each for index, each in enumerate(queued) if grants.may_get(client, events.event(index))
        ]

    def _shorten(self, session: ClientSession) -> None:
        deliveries = session.deliveries
        if deliveries.policy == "block":
            self._server.blocking.look_at(session)
        dropped = deliveries.shorten()
        if dropped:
            self._server.counters.missed[deliveries.policy] += dropped
            self._complain(session)
        if deliveries.must_disconnect and session.connection is not None:
            self._server.too_slow(session)
        self._tell_missed(session)

    def _complain(self, session: ClientSession) -> None:
        """Log that deliveries were dropped, now and then."""
        now = self._server.loop.time()
        if now < session.quiet_until:
            return
        session.quiet_until = now + COMPLAINT_S
        identity, deliveries = session.client.identity, session.deliveries
        _log.warning(
            "%s takes its deliveries too slowly: %d were dropped (%s)",
            identity, deliveries.missed_total, deliveries.policy,
            extra={"event": "deliveries_dropped", "client": identity,
                   "missed": deliveries.missed_total, "policy": deliveries.policy},
        )  # fmt: skip

    def _tell_missed(self, session: ClientSession) -> None:
        if session.deliveries.missed and session.connection is not None:
            session.connection.send(wire.Missed(session.deliveries.missed))
            session.deliveries.missed = 0
