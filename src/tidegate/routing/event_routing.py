"""Event routing: a broker matches an event once, delivers it to its clients and passes it on.

Rules.

(1) An event gets a stamp and a publication time at the broker of its publisher. Wherever it goes,
    it is matched as of this time.
(2) A client gets an event at most once, however many of its subscriptions match.
(3) Events of one broker come in the order of their stamps. One that is not newer than the last one
    from the same broker is a second copy and is dropped. Copies can come only while links change:
    at other times spanning trees bring an event to each broker once.

Theory of operation. The substrate finds the nodes of the table of subscriptions that the event
matches. Their askers say what follows: clients get the event; a named subscription evaluates it
once more, exactly (see `clients.named_subscriptions`); a monitor takes it for its pattern; and for
the neighbours among them the strategy decides the next hops (Siena, 4.2). With link matching one
search finds the next hops and the nodes of this broker's own askers (see `links.link_matching`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.askers import MonitorAsker, NamedAsker
from tidegate.routing.messages import (
    Client,
    Deliver,
    MatchedVersion,
    Notify,
    Outgoing,
    Peer,
    Publication,
    Stamp,
)
from tidegate.routing.spaces import DEFAULT, routed_event
from tidegate.routing.strategies import IncomingEvent
from tidegate.routing.substrates import FilterNode
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

    def publish(self, event: Event, client: Client, space: str | None = None) -> Outgoing:
        """Route an event that a client of this broker publishes in a space."""
        broker = self._broker
        broker.spaces.check_event(event, space)
        if event.time is None:
            event = Event(event.attributes, from_us(broker.now_us))
        stamp = Stamp(broker.name, self._begun_us, self._published + 1)
        name = (space or DEFAULT) if broker.spaces else None
        publication = Publication(event, stamp, client.identity, name)
        routed = routed_event(publication)
        if broker.only_advertised and not any(
            each.allows(routed) for each in broker.advertisements.items_of(client)
        ):
            raise RoutingError(
                f"{client.identity!r} has not advertised such an event; advertise it first"
            )
        self._published += 1
        return self._route(IncomingEvent(publication, None, None, None))

    def on_notify(self, message: Notify, peer: Peer) -> Outgoing:
        """Route an event that a neighbour passes on, unless it is a second copy."""
        broker = self._broker
        broker.domains.check_tree(message.tree, peer)
        check_publication_times([message.publication])
        if message.targets is not None and not broker.strategy.sends_targets:
            raise RoutingError("an event has a list of targets, which this routing does not use")
        origin, begun_us, number = message.publication.stamp
        if self._last_seen.get(origin, (0, 0)) >= (begun_us, number) or origin == broker.name:
            return []
        self._last_seen[origin] = (begun_us, number)
        incoming = IncomingEvent(message.publication, peer, message.tree, message.targets)
        return self._route(incoming)

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
