"""Handling many events in one step: one match for all of them, and arrays that say who gets what.

Rules.

(1) A batch leads to what its events would have led to one by one, in their order, at the same time:
    the same stamps, deliveries, copies for neighbours and refusals (`RoutedEvents.messages`).
(2) What every event needs is done in arrays. What few events need (an evolving subscription that is
    evaluated exactly, a monitor of a pattern, a client that is away) is done one by one.

Theory of operation. Each frame is accepted as a whole: events get their stamps and times, or are
dropped as second copies. The substrate then finds the pairs of an event and an asker. Pairs of this
broker's clients become `Deliveries`. For the neighbours the strategy decides as for a single event,
once for all events that came the same way and are wanted by the same neighbours: there are few such
combinations in a batch, and the next hops depend on nothing else (see `strategies.NextHops`).

With link matching and summaries a search for one event finds its next hops, so there the events are
routed one by one, and only the answer has the form of a batch.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tidegate.matching.arrays import I32, I64
from tidegate.matching.batches import Column, EventBatch
from tidegate.routing.askers import MonitorAsker, NeighbourAsker
from tidegate.routing.batching.admission import Admission, AdmittedEvents
from tidegate.routing.batching.asker_codes import (
    KIND_BITS,
    KIND_MASK,
    MONITOR,
    NAMED,
    NEIGHBOUR,
    UNNAMED,
    AskerCodes,
    AskerPairs,
)
from tidegate.routing.batching.delivery_rows import NO_HANDLE, deliveries
from tidegate.routing.batching.incoming import IncomingEvents
from tidegate.routing.batching.next_hops import PassedOnRows, add_next_hops
from tidegate.routing.batching.routed import Deliveries, RoutedEvents
from tidegate.routing.messages import Deliver
from tidegate.routing.spaces import DEFAULT, SPACE
from tidegate.routing.strategies import FilterMatching, Hops, IncomingEvent

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


class EventBatches:
    """Handles batches of events at one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._codes = AskerCodes(broker.named, broker.sessions)

    def route(self, incoming: IncomingEvents) -> RoutedEvents:
        """Route the events of a batch (rule 1)."""
        admitted = Admission(self._broker, incoming).admitted()
        passed_on = PassedOnRows()
        for event, hops in admitted.relayed.items():
            passed_on.add(np.array([event], np.int32), hops)
        matching = self._broker.matching
        if isinstance(matching, FilterMatching):
            pairs = self._matched(matching, admitted, passed_on)
        else:
            pairs = self._matched_one_by_one(admitted, passed_on)
        found = self._deliveries(admitted, *pairs)
        return RoutedEvents(
            admitted.batch,
            admitted.stamps,
            admitted.publishers,
            admitted.spaces,
            admitted.refused,
            found,
            passed_on.in_order(),
        )

    # -- matching -----------------------------------------------------------------------------

    def _matched(
        self, matching: FilterMatching, admitted: AdmittedEvents, passed_on: PassedOnRows
    ) -> AskerPairs:
        """The pairs of an event and an asker of this broker itself; adds the next hops."""
        routed = admitted.routed
        codes, events = np.zeros(0, np.int64), np.zeros(0, np.int32)
        delivered = routed
        passing = [matching.only_passes(each.targets) for each in admitted.ways.values]
        if any(passing):
            delivered = routed & ~np.array(passing)[admitted.ways.codes]
        if delivered.any():
            events, codes = matching.asker_pairs(self._matched_batch(admitted), self._codes)
            if not delivered.all():
                kept = delivered[events]
                events, codes = events[kept], codes[kept]
        is_hop = (codes & KIND_MASK) == NEIGHBOUR

        def hops_of(event: int, asking: list[NeighbourAsker]) -> Hops:
            return matching.hops(_incoming(admitted, event), asking)

        add_next_hops(
            passed_on,
            routed,
            admitted.ways,
            (events[is_hop], codes[is_hop] >> KIND_BITS),
            self._codes.hop_askers,
            hops_of,
        )
        return (events[~is_hop], codes[~is_hop]) if is_hop.any() else (events, codes)

    def _matched_batch(self, admitted: AdmittedEvents) -> EventBatch:
        """The events as brokers match them, with the names of their spaces."""
        batch, spaces = admitted.batch, admitted.spaces
        if all(each is None for each in spaces.values):
            return batch
        is_named = np.array([each is not None for each in spaces.values])[spaces.codes]
        codes: Column = pa.array(spaces.codes, mask=~is_named)
        names = pa.array([each or DEFAULT for each in spaces.values], pa.string())
        columns = [each for each in batch.columns if each[0] != SPACE]
        return replace(
            batch, columns=[*columns, (SPACE, pa.DictionaryArray.from_arrays(codes, names))]
        )

    def _matched_one_by_one(self, admitted: AdmittedEvents, passed_on: PassedOnRows) -> AskerPairs:
        """As `_matched`, where a search for one event finds its next hops."""
        events: list[int] = []
        codes: list[int] = []
        for event in np.flatnonzero(admitted.routed).tolist():
            nodes, hops = self._broker.matching.route(_incoming(admitted, event))
            askers = dict.fromkeys(asker for node in nodes for asker in node.subscribers)
            found = [self._codes.code(each) for each in askers]
            local = [each for each in found if each & KIND_MASK != NEIGHBOUR]
            events += [event] * len(local)
            codes += local
            passed_on.add(np.array([event], np.int32), hops)
        return np.array(events, np.int32), np.array(codes, np.int64)

    # -- deliveries ---------------------------------------------------------------------------

    def _deliveries(self, admitted: AdmittedEvents, events: I32, codes: I64) -> Deliveries:
        """The deliveries for the clients of this broker; tells its monitors, too."""
        broker, handles = self._broker, self._broker.named.handles
        kinds, numbers = codes & KIND_MASK, codes >> KIND_BITS
        for place in np.flatnonzero(kinds == MONITOR).tolist():
            publication = admitted.publication(events.item(place))
            broker.patterns.on_event(MonitorAsker(numbers.item(place)), publication)
        is_named, is_unnamed = kinds == NAMED, kinds == UNNAMED
        found, named_events = numbers[is_named], events[is_named]
        doubtful = np.flatnonzero(handles.evolving[found])
        if len(doubtful):
            kept = np.ones(len(found), np.bool_)
            for place in doubtful.tolist():
                asker = handles.asker(found.item(place))
                event = admitted.batch.timed_event(named_events.item(place))
                kept[place] = broker.named.matched_version(asker, event) is not None
            found, named_events = found[kept], named_events[kept]
        unnamed = numbers[is_unnamed]
        nothing = np.full(len(unnamed), NO_HANDLE)
        rows = (
            np.concatenate([handles.clients[found].astype(np.int64), unnamed]),
            np.concatenate([named_events, events[is_unnamed]]),
            np.concatenate([found, nothing]),
            np.concatenate([handles.versions[found], nothing]),
        )
        return self._sent_now(admitted, rows)

    def _sent_now(self, admitted: AdmittedEvents, pairs: tuple[I64, I32, I64, I64]) -> Deliveries:
        """The deliveries but for those that a session keeps or that its client has had."""
        sessions, length = self._broker.sessions, admitted.batch.length
        found, rows = deliveries(length, sessions, *pairs)
        away = [
            each for each, client in enumerate(found.clients) if not sessions.sends_at_once(client)
        ]
        if not away:
            return found
        sent_now = np.ones(len(found), np.bool_)
        for each in away:
            client = found.clients[each]
            for row in range(*found.client_starts[each : each + 2].tolist()):
                delivery = self._delivery(admitted, found, row)
                sent_now[row] = bool(sessions.deliver(client, delivery))
        kept = sent_now[rows]
        clients, events, handles, versions = pairs
        return deliveries(
            length, sessions, clients[kept], events[kept], handles[kept], versions[kept]
        )[0]

    def _delivery(self, admitted: AdmittedEvents, found: Deliveries, row: int) -> Deliver:
        return found.delivery(
            row, admitted.publication(found.events.item(row)), self._broker.named.name_of
        )


def _incoming(admitted: AdmittedEvents, event: int) -> IncomingEvent:
    way = admitted.ways.row(event)
    publication = admitted.publication(event)
    return IncomingEvent(publication, way.sender, way.tree, way.targets, way.examination)
