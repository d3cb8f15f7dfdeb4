"""The clients of a broker: whether they are there, and what is kept for them while they are not."""

from __future__ import annotations

from collections import deque
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
"""So many deliveries are kept for a client that is suspended; after that the oldest go."""

REQUESTS_MAX = 1_000
"""So many requests of a client wait until it has arrived."""

KeptDelivery = Deliver | DeliverSequence


@dataclass(slots=True)
class Session:
    """A client as its broker sees it."""

    is_suspended: bool = False
    is_arriving: bool = False
    """Whether what another broker has kept for it is still to come, before all else."""
    moves: int = 0
    """The number of the move that has brought it here, or brings it, as the client counts them."""
    kept: deque[KeptDelivery] = field(default_factory=deque)
    requests: deque[Message] = field(default_factory=deque)
    """What it has asked for since it is arriving, to be done when it has arrived."""
    missed: int = 0
    """How many deliveries were dropped because too many were kept."""
    had: dict[Peer, Stamp] = field(default_factory=dict)
    """The last event of each broker that was its turn elsewhere; here these may come later."""

    def has_had(self, delivery: KeptDelivery) -> bool:
        """Whether something that comes now was its turn elsewhere."""
        if not isinstance(delivery, Deliver):
            return False
        stamp = delivery.publication.stamp
        last = self.had.get(stamp.broker)
        if last is not None and last < stamp:
            del self.had[stamp.broker]  # events of a broker come in order
        return last is not None and stamp <= last


class Sessions:
    """The clients of a broker."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._sessions: dict[Client, Session] = {}

    def __contains__(self, client: Client) -> bool:
        return client in self._sessions

    def __len__(self) -> int:
        return len(self._sessions)

    def __getitem__(self, client: Client) -> Session:
        """The session of a client that is known."""
        session = self._sessions.get(client)
        if session is None:
            raise RoutingError(f"{client.identity!r} is not known here")
        return session

    def begin(self, client: Client) -> None:
        """Know a client from now on."""
        self._sessions.setdefault(client, Session())

    def is_arriving(self, client: Client) -> bool:
        """Whether a client is on its way here from another broker."""
        session = self._sessions.get(client)
        return session is not None and session.is_arriving

    def must_wait(self, client: Client, request: Message) -> bool:
        """Whether something has to wait until a client has arrived.

        To be suspended and resumed here does not have to, except behind a move that waits.
        """
        session = self._sessions.get(client)
        if session is None or not session.is_arriving:
            return False
        moves_on = any(isinstance(each, Resume) for each in session.requests)
        is_here = request == Resume() or isinstance(request, Suspend)
        return moves_on or not is_here

    def postpone(self, client: Client, request: Message) -> None:
        """Keep what a client asks for until it has arrived."""
        requests = self[client].requests
        if len(requests) >= REQUESTS_MAX:
            raise RoutingError(
                f"{client.identity!r} is still on its way here and has {REQUESTS_MAX} requests "
                "waiting, which is the most"
            )
        requests.append(request)

    def suspend(self, client: Client) -> None:
        """Keep what comes for a client from now on."""
        self[client].is_suspended = True

    def deliver(self, client: Client, delivery: KeptDelivery) -> Outgoing:
        """Send something to a client, or keep it if the client is suspended."""
        session = self._sessions.get(client)
        if session is None:
            return [(client, delivery)]
        if session.had and session.has_had(delivery):
            return []
        if not (session.is_suspended or session.is_arriving):
            return [(client, delivery)]
        session.kept.append(delivery)
        if len(session.kept) > self._kept_max:
            session.kept.popleft()
            session.missed += 1
        return []

    def resume(self, client: Client) -> Outgoing:
        """Send what was kept, from now on at once."""
        self[client].is_suspended = False
        return self._kept(client)

    def arrived(self, client: Client) -> Outgoing:
        """Take note that all has come that another broker has kept."""
        self[client].is_arriving = False
        return self._kept(client)

    def _kept(self, client: Client) -> Outgoing:
        """What was kept, if it can be sent now."""
        session = self[client]
        if session.is_suspended or session.is_arriving:
            return []
        sent: Outgoing = [(client, Missed(session.missed))] if session.missed else []
        sent += [(client, each) for each in session.kept]
        session.kept.clear()
        session.missed = 0
        return sent

    def begin_to_arrive(self, client: Client, moves: int) -> None:
        """Know a client that another broker has something for, and that may be known already."""
        self.begin(client)
        session = self[client]
        session.is_arriving, session.is_suspended, session.moves = True, False, moves

    def empty(self, client: Client, session: Session) -> None:
        """Have nothing for a client any more that was here and comes back."""
        session.kept.clear()
        session.had.clear()
        session.missed = 0
        self._sessions[client] = session

    def end(self, client: Client) -> None:
        """Forget a client."""
        self._sessions.pop(client, None)
