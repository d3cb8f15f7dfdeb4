"""Moves: a client goes from one broker to another and misses nothing (Siena, 3.1: identity and
handler).

The client was suspended at its old broker, which keeps its deliveries, and resumes at the new one:

    new broker                              old broker
    1  Seek       -- down the tree -->      finds the client
                  <-- SeekReply ---         with its subscriptions and advertisements
    2  subscribes to the same, keeps
       deliveries, starts a wave
       Release    --------------->
    3                                       starts a wave, then
                  <-- HandOver ----         hands over what it has kept; the client is gone
    4  delivers what was kept there, then
       what was kept here

1. `Seek` reaches all brokers, and `SeekReply` comes back from all of them like the echo of a wave.
2. When the wave of the new broker is back, all brokers have its subscriptions: every event that is
   published from then on comes to it.
3. When the wave of the old broker is back, all events that were on their way to it have arrived,
   and events published since have come to both brokers.
4. The new broker drops second copies, and puts the events of each publisher's broker in order. It
   also drops events that have reached the old broker and were not kept there, because the client
   had them before it left (`HandOver.seen`). Along another path such an event may come here later.

The answers follow the tree back on which `Seek` came: each broker on the path remembers from which
neighbour (`_PassingMove`), and `Release` and `HandOver` are passed on along it.

Counters. A client may move on, and come back, before it has arrived. It counts its moves, so that a
broker that is asked for a client can tell which stay is meant. If the client has moved on from
here, it goes on when it has arrived here; but what is left here of an earlier stay goes to the
broker to which the client went then, although the client is on its way here again.

With summaries events do not follow the trees of waves; `Broker.start_wave` then does what brings
about the same (see `summaries.draining`).

If a link on the path goes down meanwhile, the client goes on at the new broker with what that one
has, and what the old broker has kept stays there. A pattern starts again at the new broker: a
sequence that begins before the move and ends after it is not found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from tidegate.errors import RoutingError, TidegateError
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.routing.clients.client_state import subscribe_request
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


_BEFORE_ALL = Stamp("", 0, 0)
"""A stamp before those of all events."""


class _MoveId(NamedTuple):
    """Identifies a move in the overlay: the new broker, and its count of moves."""

    origin: Peer
    number: int


@dataclass(slots=True)
class _PassingMove:
    """A move as a broker on the path sees it; the new and the old broker are its ends."""

    client: Client
    towards_new: Peer | None
    """The neighbour towards the new broker; None at the new broker itself."""
    pending: set[Peer] = field(default_factory=set)
    """The neighbours that have not answered `Seek` yet."""
    answer: SeekReply | None = None
    """The answer of the old broker; None until it has come."""
    towards_old: Peer | None = None
    """The neighbour towards the old broker; None at the old broker itself, or not yet known."""


class Moves:
    """The moves that begin or end at a broker, or pass it."""

    def __init__(self, broker: Broker, begun_us: int) -> None:
        self._broker = broker
        self._last_number = begun_us
        """Numbers go on over restarts: an answer to a move from before may still be on its way."""
        self._moves: dict[_MoveId, _PassingMove] = {}
        self._taken_back: Callable[[Client], Sequence[KeptDelivery]] = _nothing
        self._note_arrival: Callable[[Client], object] = _nothing
        self._waiting_seeks: dict[Client, list[tuple[Seek, Peer]]] = {}
        """`Seek` messages, with their senders, for clients that have not arrived here yet, or have
        not left to another broker yet."""

    def take_part(
        self,
        taken_back: Callable[[Client], Sequence[KeptDelivery]],
        note_arrival: Callable[[Client], object],
    ) -> None:
        """Let a runtime take part.

        ``taken_back`` returns, for a client that is handed over from here, the deliveries that the
        runtime has not brought to it; they come before those that the broker has kept.
        ``note_arrival`` is called with each client that has arrived here, before its deliveries.
        """
        self._taken_back, self._note_arrival = taken_back, note_arrival

    def __len__(self) -> int:
        return len(self._moves) + len(self._waiting_seeks)

    # -- 1: the new broker looks for the old one ------------------------------------------------

    def begin(self, client: Client, home: Peer, moves: int) -> Outgoing:
        """Fetch a client, which resumes here, from its old broker."""
        broker = self._broker
        if client in broker.sessions and moves <= broker.sessions[client].moves:
            raise RoutingError(
                f"{client.identity!r} is at {broker.name!r} already; a client that comes back must "
                "count its moves"
            )
        broker.sessions.begin_arrival(client, moves)
        self._last_number += 1
        return self._seek(Seek(broker.name, self._last_number, client, home, moves=moves), None)

    def on_seek(self, message: Seek, peer: Peer) -> Outgoing:
        """Answer if this is the old broker, else pass the message on."""
        broker, client = self._broker, message.client
        if message.home != broker.name or client not in broker.sessions:
            return self._seek(message, peer)
        session = broker.sessions[client]
        # Else the client has come back since, and is asked for because of an earlier stay.
        has_left = session.moves <= message.moves
        if has_left:
            session.is_suspended = True
        if self._is_leaving(client) or (has_left and session.is_arriving):
            self._waiting_seeks.setdefault(client, []).append((message, peer))
            return []
        filters = broker.subscriptions.items_of(client)
        wanted: list[Filter | Pattern] = [each for each in filters if isinstance(each, Filter)]
        wanted += broker.patterns.patterns_of(client)
        advertisements = tuple(broker.advertisements.items_of(client))
        named = tuple(broker.named.subscriptions_of(client))
        answer = SeekReply(
            message.origin, message.number, True, tuple(wanted), advertisements, named
        )
        move_id = _MoveId(message.origin, message.number)
        self._moves[move_id] = _PassingMove(client, peer, answer=answer)
        return [(peer, answer)]

    def _is_leaving(self, client: Client) -> bool:
        """Whether this is the old broker in a move of a client that was not handed over yet."""
        return any(
            move.client == client and move.answer is not None and move.towards_old is None
            for move in self._moves.values()
        )

    def _seek(self, message: Seek, sender: Peer | None) -> Outgoing:
        move_id = _MoveId(message.origin, message.number)
        move = self._moves[move_id] = _PassingMove(message.client, sender)
        sent: Outgoing = []
        for domain, tree, source in self._broker.domains.trees_from(sender, message.tree):
            for peer in domain.downstream(tree, source):
                move.pending.add(peer)
                sent.append((peer, replace(message, tree=tree)))
        return sent if move.pending else self._all_answered(move_id, move)

    def on_seek_reply(self, message: SeekReply, peer: Peer) -> Outgoing:
        """Note the answer of a neighbour; when all have answered, take the next step."""
        move_id = _MoveId(message.origin, message.number)
        move = self._find(move_id)
        move.pending.discard(peer)
        if message.is_found:
            move.answer, move.towards_old = message, peer
        return [] if move.pending else self._all_answered(move_id, move)

    def _all_answered(self, move_id: _MoveId, move: _PassingMove) -> Outgoing:
        if move.towards_new is not None:
            if move.answer is None:
                del self._moves[move_id]
            return [(move.towards_new, move.answer or SeekReply(*move_id, False))]
        if move.answer is None or move.towards_old is None:
            del self._moves[move_id]
            return self._arrived(move.client)  # known at no broker: it starts here
        sent = self._take_over(move.answer, move.client)
        return sent + self._broker.start_wave(lambda: self._release(move_id))

    # -- 2: the new broker takes the subscriptions over -----------------------------------------

    def _take_over(self, answer: SeekReply, client: Client) -> Outgoing:
        """Subscribe and advertise for a client as at its old broker.

        The client gets a `Refused` for each request that this broker does not accept.
        """
        sent: Outgoing = []
        spaces = self._broker.spaces
        for wanted in answer.subscriptions:
            try:
                spaces.check_moved(wanted)
                sent += self._broker.subscribe(wanted, client)
            except TidegateError as error:
                written, space = spaces.unbound(wanted)
                sent.append((client, Refused(Subscribe(written, space=space), str(error))))
        for advertisement in answer.advertisements:
            try:
                spaces.check_moved(advertisement)
                sent += self._broker.advertise(advertisement, client)
            except TidegateError as error:
                request = Advertise(*spaces.unbound(advertisement))
                sent.append((client, Refused(request, str(error))))
        for named in answer.named:
            try:
                spaces.check_named(named, None)
                self._broker.subscribe_named(named, client)
            except TidegateError as error:
                sent.append((client, Refused(subscribe_request(named), str(error))))
        return sent

    def _release(self, move_id: _MoveId) -> Outgoing:
        move = self._moves.get(move_id)
        if move is None or move.towards_old is None:
            return []  # the link towards the old broker was lost meanwhile
        return [(move.towards_old, Release(*move_id))]

    # -- 3: the old broker hands over -----------------------------------------------------------

    def on_release(self, message: Release, peer: Peer) -> Outgoing:
        """Pass the message on towards the old broker, or hand the client over after a wave."""
        move_id = _MoveId(message.origin, message.number)
        move = self._find(move_id)
        if move.towards_old is not None:
            return [(move.towards_old, message)]
        return self._broker.start_wave(lambda: self._hand_over(move_id, peer))

    def _hand_over(self, move_id: _MoveId, peer: Peer) -> Outgoing:
        move = self._moves.pop(move_id, None)
        if move is None:
            return []  # the link towards the new broker was lost meanwhile
        if move.client not in self._broker.sessions:
            return [(peer, HandOver(*move_id, ()))]  # it has departed here meanwhile
        session = self._broker.sessions[move.client]
        # Events that had reached a still earlier broker may not have reached this one yet.
        seen = _latest([*self._broker.events.last_seen(), *session.seen_elsewhere.values()])
        kept = (*self._taken_back(move.client), *session.kept)
        hand_over = HandOver(*move_id, kept, session.missed, tuple(seen.values()))
        sent: Outgoing = [*self._broker.remove_client(move.client), (peer, hand_over)]
        if session.is_arriving:  # the client is on its way back here
            self._broker.sessions.reset(move.client, session)
        return sent + self._answer_waiting(move.client)

    # -- 4: the new broker delivers -------------------------------------------------------------

    def on_hand_over(self, message: HandOver) -> Outgoing:
        """Pass the message on towards the new broker, or deliver the kept deliveries."""
        move_id = _MoveId(message.origin, message.number)
        move = self._find(move_id)
        del self._moves[move_id]
        if move.towards_new is not None:
            return [(move.towards_new, message)]
        session = self._broker.sessions[move.client]
        session.seen_elsewhere = _latest(message.seen)
        merged = _merged([*message.kept, *_unseen(session.kept, session.seen_elsewhere)])
        session.kept.clear()
        session.kept.extend(merged)
        session.missed += message.missed
        return self._arrived(move.client)

    def _arrived(self, client: Client) -> Outgoing:
        """Deliver the kept deliveries, and handle the requests that have waited for the arrival.

        If one of them is a move to this broker again, the requests behind it wait again.
        """
        broker = self._broker
        requests = broker.sessions[client].requests
        waiting = list(requests)
        requests.clear()
        self._note_arrival(client)
        sent = broker.sessions.arrived(client)
        for request in waiting:
            sent += broker.handle(request, client, broker.now_us)
        return sent + self._answer_waiting(client)

    def _answer_waiting(self, client: Client) -> Outgoing:
        """Answer the brokers that look for a client, now that it has arrived here or left."""
        waiting = sorted(self._waiting_seeks.pop(client, ()), key=lambda each: each[0].moves)
        return [sent for seek, peer in waiting for sent in self.on_seek(seek, peer)]

    # -- lost links -----------------------------------------------------------------------------

    def on_link_lost(self, peer: Peer) -> Outgoing:
        """Let the moves go on without a neighbour whose link is down."""
        sent: Outgoing = []
        for move_id, move in list(self._moves.items()):
            if move.towards_new == peer:
                sent += self._abandon(move_id)
            elif move.towards_old == peer:
                sent += self.on_hand_over(HandOver(*move_id, ()))
            elif peer in move.pending:
                sent += self.on_seek_reply(SeekReply(*move_id, False), peer)
        for client, waiting in list(self._waiting_seeks.items()):
            self._waiting_seeks[client] = [each for each in waiting if each[1] != peer]
            if not self._waiting_seeks[client]:
                del self._waiting_seeks[client]
        return sent

    def on_refused(self, request: Message, peer: Peer) -> Outgoing:
        """Abandon a move whose `SeekReply` was refused: the new broker is no longer on the path."""
        if not isinstance(request, SeekReply):
            return []
        move_id = _MoveId(request.origin, request.number)
        move = self._moves.get(move_id)
        return [] if move is None or move.towards_new != peer else self._abandon(move_id)

    def _abandon(self, move_id: _MoveId) -> Outgoing:
        """Forget a move to a broker that cannot be reached, here and further towards the old one;
        the client stays at its old broker."""
        move = self._moves.pop(move_id)
        if move.answer is None:
            return []
        if move.towards_old is not None:
            reason = "the new broker cannot be reached any more"
            return [(move.towards_old, Refused(move.answer, reason))]
        return self._answer_waiting(move.client)

    def _find(self, move_id: _MoveId) -> _PassingMove:
        move = self._moves.get(move_id)
        if move is None:
            raise RoutingError(
                f"no client moves under the number {move_id.number} of {move_id.origin!r}"
            )
        return move


def _nothing(_: Client) -> Sequence[KeptDelivery]:
    """What a runtime adds to a move that takes no part."""
    return ()


def _latest(stamps: Iterable[Stamp]) -> dict[Peer, Stamp]:
    """The last of some stamps for each broker."""
    return {stamp.broker: stamp for stamp in sorted(stamps)}


def _unseen(kept: Iterable[KeptDelivery], last: Mapping[Peer, Stamp]) -> list[KeptDelivery]:
    """Deliveries without the events that have reached another broker."""
    return [
        each
        for each in kept
        if not isinstance(each, Deliver)
        or (stamp := each.publication.stamp) > last.get(stamp.broker, _BEFORE_ALL)
    ]


def _merged(kept: Iterable[KeptDelivery]) -> list[KeptDelivery]:
    """Deliveries of two brokers: each event once, and those of one broker in their order.

    The places of the events of one broker stay the same; only which event has which place changes.
    """
    events: dict[Stamp, KeptDelivery] = {}
    others: list[KeptDelivery] = []
    for each in kept:
        if isinstance(each, Deliver):
            events.setdefault(each.publication.stamp, each)
        else:
            others.append(each)
    by_source: dict[tuple[Peer, int], list[Stamp]] = {}
    for stamp in events:
        by_source.setdefault((stamp.broker, stamp.begun_us), []).append(stamp)
    in_order = {source: iter(sorted(stamps)) for source, stamps in by_source.items()}
    return [events[next(in_order[stamp.broker, stamp.begun_us])] for stamp in events] + others
