"""Clients that move from one broker to another and miss nothing (Siena, 3.1: identity and handler).

The client has been suspended at its old broker, which keeps what comes for it, and resumes at the
new one:

1. The new broker seeks the old one: `Seek` goes down its tree, and `SeekReply` comes back from
   everywhere as the echo of a wave, from the old broker with all that the client has asked for.
2. The new broker asks for the same, keeps what comes, and starts a wave. When the wave is back,
   every event that is published from then on comes here: `Release` goes to the old broker.
3. The old broker starts a wave too. When that is back, whatever was on its way before has come, and
   what came since has come to both: `HandOver` brings all that was kept, and the client is gone.
4. The new broker delivers what was kept there and then what was kept here, each event once and
   those of one publisher in their order. What has come to the old broker and was not kept there the
   client had before it left; on another way it may come here later, and so may what was kept.

A client may move on, and come back, before it has arrived. It counts its moves, so a broker knows
which of them come before its own: a client that is on its way here goes on from here when it has
arrived, but what is here from an earlier stay goes to the broker that it went to then.

If a link on the way goes down meanwhile, the client goes on at the new broker with what is there,
and what the old broker has stays there. A pattern is looked for anew at the new broker: a sequence
that begins before the move and ends after it is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import RoutingError
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.routing.clients.client_state import request_of
from tidegate.routing.clients.sessions import KeptDelivery
from tidegate.routing.messages import (
    Advertise,
    Client,
    Deliver,
    HandOver,
    Message,
    Outgoing,
    Peer,
    Refused,
    Release,
    Seek,
    SeekReply,
    Stamp,
    Subscribe,
)

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


_NONE_OF_ANY = Stamp("", 0, 0)


class _Name(NamedTuple):
    """Tells a move from all others."""

    origin: Peer
    number: int


@dataclass(slots=True)
class _PassingMove:
    """A move as a broker on the way sees it."""

    client: Client
    back: Peer | None
    """The neighbour towards the new broker; None at the new broker itself."""
    pending: set[Peer] = field(default_factory=set)
    """The neighbours that have not answered yet."""
    answer: SeekReply | None = None
    on: Peer | None = None
    """The neighbour towards the old broker; None at the old broker itself, or not yet known."""


class Moves:
    """The moves that begin, end or pass at a broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._started = 0
        self._ways: dict[_Name, _PassingMove] = {}
        self._next: dict[Client, list[tuple[Seek, Peer]]] = {}
        """Those who are asked for by another broker before they have arrived here, or have left."""

    def __len__(self) -> int:
        return len(self._ways) + len(self._next)

    def begin(self, client: Client, home: Peer, moves: int) -> Outgoing:
        """Fetch a client from its old broker."""
        broker = self._broker
        if client in broker.sessions and moves <= broker.sessions[client].moves:
            raise RoutingError(f"{client.identity!r} is at {broker.name!r} already")
        broker.sessions.begin_to_arrive(client, moves)
        self._started += 1
        return self._seek(Seek(broker.name, self._started, client, home, moves=moves), None)

    def sought(self, message: Seek, peer: Peer) -> Outgoing:
        """Answer if this is the old broker, or ask on."""
        broker, client = self._broker, message.client
        if message.home != broker.name or client not in broker.sessions:
            return self._seek(message, peer)
        session = broker.sessions[client]
        has_left = session.moves <= message.moves
        if has_left:
            session.is_suspended = True
        if self._is_leaving(client) or (has_left and session.is_arriving):
            self._next.setdefault(client, []).append((message, peer))
            return []
        held = broker.subscriptions.asked(client)
        wanted: list[Filter | Pattern] = [each for each in held if isinstance(each, Filter)]
        wanted += broker.patterns.held(client)
        offered = tuple(broker.offers.asked(client))
        named = tuple(broker.claims.held(client))
        answer = SeekReply(message.origin, message.number, True, tuple(wanted), offered, named)
        self._ways[_Name(message.origin, message.number)] = _PassingMove(
            client, peer, answer=answer
        )
        return [(peer, answer)]

    def _is_leaving(self, client: Client) -> bool:
        """Whether a client that is here is about to be handed over."""
        return any(
            way.client == client and way.answer is not None and way.on is None
            for way in self._ways.values()
        )

    def _seek(self, message: Seek, sender: Peer | None) -> Outgoing:
        name = _Name(message.origin, message.number)
        way = self._ways[name] = _PassingMove(message.client, sender)
        sent: Outgoing = []
        for domain, tree, source in self._broker.around.ways_of(sender, message.tree):
            for peer in domain.onward(tree, source):
                way.pending.add(peer)
                sent.append((peer, replace(message, tree=tree)))
        return sent if way.pending else self._answered(name, way)

    def found(self, message: SeekReply, peer: Peer) -> Outgoing:
        """Take the answer of a neighbour; when all have answered, do what follows."""
        name = _Name(message.origin, message.number)
        way = self._way(name)
        way.pending.discard(peer)
        if message.is_here:
            way.answer, way.on = message, peer
        return [] if way.pending else self._answered(name, way)

    def _answered(self, name: _Name, way: _PassingMove) -> Outgoing:
        if way.back is not None:
            if way.answer is None:
                del self._ways[name]
            return [(way.back, way.answer or SeekReply(*name, False))]
        broker = self._broker
        if way.answer is None or way.on is None:
            del self._ways[name]
            return self._arrived(way.client)  # it is known nowhere, and begins here
        sent = self._taken_over(way.answer, way.client)
        return sent + broker.start_wave(lambda: self._release(name))

    def _taken_over(self, answer: SeekReply, client: Client) -> Outgoing:
        """Ask for what a client had asked for; it is told of what this broker does not take."""
        sent: Outgoing = []
        for wanted in answer.wanted:
            try:
                sent += self._broker.subscribe(wanted, client)
            except RoutingError as error:
                sent.append((client, Refused(Subscribe(wanted), str(error))))
        for offered in answer.offered:
            try:
                sent += self._broker.advertise(offered, client)
            except RoutingError as error:
                sent.append((client, Refused(Advertise(offered), str(error))))
        for named in answer.named:
            try:
                self._broker.enter(named, client)
            except RoutingError as error:
                sent.append((client, Refused(request_of(named), str(error))))
        return sent

    def _release(self, name: _Name) -> Outgoing:
        way = self._ways.get(name)
        if way is None or way.on is None:
            return []  # the neighbour was lost meanwhile
        return [(way.on, Release(*name))]

    def lost(self, peer: Peer) -> Outgoing:
        """Go on without a neighbour that is gone."""
        sent: Outgoing = []
        for name, way in list(self._ways.items()):
            if way.back == peer:
                sent += self._stay(name)
            elif way.on == peer:
                sent += self.handed_over(HandOver(*name, ()))
            elif peer in way.pending:
                sent += self.found(SeekReply(*name, False), peer)
        for client, waiting in list(self._next.items()):
            self._next[client] = [each for each in waiting if each[1] != peer]
            if not self._next[client]:
                del self._next[client]
        return sent

    def refused(self, request: Message, peer: Peer) -> Outgoing:
        """Keep a client that was found, but whose new broker cannot be reached any more."""
        if not isinstance(request, SeekReply):
            return []
        name = _Name(request.origin, request.number)
        way = self._ways.get(name)
        return [] if way is None or way.back != peer else self._stay(name)

    def _stay(self, name: _Name) -> Outgoing:
        """Forget a move to a broker that cannot be reached, here and further down."""
        way = self._ways.pop(name)
        if way.answer is None:
            return []
        if way.on is not None:
            return [(way.on, Refused(way.answer, "the new broker cannot be reached any more"))]
        return self._go_on(way.client)

    def released(self, message: Release, peer: Peer) -> Outgoing:
        """Pass it on, or let the client go."""
        name = _Name(message.origin, message.number)
        way = self._way(name)
        if way.on is not None:
            return [(way.on, message)]
        return self._broker.start_wave(lambda: self._hand_over(name, peer))

    def _hand_over(self, name: _Name, peer: Peer) -> Outgoing:
        way = self._ways.pop(name, None)
        if way is None:
            return []  # the neighbour was lost meanwhile
        if way.client not in self._broker.sessions:
            return [(peer, HandOver(*name, ()))]  # it has departed here meanwhile
        session = self._broker.sessions[way.client]
        seen = _latest([*self._broker.last_seen(), *session.had.values()])
        hand_over = HandOver(*name, tuple(session.kept), session.missed, tuple(seen.values()))
        sent: Outgoing = [*self._broker.dismiss(way.client), (peer, hand_over)]
        if session.is_arriving:
            self._broker.sessions.empty(way.client, session)
        return sent + self._go_on(way.client)

    def handed_over(self, message: HandOver) -> Outgoing:
        """Pass it back, or deliver what was kept."""
        name = _Name(message.origin, message.number)
        way = self._way(name)
        del self._ways[name]
        if way.back is not None:
            return [(way.back, message)]
        session = self._broker.sessions[way.client]
        session.had = _latest(message.seen)
        merged = _merged([*message.kept, *_unseen(session.kept, session.had)])
        session.kept.clear()
        session.kept.extend(merged)
        session.missed += message.missed
        return self._arrived(way.client)

    def _arrived(self, client: Client) -> Outgoing:
        broker = self._broker
        requests = broker.sessions[client].requests
        waiting = list(requests)
        requests.clear()
        sent = broker.sessions.arrived(client)
        for request in waiting:  # behind one to come from elsewhere, the others wait again
            sent += broker.handle(request, client, broker.now_us)
        return sent + self._go_on(client)

    def _go_on(self, client: Client) -> Outgoing:
        """Answer those who have asked for a client, now that it has arrived or left."""
        waiting = sorted(self._next.pop(client, ()), key=lambda each: each[0].moves)
        return [sent for seek, peer in waiting for sent in self.sought(seek, peer)]

    def _way(self, name: _Name) -> _PassingMove:
        way = self._ways.get(name)
        if way is None:
            raise RoutingError(f"no client moves by the name of {tuple(name)}")
        return way


