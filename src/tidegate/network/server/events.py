"""The events that clients publish: handed to the broker in one batch, stored, delivered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import StoreFullError, TidegateError
from tidegate.matching.arrays import I64, Bools
from tidegate.network.server.routed_turn import (
    ClientDeliveries,
    by_client,
    joined_events,
    publications,
)
from tidegate.network.server.stored_events import client_detail, store_events
from tidegate.network.wire.deliveries import Publish
from tidegate.network.wire.event_batches import batch_of
from tidegate.network.wire.flow import Confirmed, NotPublished
from tidegate.network.wire.problems import Problem
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.batching.incoming import IncomingEvents, PublishedFrame
from tidegate.routing.batching.routed import RoutedEvents

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


class EventTurns:
    """Handles the events of a turn."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server

    def handle(self, connections: Sequence[ServedConnection], turn: Turn) -> int:
        """Handle the events at the head of connections; returns how many there were."""
        frames: list[_Published] = []
        duplicates: list[tuple[ClientSession, int]] = []
        count = 0
        for connection in connections:
            session = connection.session
            if session is None or self._server.broker.sessions.is_arriving(session.client):
                continue
            while connection.arrived and isinstance(connection.arrived[0], Publish):
                publish = connection.arrived.popleft()
                assert isinstance(publish, Publish)
                self._server.flow.took(connection, publish)
                fresh = self._without_duplicates(session, publish, duplicates, turn)
                if fresh is not None:
                    frames.append(_Published(session, session.epoch, fresh, count))
                    count += len(fresh)
        if frames:
            self._route(frames, turn)
        # After the others: the first copy may be among them.
        for session, last in duplicates:
            turn.after_commit.append(
                lambda s=session, n=last: _send(s, Confirmed(max(n, s.published)))  # type: ignore[misc]
            )
        return count + len(duplicates)

    def _without_duplicates(
        self,
        session: ClientSession,
        publish: Publish,
        duplicates: list[tuple[ClientSession, int]],
        turn: Turn,
    ) -> Publish | None:
        """The events that were not taken before; those that were are confirmed once more."""
        last = publish.first_number + len(publish) - 1
        known = session.published - publish.first_number + 1
        if known >= len(publish):
            if publish.confirm:
                duplicates.append((session, last))
            return None
        if publish.confirm and (problem := self._server.cannot_confirm()) is not None:
            turn.after_commit.append(
                lambda: _refuse(session, publish.first_number, len(publish), problem)
            )
            return None
        session.published = last
        return publish.part(known, len(publish)) if known > 0 else publish

    def _route(self, frames: list[_Published], turn: Turn) -> None:
        server = self._server
        events = joined_events([each.publish.events for each in frames])
        incoming = IncomingEvents(
            batch_of(events),
            [
                PublishedFrame(each.session.client, length, space)
                for each in frames
                for space, length in _runs_of_spaces(each.publish)
            ],
        )
        routed = server.broker.handle_events(incoming, server.now_us())
        confirmed = np.repeat(
            np.array([each.publish.confirm for each in frames], np.bool_),
            [len(each.publish) for each in frames],
        )
        block = publications(events, routed, confirmed)
        step = _Step(server, frames, block, confirmed, list(by_client(routed.deliveries)))
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
        confirmed: Bools,
        deliveries: list[ClientDeliveries],
    ) -> None:
        self._server = server
        self._frames = frames
        self._block = block
        self._confirmed = confirmed
        self._deliveries = deliveries
        self._positions: I64 = np.zeros(len(block), np.int64)
        """The positions of stored events; 0 for others."""
        self._is_refused = False

    def store(self, turn: Turn) -> None:
        """Add what must be durable to the transaction of the turn."""
        store = self._server.store
        if store is None:
            return
        durable = [
            (session, each)
            for each in self._deliveries
            if (session := self._server.sessions.get(each.client)) and session.is_durable
        ]
        if not durable and not self._confirmed.any():
            return
        # Those that are not confirmed get positions too, so that the positions of a client rise.
        numbered = self._confirmed & bool(store.retention.keep)
        for _, each in durable:
            numbered[each.events] = True
        for index in np.flatnonzero(numbered).tolist():
            self._positions[index] = store.next_position()
        transaction = turn.transaction
        stored = np.flatnonzero(numbered & self._confirmed).tolist()
        positions = self._positions[stored].tolist()
        store_events(store, transaction, self._block, stored, positions)
        is_stored = (numbered & self._confirmed).tolist()
        name_of = self._server.broker.named.name_of
        for session, each in durable:
            assert session.queue is not None
            for index, (unnamed, matches) in zip(each.events.tolist(), each.matches(), strict=True):
                if is_stored[index]:
                    named = [(name_of(handle - 1), version) for handle, version in matches]
                    detail = client_detail(unnamed, named)
                    transaction.enqueue(session.queue, self._positions.item(index), detail)
        for frame in self._frames:
            if frame.publish.confirm:
                last = frame.publish.first_number + len(frame.publish) - 1
                identity = frame.session.client.identity
                transaction.set_position(PUBLISHER, identity, frame.epoch, last)
        turn.if_full.append(lambda: self._take_back(turn))

    def _take_back(self, turn: Turn) -> None:
        """Refuse the confirmed events: there is no room to store them."""
        self._is_refused = True
        turn.transaction.events.clear()
        turn.transaction.queue_rows.clear()
        turn.transaction.positions.clear()

    def refuse(self, routed: RoutedEvents, turn: Turn) -> None:
        """Tell publishers which events the broker has refused."""
        if not routed.refused:
            return
        begins = [each.begin for each in self._frames]
        for index, error in routed.refused.items():
            frame = self._frames[int(np.searchsorted(begins, index, side="right")) - 1]
            number = frame.publish.first_number + index - frame.begin
            turn.after_commit.append(lambda f=frame, n=number, e=error: _refuse_one(f, n, e))  # type: ignore[misc]

    def send(self) -> None:
        """Deliver the events and confirm them; everything is on disk."""
        for each in self._deliveries:
            session = self._server.sessions.get(each.client)
            if session is None:
                continue
            rows = each
            if self._is_refused:
                rows = each.only(~self._confirmed[each.events])
            if len(rows.events):
                self._server.add_deliveries(session, rows, self._block, self._positions)
        for frame in self._frames:
            publish = frame.publish
            if not publish.confirm:
                continue
            last = publish.first_number + len(publish) - 1
            if self._is_refused:
                problem = StoreFullError("the store of the broker is full")
                frame.session.published = min(frame.session.published, publish.first_number - 1)
                _refuse(frame.session, publish.first_number, len(publish), problem)
            _send(frame.session, Confirmed(last))


def _refuse_one(frame: _Published, number: int, error: TidegateError) -> None:
    _send(frame.session, NotPublished(number, Problem.of(error)))


def _refuse(session: ClientSession, first: int, count: int, error: TidegateError) -> None:
    problem = Problem.of(error)
    for number in range(first, first + count):
        _send(session, NotPublished(number, problem))
    _send(session, Confirmed(first + count - 1))


def _send(session: ClientSession, message: Confirmed | NotPublished) -> None:
    if session.connection is not None:
        session.connection.send(message)
