"""Admission: which events of a batch a broker routes, with their stamps, times and ways.

A client's event gets a stamp and, if it has none, a time; it is refused if it does not fit its
space, or if its client has not advertised it and must have. A neighbour's event is dropped if it is
a second copy (rule 3 of `event_routing`), and refused if it could not have come this way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import RoutingError, TidegateError
from tidegate.matching.arrays import I64, NO_TIME, Bools
from tidegate.matching.batches import EventBatch
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.batching.incoming import IncomingEvents, NotifiedFrame, PublishedFrame
from tidegate.routing.messages import Examination, Notify, Peer, Publication, Publish
from tidegate.routing.spaces import DEFAULT
from tidegate.routing.strategies import Hops

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


@dataclass(frozen=True, slots=True)
class Way:
    """How some events came here: what `IncomingEvent` has beside the publication."""

    sender: Peer | None
    tree: Peer | None = None
    targets: frozenset[Peer] | None = None
    examination: Examination | None = None


@dataclass(frozen=True, slots=True)
class AdmittedEvents:
    """The events of a batch with their stamps and times, and which of them are to be routed."""

    batch: EventBatch
    stamps: StampColumns
    publishers: Coded[str]
    spaces: Coded[str | None]
    ways: Coded[Way]
    routed: Bools
    """Which events are routed here; the others are refused, wait, or are second copies."""
    refused: dict[int, TidegateError]
    relayed: dict[int, Hops]
    """The copies of events that concern other brokers, made before the event is routed here."""

    def publication(self, index: int) -> Publication:
        """One event as a publication."""
        return Publication(
            self.batch.timed_event(index),
            self.stamps.row(index),
            self.publishers.row(index),
            self.spaces.row(index),
        )


class Admission:
    """Admits the events of one batch, frame by frame."""

    def __init__(self, broker: Broker, incoming: IncomingEvents) -> None:
        incoming.check()
        length = incoming.batch.length
        self._broker = broker
        self._batch = incoming.batch
        self._times_us: I64 = np.full(length, NO_TIME)
        if incoming.batch.times_us is not None:
            self._times_us[:] = incoming.batch.times_us
        self._routed: Bools = np.ones(length, np.bool_)
        self._refused: dict[int, TidegateError] = {}
        self._relayed: dict[int, Hops] = {}
        self._stamps: list[StampColumns] = []
        self._publishers: list[Coded[str]] = []
        self._spaces: list[Coded[str | None]] = []
        self._ways: list[Coded[Way]] = []
        begin = 0
        for frame in incoming.frames:
            if isinstance(frame, PublishedFrame):
                self._publish(frame, begin)
            else:
                self._notify(frame, begin)
            begin += frame.length

    def admitted(self) -> AdmittedEvents:
        """The events of all frames."""
        return AdmittedEvents(
            self._batch.judged_at(self._times_us),
            StampColumns.concatenated(self._stamps),
            Coded.concatenated(self._publishers),
            Coded.concatenated(self._spaces),
            Coded.concatenated(self._ways),
            self._routed,
            self._refused,
            self._relayed,
        )

    def _refuse(self, row: int, error: TidegateError) -> None:
        self._refused[row] = error
        self._routed[row] = False

    # -- from clients -------------------------------------------------------------------------

    def _publish(self, frame: PublishedFrame, begin: int) -> None:
        broker, length = self._broker, frame.length
        rows = range(begin, begin + length)
        name = (frame.space or DEFAULT) if broker.spaces else None
        if broker.sessions.is_arriving(frame.client):
            for row in rows:
                self._postpone(row, frame)
        else:
            if (
                broker.spaces
                or frame.space is not None
                or broker.only_advertised
                or broker.grants.limits_publishing(frame.client)
            ):
                for row in rows:
                    self._check_published(row, frame, name)
            times = self._times_us[begin : begin + length]
            times[times == NO_TIME] = broker.now_us
        accepted = self._routed[begin : begin + length]
        numbers = np.where(accepted, np.cumsum(accepted), 0)
        self._stamps.append(broker.events.take_stamps(numbers))
        self._publishers.append(Coded.constant(frame.client.identity, length))
        self._spaces.append(Coded.constant(name, length))
        self._ways.append(Coded.constant(Way(None), length))

    def _postpone(self, row: int, frame: PublishedFrame) -> None:
        """Keep an event until its client has arrived."""
        event = self._batch.timed_event(row)
        try:
            self._broker.sessions.postpone(frame.client, Publish(event, frame.space))
        except TidegateError as error:
            self._refused[row] = error
        self._routed[row] = False

    def _check_published(self, row: int, frame: PublishedFrame, name: str | None) -> None:
        event = self._batch.event(row)
        try:
            self._broker.events.check_published(event, frame.client, frame.space, name)
        except TidegateError as error:
            self._refuse(row, error)

    # -- from neighbours ------------------------------------------------------------------------

    def _notify(self, frame: NotifiedFrame, begin: int) -> None:
        length = frame.length
        no_targets: Coded[frozenset[Peer] | None] = Coded.constant(None, length)
        no_examinations: Coded[Examination | None] = Coded.constant(None, length)
        targets = frame.targets or no_targets
        examinations = frame.examinations or no_examinations
        ways = Coded.of(
            Way(frame.peer, *each)
            for each in zip(frame.trees.rows(), targets.rows(), examinations.rows(), strict=True)
        )
        self._stamps.append(frame.stamps)
        self._publishers.append(frame.publishers)
        self._spaces.append(frame.spaces)
        self._ways.append(ways)
        untimed = np.flatnonzero(self._times_us[begin : begin + length] == NO_TIME)
        for row in untimed.tolist():
            reason = "an event from a neighbour must have its time of publication"
            self._refuse(begin + row, RoutingError(reason))
        if self._broker.summaries is not None:
            self._examine(frame, ways, begin)
        else:
            self._check_ways(ways, begin)
            events = self._broker.events
            for row in np.flatnonzero(self._routed[begin : begin + length]).tolist():
                if not events.is_new(frame.stamps.row(row)):
                    self._routed[begin + row] = False

    def _check_ways(self, ways: Coded[Way], begin: int) -> None:
        """Refuse the events that cannot have come the way they say."""
        for code, way in enumerate(ways.values):
            assert way.sender is not None
            try:
                self._broker.events.check_way(way.sender, way.tree, way.targets, way.examination)
            except TidegateError as error:
                for row in np.flatnonzero(ways.codes == code).tolist():
                    if self._routed[begin + row]:
                        self._refuse(begin + row, error)

    def _examine(self, frame: NotifiedFrame, ways: Coded[Way], begin: int) -> None:
        """Find out which events are for this broker, where events are routed by summaries."""
        batch = self._batch.judged_at(self._times_us)
        for row in np.flatnonzero(self._routed[begin : begin + frame.length]).tolist():
            way = ways.row(row)
            publication = Publication(
                batch.timed_event(begin + row),
                frame.stamps.row(row),
                frame.publishers.row(row),
                frame.spaces.row(row),
            )
            notify = Notify(publication, way.tree, way.targets, way.examination)
            try:
                relayed = self._broker.events.relayed(notify, frame.peer)
            except TidegateError as error:
                self._refuse(begin + row, error)
                continue
            if relayed is not None:
                self._relayed[begin + row] = relayed
                self._routed[begin + row] = False
