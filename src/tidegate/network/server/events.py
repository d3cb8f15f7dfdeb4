"""The events that clients publish: handed to the broker in one batch, stored, delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import LimitError, StoreFullError, TidegateError
from tidegate.matching.arrays import I64, Bools
from tidegate.network.observing.trace_context import ATTRIBUTE, log_sampled
from tidegate.network.server.deliveries.stored_events import client_detail, store_events
from tidegate.network.server.links import LINK_QUEUE, Link
from tidegate.network.server.passing_on import (
    notifications,
    notified_frame,
    route_detail,
    selected,
)
from tidegate.network.server.refusals import Refusals
from tidegate.network.server.requests import has_events
from tidegate.network.server.routed_turn import (
    ClientDeliveries,
    by_client,
    joined_events,
    publications,
)
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_batches import batch_of
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.flow import Confirmed, NotPublished
from tidegate.network.wire.links import Linked, Notifications
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.publications import IS_CONFIRMED, PublicationBlock
from tidegate.routing.batching.incoming import Frame, IncomingEvents, PublishedFrame
from tidegate.routing.batching.routed import RoutedEvents
from tidegate.routing.messages import Client, Peer

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer
    from tidegate.network.server.served_connection import ServedConnection
    from tidegate.network.server.sessions import ClientSession
    from tidegate.network.server.turns import Turn

PUBLISHER = "publisher"
"""The kind of the positions of publishers in the store."""


@dataclass(slots=True)
class _Published:
    """A frame of a client and its place in the batch."""

    session: ClientSession
    epoch: int
    publish: Publish
    begin: int
    """The number of its first event in the batch."""


@dataclass(slots=True)
class _Batch:
    """The frames of a turn that have events, in the order of their rows."""

    blocks: list[EventBlock] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    confirmed: list[Bools] = field(default_factory=list)
    published: list[_Published] = field(default_factory=list)
    length: int = 0

    def add_published(self, session: ClientSession, publish: Publish) -> None:
        """Add a frame of a client."""
        self.published.append(_Published(session, session.epoch, publish, self.length))
        self.frames += [
            PublishedFrame(session.client, length, space)
            for space, length in _runs_of_spaces(publish)
        ]
        self._add(publish.events, np.full(len(publish), publish.confirm))

    def add_notified(self, peer: Peer, message: Notifications, *, has_spaces: bool) -> None:
        """Add a frame of a neighbour."""
        self.frames.append(notified_frame(peer, message, has_spaces=has_spaces))
        flags = message.publications.flags
        self._add(message.publications.events, (flags & IS_CONFIRMED).astype(np.bool_))

    def _add(self, events: EventBlock, confirmed: Bools) -> None:
        self.blocks.append(events)
        self.confirmed.append(confirmed)
        self.length += len(events)


class EventTurns:
    """Handles the events of a turn."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def handle(self, connections: Sequence[ServedConnection], turn: Turn) -> int:
        """Handle the events at the head of connections; returns how many there were."""
        batch = _Batch()
        duplicates: list[_Duplicate] = []
        taken = 0
        for connection in connections:
            if connection.link is not None and connection.link.peer is not None:
                taken += self._take_from_neighbour(connection, connection.link, batch)
            elif connection.session is not None:
                session = connection.session
                taken += self._take_from_client(connection, session, batch, duplicates, turn)
        if batch.length:
            self._server.counters.turn_events.observe(batch.length)
            self._route(batch, turn)
        # After the others: the first copy may be among them.
        turn.after_commit.extend(each.answer for each in duplicates)
        return taken

    def _take_from_neighbour(self, connection: ServedConnection, link: Link, batch: _Batch) -> int:
        taken = 0
        assert link.peer is not None
        if self._server.cannot_store() is not None:
            return 0  # they wait at the neighbour, who has them on disk
        while connection.arrived and has_events(connection.arrived[0]):
            linked = connection.arrived.popleft()
            assert isinstance(linked, Linked)
            assert isinstance(linked.message, Notifications)
            taken += len(linked.message)
            if self._server.links.takes(link, linked):
                has_spaces = bool(self._server.broker.spaces)
                batch.add_notified(link.peer, linked.message, has_spaces=has_spaces)
        self._server.counters.notified += taken
        return taken

    def _take_from_client(
        self,
        connection: ServedConnection,
        session: ClientSession,
        batch: _Batch,
        duplicates: list[_Duplicate],
        turn: Turn,
    ) -> int:
        taken = 0
        if self._server.broker.sessions.is_arriving(session.client):
            return 0
        if self._server.blocking.holds(session.client.identity):
            return 0
        rates, identity = self._server.rates, session.client.identity
        while connection.arrived and isinstance(connection.arrived[0], Publish):
            wait_s = rates.events_wait_s(identity)
            if wait_s and rates.slows:
                connection.paused_s = wait_s
                break
            publish = connection.arrived.popleft()
            assert isinstance(publish, Publish)
            taken += len(publish)
            self._server.flow.took(connection, publish)
            fresh = self._without_duplicates(session, publish, duplicates, turn)
            if fresh is None:
                continue
            if wait_s:
                self._refuse(session, fresh, rates.too_many_events(), duplicates, turn)
                continue
            rates.took_events(identity, len(fresh))
            for part, error in self._by_size(fresh):
                if error is None:
                    batch.add_published(session, part)
                else:
                    self._refuse(session, part, error, duplicates, turn)
        self._server.counters.published += taken
        return taken

    def _by_size(self, publish: Publish) -> list[tuple[Publish, LimitError | None]]:
        """Runs of events that are small enough, and of those that are not, with the reason."""
        most = self._server.settings.limits.event_bytes_max
        is_large = publish.events.sizes > most
        if not is_large.any():
            return [(publish, None)]
        changes = np.flatnonzero(np.diff(is_large)) + 1
        bounds = [0, *changes.tolist(), len(publish)]
        error = LimitError("an event is too large", "event_bytes_max", most)
        return [
            (publish.part(begin, end), error if is_large[begin] else None)
            for begin, end in pairwise(bounds)
        ]

    def _refuse(
        self,
        session: ClientSession,
        publish: Publish,
        error: TidegateError,
        duplicates: list[_Duplicate],
        turn: Turn,
    ) -> None:
        """Refuse events before they are routed."""
        problem, first = Problem.of(error), publish.first_number
        self._server.counters.refused += len(publish)
        if not publish.confirm:
            turn.after_commit.append(partial(_tell, session, first, len(publish), problem))
            return
        refusals, identity = self._server.refusals, session.client.identity
        for number in range(first, first + len(publish)):
            refusals.add(identity, session.epoch, number, problem, turn.transaction)
        # It says so after the others of this turn, and then that nothing else is missing.
        duplicates.append(_Duplicate(session, first, len(publish), refusals))

    def _without_duplicates(
        self,
        session: ClientSession,
        publish: Publish,
        duplicates: list[_Duplicate],
        turn: Turn,
    ) -> Publish | None:
        """The events that were not taken before; those that were are confirmed once more."""
        last = publish.first_number + len(publish) - 1
        known = session.published - publish.first_number + 1
        if known > 0 and publish.confirm:
            count = min(known, len(publish))
            duplicates.append(
                _Duplicate(session, publish.first_number, count, self._server.refusals)
            )
        if known >= len(publish):
            return None
        if publish.confirm and (problem := self._server.cannot_confirm()) is not None:
            turn.after_commit.append(
                lambda: _refuse(session, publish.first_number, len(publish), problem)
            )
            return None
        session.published = last
        return publish.part(known, len(publish)) if known > 0 else publish

    def _route(self, batch: _Batch, turn: Turn) -> None:
        server = self._server
        events = joined_events(batch.blocks)
        incoming = IncomingEvents(batch_of(events), batch.frames)
        routed = server.broker.handle_events(incoming, server.now_us())
        block = publications(events, routed, np.concatenate(batch.confirmed))
        step = _Step(server, batch.published, block, routed)
        step.store(turn)
        step.refuse(routed, turn)
        turn.after_commit.append(step.send)
        server.dispatch(routed.sent, turn)