def _latest(stamps: Iterable[Stamp]) -> dict[Peer, Stamp]:
    """The last event of each broker."""
    return {stamp.broker: stamp for stamp in sorted(stamps)}


def _unseen(kept: Iterable[KeptDelivery], last: Mapping[Peer, Stamp]) -> list[KeptDelivery]:
    """Deliveries without the events that have come to another broker."""
    return [
        each
        for each in kept
        if not isinstance(each, Deliver)
        or (stamp := each.publication.stamp) > last.get(stamp.broker, _NONE_OF_ANY)
    ]


def _merged(kept: Iterable[KeptDelivery]) -> list[KeptDelivery]:
    """Deliveries without the second copies, those of one publisher in order."""
    events: dict[Stamp, KeptDelivery] = {}
    others: list[KeptDelivery] = []
    for each in kept:
        if isinstance(each, Deliver):
            events.setdefault(each.publication.stamp, each)
        else:
            others.append(each)
    places: dict[tuple[Peer, int], list[Stamp]] = {}
    for stamp in events:
        places.setdefault((stamp.broker, stamp.begun), []).append(stamp)
    in_order = {source: iter(sorted(stamps)) for source, stamps in places.items()}
    return [events[next(in_order[stamp.broker, stamp.begun])] for stamp in events] + others
