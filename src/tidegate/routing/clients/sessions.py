"""Sessions: which clients a broker has, and the deliveries it keeps for those that are away.

A client is *suspended* from `Suspend` to `Resume`, and *arriving* while it moves here from another
broker (see `moves`). Deliveries for a suspended or arriving client are kept, in order, and sent
when it is neither. Requests of an arriving client wait until it has arrived: they may be about
subscriptions that its old broker has not handed over yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tidegate.errors import RoutingError
from tidegate.routing.messages import (
    Client,
    Deliver,
    DeliverSequence,
    Message,
    Missed,
    Outgoing,
    Peer,
    Resume,
    Stamp,
    Suspend,
)

KEPT_MAX = 100_000
"""Deliveries kept for one client; with more, the oldest are dropped and counted as missed."""

REQUESTS_MAX = 1_000
"""Requests of one client that wait until it has arrived."""

KeptDelivery = Deliver | DeliverSequence


@dataclass(slots=True)
class Session:
    """A client as its broker sees it."""

    is_suspended: bool = False
    is_arriving: bool = False
    """Whether another broker has still to hand over the deliveries that come before all others."""
    moves: int = 0
    """The number of the move by which the client came here, or is coming, as the client counts."""
    kept: deque[KeptDelivery] = field(default_factory=deque)
    requests: deque[Message] = field(default_factory=deque)
    """Requests that wait until the client has arrived."""
    missed: int = 0
    """How many deliveries were dropped because too many were kept."""
    seen_elsewhere: dict[Peer, Stamp] = field(default_factory=dict)
    """The last event of each broker that reached the client's earlier brokers. Events up to there
    were the business of those brokers, although some may reach this one later."""

    def was_seen_elsewhere(self, delivery: KeptDelivery) -> bool:
        """Whether an event that comes now has reached an earlier broker of the client."""
        if not isinstance(delivery, Deliver):
            return False
        stamp = delivery.publication.stamp
        last = self.seen_elsewhere.get(stamp.broker)
        if last is not None and last < stamp:
            # Events of one broker come in order: none of those before can come any more.
            del self.seen_elsewhere[stamp.broker]
        return last is not None and stamp <= last


class Sessions:
    """The sessions of the clients of a broker."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._sessions: dict[Client, Session] = {}
        self._numbers: dict[Client, int] = {}
        self._clients: list[Client | None] = []
        """The clients by their numbers; None where a number is free."""
        self._free_numbers: list[int] = []
        self._on_change: Callable[[Client], None] | None = None

    def on_change(self, note: Callable[[Client], None]) -> None:
        """Call a function with each client whose session begins, ends or changes."""
        self._on_change = note

    def changed(self, client: Client) -> None:
        """Note that the session of a client, or its patterns, have changed."""
        if self._on_change is not None:
            self._on_change(client)

    def __iter__(self) -> Iterator[Client]:
        """The clients that have a session."""
        return iter(self._sessions)

    def __contains__(self, client: Client) -> bool:
        return client in self._sessions

    def __getitem__(self, client: Client) -> Session:
        """The session of a client; raises RoutingError if it has none."""
        session = self._sessions.get(client)
        if session is None:
            raise RoutingError(
                f"{client.identity!r} is not known here; a session begins with the first "
                "subscription or advertisement"
            )
        return session

    def begin(self, client: Client) -> None:
        """Begin the session of a client, unless it has one."""
        if client not in self._sessions:
            self._start(client, Session())

    def _start(self, client: Client, session: Session) -> None:
        self._sessions[client] = session
        number = self._free_numbers.pop() if self._free_numbers else len(self._clients)
        self._clients[number : number + 1] = [client]
        self._numbers[client] = number
        self.changed(client)

    def number(self, client: Client) -> int:
        """A small number for a client that has a session; it is used again after the session."""
        return self._numbers[client]

    def client(self, number: int) -> Client:
        """The client whose session has a number."""
        client = self._clients[number]
        assert client is not None
        return client

    def sends_at_once(self, client: Client) -> bool:
        """Whether `deliver` would return any delivery for a client as it is."""
        session = self._sessions.get(client)
        return session is None or not (
            session.is_suspended or session.is_arriving or session.seen_elsewhere
        )

    def must_wait(self, client: Client, request: Message) -> bool:
        """Whether a request has to wait until the client has arrived.

        Suspending and resuming at this broker need not wait, except behind a move to this broker
        that waits itself: they come after that move.
        """
        session = self._sessions.get(client)
        if session is None or not session.is_arriving:
            return False
        behind_move = any(isinstance(each, Resume) for each in session.requests)
        at_this_broker = request == Resume() or isinstance(request, Suspend)
        return behind_move or not at_this_broker

    def is_arriving(self, client: Client) -> bool:
        """Whether events that a client publishes have to wait until it has arrived."""
        session = self._sessions.get(client)
        return session is not None and session.is_arriving

    def postpone(self, client: Client, request: Message) -> None:
        """Keep a request until the client has arrived."""
        requests = self[client].requests
        if len(requests) >= REQUESTS_MAX:
            raise RoutingError(
                f"{client.identity!r} is still on its way here and has {REQUESTS_MAX} requests "
                "waiting, which is the most"
            )
        requests.append(request)

    def suspend(self, client: Client) -> None:
        """Keep the deliveries for a client from now on."""
        self[client].is_suspended = True
        self.changed(client)

    def deliver(self, client: Client, delivery: KeptDelivery) -> Outgoing:
        """Send a delivery to a client, or keep it while the client is suspended or arriving."""
        session = self._sessions.get(client)
        if session is None:
            return [(client, delivery)]
        if session.seen_elsewhere:
            was_seen = session.was_seen_elsewhere(delivery)
            self.changed(client)
            if was_seen:
                return []
        if not (session.is_suspended or session.is_arriving):
            return [(client, delivery)]
        session.kept.append(delivery)
        if len(session.kept) > self._kept_max:
            session.kept.popleft()
            session.missed += 1
        return []

    def resume(self, client: Client) -> Outgoing:
        """End the suspension of a client; returns the kept deliveries."""
        self[client].is_suspended = False
        self.changed(client)
        return self._send_kept(client)

    def arrived(self, client: Client) -> Outgoing:
        """Note that another broker has handed over a client; returns the kept deliveries."""
        self[client].is_arriving = False
        self.changed(client)
        return self._send_kept(client)

    def _send_kept(self, client: Client) -> Outgoing:
        """The kept deliveries, unless the client is still suspended or arriving."""
        session = self[client]
        if session.is_suspended or session.is_arriving:
            return []
        sent: Outgoing = [(client, Missed(session.missed))] if session.missed else []
        sent += [(client, each) for each in session.kept]
        session.kept.clear()
        session.missed = 0
        return sent

    def begin_arrival(self, client: Client, moves: int) -> None:
        """Begin the move of a client to this broker, where it may have a session already."""
        self.begin(client)
        session = self[client]
        session.is_arriving, session.is_suspended, session.moves = True, False, moves
        self.changed(client)

    def reset(self, client: Client, session: Session) -> None:
        """Put a session back, without its deliveries, for a client that was handed over from here
        while it was already on its way back."""
        session.kept.clear()
        session.seen_elsewhere.clear()
        session.missed = 0
        self.end(client)
        self._start(client, session)

    def end(self, client: Client) -> None:
        """End the session of a client, if it has one."""
        if self._sessions.pop(client, None) is not None:
            number = self._numbers.pop(client)
            self._clients[number] = None
            self._free_numbers.append(number)
            self.changed(client)