def _runs_of_spaces(publish: Publish) -> list[tuple[str | None, int]]:
    """The spaces of the events in order, each with the number of events in a row."""
    shapes = publish.events.shapes
    if len({each.space for each in shapes}) == 1:
        return [(shapes[0].space, len(publish))]
    spaces = [shapes[index].space for index in publish.events.shape_of.tolist()]
    return [(space, sum(1 for _ in run)) for space, run in groupby(spaces)]


class _Step:
    """What becomes of a batch of events after it is routed."""

    def __init__(
        self,
        server: BrokerServer,
        frames: list[_Published],
        block: PublicationBlock,
        routed: RoutedEvents,
    ) -> None:
        self._server = server
        self._frames = frames
        self._block = block
        self._confirmed = (block.flags & IS_CONFIRMED).astype(np.bool_)
        self._found = routed.deliveries
        self._passed_on = {
            peer: notifications(block, passed) for peer, passed in routed.passed_on.items()
        }
        self._passed_events = {
            peer: passed.events.astype(np.int64) for peer, passed in routed.passed_on.items()
        }
        self._positions: I64 = np.zeros(len(block), np.int64)
        """The positions of events that are stored, or go to durable clients; 0 for others."""
        self._refused: Bools = np.zeros(len(block), np.bool_)
        """The events that were refused because there is no room for them."""

    def store(self, turn: Turn) -> None:
        """Add what must be durable to the transaction of the turn."""
        store = self._server.store
        if store is None:
            return
        sessions = self._server.sessions
        durable_clients = {
            each
            for each in self._found.clients
            if (session := sessions.get(each)) and session.is_durable
        }
        durable = [
            (sessions[each.client], each) for each in by_client(self._found, durable_clients)
        ]
        if not durable and not self._confirmed.any():
            return
        # Those that are not confirmed get positions too, so that the positions of a client rise.
        numbered = self._confirmed & bool(store.retention.keep)
        for _, each in durable:
            numbered[each.events] = True
        for events in self._passed_events.values():
            numbered[events] |= self._confirmed[events]
        for index in np.flatnonzero(numbered).tolist():
            self._positions[index] = store.next_position()
        transaction, stored = turn.transaction, numbered & self._confirmed
        indices = np.flatnonzero(stored).tolist()
        positions = self._positions[indices].tolist()
        store_events(store, transaction, self._block, indices, positions)
        for session, each in durable:
            self._enqueue_for_client(transaction, session, each, stored)
        for peer, message in self._passed_on.items():
            queue, details = store.queue(LINK_QUEUE, peer), list(map(route_detail, message.routes))
            rows = zip(self._passed_events[peer].tolist(), message.route_of.tolist(), strict=True)
            for index, route in rows:
                if stored[index]:
                    transaction.enqueue(queue, self._positions.item(index), details[route])
        for frame in self._frames:
            if frame.publish.confirm:
                last = frame.publish.first_number + len(frame.publish) - 1
                identity = frame.session.client.identity
                transaction.set_position(PUBLISHER, identity, frame.epoch, last)
                # For another session of the publisher, which may come before this is committed.
                self._server.published[identity] = frame.epoch, last
        turn.if_full.append(lambda: self._take_back(transaction))

    def _enqueue_for_client(
        self,
        transaction: Transaction,
        session: ClientSession,
        rows: ClientDeliveries,
        stored: Bools,
    ) -> None:
        name_of = self._server.broker.named.name_of
        assert session.queue is not None  # a durable client has one
        for index, (unnamed, matches) in zip(rows.events.tolist(), rows.matches(), strict=True):
            if stored[index]:
                named = [(name_of(handle - 1), version) for handle, version in matches]
                detail = client_detail(unnamed, named)
                transaction.enqueue(session.queue, self._positions.item(index), detail)

    def _take_back(self, transaction: Transaction) -> None:
        """Refuse the confirmed events of clients: there is no room to store them. Those of
        neighbours cannot be refused."""
        for frame in self._frames:
            if frame.publish.confirm:
                self._refused[frame.begin : frame.begin + len(frame.publish)] = True
                transaction.positions.pop((PUBLISHER, frame.session.client.identity), None)
        gone = set(self._positions[self._refused].tolist())
        transaction.events[:] = [each for each in transaction.events if each.position not in gone]
        transaction.queue_rows[:] = [
            each for each in transaction.queue_rows if each.position not in gone
        ]

    def refuse(self, routed: RoutedEvents, turn: Turn) -> None:
        """Tell publishers which events the broker has refused."""
        if not routed.refused:
            return
        self._server.counters.refused += len(routed.refused)
        begins = [each.begin for each in self._frames]
        for index, error in routed.refused.items():
            frame = self._frames[int(np.searchsorted(begins, index, side="right")) - 1]
            number = frame.publish.first_number + index - frame.begin
            problem = Problem.of(error)
            if frame.publish.confirm:
                refused = (frame.session.client.identity, frame.epoch, number)
                refusals, transaction = self._server.refusals, turn.transaction
                refusals.add(*refused, problem, transaction)
                turn.if_full.append(partial(refusals.take_back, *refused, transaction))
            refusal = NotPublished(number, problem)
            turn.after_commit.append(lambda s=frame.session, r=refusal: _send(s, r))  # type: ignore[misc]

    def send(self) -> None:
        """Deliver the events, pass them on, and confirm them; everything is on disk."""
        if any(ATTRIBUTE in shape.names for shape in self._block.events.shapes):
            clients = [
                (each.client.identity, each.events.tolist())
                for each in by_client(self._found, set(self._found.clients))
            ]
            neighbours = {peer: each.tolist() for peer, each in self._passed_events.items()}
            log_sampled(self._block, clients, neighbours)
        at_once: set[Client] = set()
        if not self._refused.any():
            at_once = self._server.output.send_at_once(self._found, self._block)
        others = {each for each in self._found.clients if each not in at_once}
        for each in by_client(self._found, others):
            session = self._server.sessions.get(each.client)
            if session is None:
                continue
            rows = each.only(~self._refused[each.events]) if self._refused.any() else each
            if len(rows.events):
                self._server.add_deliveries(session, rows, self._block, self._positions)
        for peer, message in self._passed_on.items():
            events = self._passed_events[peer]
            if self._refused.any():
                kept = np.flatnonzero(~self._refused[events])
                message, events = selected(message, kept), events[kept]
            if len(events):
                self._server.counters.passed_on[peer] += len(events)
                stored = self._positions[events] * self._confirmed[events]
                self._server.links.send(peer, message, int(stored.max()))
        for frame in self._frames:
            publish = frame.publish
            if not publish.confirm:
                continue
            last = publish.first_number + len(publish) - 1
            if self._refused[frame.begin]:
                self._server.counters.refused += len(publish)
                problem = StoreFullError("the store of the broker is full")
                before = min(frame.session.published, publish.first_number - 1)
                frame.session.published = before
                self._server.published[frame.session.client.identity] = frame.epoch, before
                _refuse(frame.session, publish.first_number, len(publish), problem)
            else:
                self._server.counters.confirmed += len(publish)
                _send(frame.session, Confirmed(last))


@dataclass(frozen=True, slots=True)
class _Duplicate:
    """Publications that came again: the answer to them was lost with a connection."""

    session: ClientSession
    first: int
    count: int
    refusals: Refusals

    def answer(self) -> None:
        """Say once more which were refused, and confirm the others."""
        identity, epoch = self.session.client.identity, self.session.epoch
        refused = self.refusals.among(identity, epoch, self.first, self.count)
        for number, problem in refused:
            _send(self.session, NotPublished(number, problem))
        last = self.first + self.count - 1
        _send(self.session, Confirmed(max(last, self.session.published)))


def _refuse(session: ClientSession, first: int, count: int, error: TidegateError) -> None:
    problem = Problem.of(error)
    for number in range(first, first + count):
        _send(session, NotPublished(number, problem))
    _send(session, Confirmed(first + count - 1))


def _tell(session: ClientSession, first: int, count: int, problem: Problem) -> None:
    for number in range(first, first + count):
        _send(session, NotPublished(number, problem))


def _send(session: ClientSession, message: Confirmed | NotPublished) -> None:
    if session.connection is not None:
        session.connection.send(message)
