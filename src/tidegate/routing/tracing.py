"""Tracing: the way that an event would take through the network, with the report of each broker.

Rules.

(1) A trace follows the hops that an event would take, over the same links and in their order. So it
    sees at each broker what an event sees that is published now. It is delivered to nobody, gets no
    stamp, and is not taken for seen.
(2) Each broker on the way reports to the broker where the trace began. Reports go back hop by hop;
    each says to whom the trace was passed on, so that it is known how many reports are to come.
(3) A broker forgets its way back after some time. Links that change may cost a report, and whoever
    asked stops waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.errors import RoutingError, TidegateError
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.messages import (
    Client,
    Notify,
    Outgoing,
    Peer,
    Publication,
    Stamp,
    Trace,
    Traced,
)
from tidegate.routing.spaces import DEFAULT
from tidegate.routing.strategies import Hops, IncomingEvent
from tidegate.routing.summaries.examination import check_notify
from tidegate.routing.trace_report import refused_report, relayed_report, report_of
from tidegate.routing.validation import check_publication_times

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker

TRACES_MAX = 1_000
"""Ways back that a broker remembers."""
VISITS_MAX = 100
"""How often one trace may come to a broker, while links change and it goes round."""

Told = Callable[[dict[str, Any]], None]


class Traces:
    """The traces that a broker has begun, and the way back of those that went through it."""

    def __init__(self, broker: Broker, begun_us: int) -> None:
        self._broker = broker
        self._number = begun_us
        self._told: dict[int, Told] = {}
        """By number: who is told the reports of a trace that was begun here."""
        self._back: dict[tuple[Peer, int], Peer] = {}
        self._visits: dict[tuple[Peer, int], int] = {}

    def begin(
        self, event: Event, client: Client, space: str | None, now_us: int, told: Told
    ) -> tuple[int, Outgoing]:
        """Trace an event as if a client published it here; ``told`` gets each report as it comes.

        Call `end` when no more reports are wanted.
        """
        broker = self._broker
        broker.now_us = now_us
        self._number += 1
        name = (space or DEFAULT) if broker.spaces else None
        try:
            broker.events.check_published(event, client, space, name)
        except TidegateError as error:
            told(refused_report(broker, str(error)))
            return self._number, []
        if event.time is None:
            event = Event(event.attributes, from_us(broker.now_us))
        stamp = Stamp(broker.name, 0, 0)
        publication = Publication(event, stamp, client.identity, name)
        self._told[self._number] = told
        incoming = IncomingEvent(publication, None, None, None)
        report, hops = self._routed(incoming)
        told(report)
        return self._number, self._onward(broker.name, self._number, hops)

    def end(self, number: int) -> None:
        """Take no more reports of a trace."""
        self._told.pop(number, None)

    def on_trace(self, message: Trace, peer: Peer) -> Outgoing:
        """Report what becomes of an event here, and pass the trace on."""
        broker, notify = self._broker, message.notify
        check_publication_times([notify.publication])
        key = (message.origin, message.number)
        self._back.setdefault(key, peer)
        self._visits[key] = self._visits.get(key, 0) + 1
        for kept in (self._back, self._visits):
            while len(kept) > TRACES_MAX:
                del kept[next(iter(kept))]
        if self._visits.get(key, 0) > VISITS_MAX:
            return []
        hops = None
        if broker.summaries is None:
            broker.events.check_way(peer, notify.tree, notify.targets, notify.examination)
        else:
            check_notify(notify)
            if not broker.summaries.is_for(notify, peer):
                hops = broker.summaries.relayed(notify, peer)
        if hops is not None:
            report = relayed_report(broker, peer, hops)
        else:
            incoming = IncomingEvent(
                notify.publication, peer, notify.tree, notify.targets, notify.examination
            )
            report, hops = self._routed(incoming)
        text = json.dumps(report, ensure_ascii=False)
        back: Outgoing = [(peer, Traced(message.origin, message.number, text))]
        return back + self._onward(message.origin, message.number, hops)

    def _routed(self, incoming: IncomingEvent) -> tuple[dict[str, Any], Hops]:
        matched, hops = self._broker.matching.route(incoming)
        return report_of(self._broker, incoming, matched, hops), hops

    def _onward(self, origin: Peer, number: int, hops: Hops) -> Outgoing:
        return [(peer, Trace(origin, number, _without_stamp(notify))) for peer, notify in hops]

    def on_traced(self, message: Traced, peer: Peer) -> Outgoing:
        """Take a report, or pass it on to where its trace began."""
        if message.origin != self._broker.name:
            back = self._back.get((message.origin, message.number))
            is_neighbour = back in self._broker.domains.domain_of
            return [(back, message)] if back is not None and is_neighbour else []
        told = self._told.get(message.number)
        if told is None:
            return []
        try:
            report = json.loads(message.report)
        except ValueError:
            report = None
        if not isinstance(report, dict) or not isinstance(report.get("broker"), str):
            raise RoutingError(f"the report of a trace that {peer!r} has sent is malformed")
        told(report)
        return []


def _without_stamp(notify: Notify) -> Notify:
    """The notification as it is traced: no stamp was taken for it."""
    stamp = Stamp(notify.publication.stamp.broker, 0, 0)
    return replace(notify, publication=replace(notify.publication, stamp=stamp))
