"""Event routing: a broker matches an event once, delivers it to its clients and passes it on.

Rules.

(1) An event gets a stamp and a publication time at the broker of its publisher. Wherever it goes,
    it is matched as of this time.
(2) A client gets an event at most once, however many of its subscriptions match.
(3) Events of one broker come in the order of their stamps. One that is not newer than the last one
    from the same broker is a second copy and is dropped. Copies can come only while links change:
    at other times spanning trees bring an event to each broker once, and so do summaries (see
    `summaries.examination`). A broker that only relays an event has not seen it.

Theory of operation. The substrate finds the nodes of the table of subscriptions that the event
matches. Their askers say what follows: clients get the event; a named subscription evaluates it
once more, exactly (see `clients.named_subscriptions`); a monitor takes it for its pattern; and for
the neighbours among them the strategy decides the next hops (Siena, 4.2). With link matching one
search finds the next hops and the nodes of this broker's own askers (see `links.link_matching`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.matching.arrays import I64
from tidegate.routing.askers import MonitorAsker, NamedAsker
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.messages import (
    Client,
    Deliver,
    Examination,
    MatchedVersion,
    Notify,
    Outgoing,
    Peer,
    Publication,
    Stamp,
)
from tidegate.routing.spaces import DEFAULT, in_space
from tidegate.routing.strategies import Hops, IncomingEvent
from tidegate.routing.substrates import FilterNode
from tidegate.routing.summaries.examination import check_notify
from tidegate.routing.validation import check_publication_times

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


class EventRouter:
    """Routes the events that clients publish at a broker, and those that neighbours pass on."""

    def __init__(self, broker: Broker, begun_us: int) -> None:
        self._broker = broker
        self._begun_us = begun_us
        self._published = 0
        self._last_seen: dict[Peer, tuple[int, int]] = {}
        """For each other broker, when it was started and the number of its last event seen here."""
        self._on_new: Callable[[Peer], None] | None = None

    def publish(self, event: Event, client: Client, space: str | None = None) -> Outgoing:
        """Route an event that a client of this broker publishes in a space."""
        broker = self._broker
        name = (space or DEFAULT) if broker.spaces else None
        self.check_published(event, client, space, name)
        if event.time is None:
            event = Event(event.attributes, from_us(broker.now_us))
        self._published += 1
        stamp = Stamp(broker.name, self._begun_us, self._published)
        publication = Publication(event, stamp, client.identity, name)
        return self._route(IncomingEvent(publication, None, None, None))

    def check_published(
        self, event: Event, client: Client, space: str | None, name: str | None
    ) -> None:
        """Raise unless a client may publish an event in a space, which brokers call ``name``."""
        broker = self._broker
        broker.spaces.check_event(event, space)
        broker.grants.check_event(event, client)
        if broker.only_advertised:
            routed = in_space(event, name)
            if not any(each.allows(routed) for each in broker.advertisements.items_of(client)):
                raise RoutingError(
                    f"{client.identity!r} has not advertised such an event; advertise it first"
                )

    def take_stamps(self, places: I64) -> StampColumns:
        """Stamps for events that clients publish here, each given by its place among them from 1
        on, or by 0 for an event that gets none."""
        numbers = np.where(places > 0, places + self._published, 0)
        self._published += int(places.max(initial=0))
        length = len(places)
        return StampColumns(
            Coded.constant(self._broker.name, length), np.full(length, self._begun_us), numbers
        )

    def on_notify(self, message: Notify, peer: Peer) -> Outgoing:
        """Route an event that a neighbour passes on, unless it is a second copy."""
        check_publication_times([message.publication])
        if self._broker.summaries is not None:
            relayed = self.relayed(message, peer)
            if relayed is not None:
                return [*relayed]
        else:
            self.check_way(peer, message.tree, message.targets, message.examination)
            if not self.is_new(message.publication.stamp):
                return []
        return self._route(
            IncomingEvent(
                message.publication, peer, message.tree, message.targets, message.examination
            )
        )

    def check_way(
        self,
        peer: Peer,
        tree: Peer | None,
        targets: frozenset[Peer] | None,
        examination: Examination | None,
    ) -> None:
        """Raise unless an event can have come from a neighbour this way, without summaries."""
        self._broker.domains.check_tree(tree, peer)
        has_targets = targets is not None and not self._broker.strategy.sends_targets
        if has_targets or examination is not None:
            what = "a list of targets" if has_targets else "an examiner"
            raise RoutingError(f"an event has {what}, which this routing does not use")

    def relayed(self, message: Notify, peer: Peer) -> Hops | None:
        """The copies of an event that is for other brokers only, with summaries; None if it has to
        be routed here."""
        summaries = self._broker.summaries
        assert summaries is not None
        check_notify(message)
        if summaries.is_for(message, peer) and self.is_new(message.publication.stamp):
            return None
        return summaries.relayed(message, peer)

    def is_new(self, stamp: Stamp) -> bool:
        """Whether an event is no second copy (rule 3), which it is from now on."""
        origin, begun_us, number = stamp
        if self._last_seen.get(origin, (0, 0)) >= (begun_us, number) or origin == self._broker.name:
            return False
        self._last_seen[origin] = (begun_us, number)
        if self._on_new is not None:
            self._on_new(origin)
        return True

    def on_new(self, note: Callable[[Peer], None]) -> None:
        """Call a function with the broker of each event of another broker that is new here."""
        self._on_new = note

    def last_seen_of(self, broker: Peer) -> Stamp | None:
        """The stamp of the last event of another broker that was routed here."""
        last = self._last_seen.get(broker)
        return None if last is None else Stamp(broker, *last)

    def restore_last_seen(self, stamp: Stamp) -> None:
        """Take the events of another broker up to a stamp for seen."""
        self._last_seen[stamp.broker] = (stamp.begun_us, stamp.number)

    def last_seen(self) -> tuple[Stamp, ...]:
        """The stamp of the last event of each broker that was routed here, this broker included."""
        own = Stamp(self._broker.name, self._begun_us, self._published)
        return own, *(Stamp(origin, *last) for origin, last in self._last_seen.items())

    def _route(self, incoming: IncomingEvent) -> Outgoing:
        matched, hops = self._broker.matching.route(incoming)
        return [*self._deliver(incoming.publication, matched), *hops]

    def _deliver(self, publication: Publication, matched: Iterable[FilterNode]) -> Outgoing:
        """Give an event to the clients and monitors of this broker that have asked for it."""
        broker = self._broker
        matches: dict[Client, list[MatchedVersion]] = {}
        unnamed: dict[Client, None] = {}
        for asker in dict.fromkeys(asker for node in matched for asker in node.subscribers):
            if isinstance(asker, Client):
                unnamed[asker] = None
            elif isinstance(asker, NamedAsker):
                match = broker.named.matched_version(asker, publication.event)
                if match is not None:
                    matches.setdefault(asker.client, []).append(match)
            elif isinstance(asker, MonitorAsker):
                broker.patterns.on_event(asker, publication)
        sent: Outgoing = []
        for client in {**unnamed, **dict.fromkeys(matches)}:
            versions = tuple(matches.get(client, ()))
            delivery = Deliver(publication, versions, unnamed=client in unnamed)
            sent += broker.sessions.deliver(client, delivery)
        return sent
