"""Brokers that store their durable state, and links that outlive connections, in a world.

Rules.

(1) A broker stores what has changed before anything is sent that follows from it, together with how
    far it has taken what its neighbours sent. So a stop falls between two steps of a broker.
(2) A broken connection loses what is on its way, and nobody is told: the link is a session, which
    keeps messages and sends them again (see `link_session`). When the connection is back, it goes
    on as after a delay.
(3) A broker that was stopped comes back from what it has stored, and from nothing else.

Where the two ends of a link do not fit any more, the link is cut and set up anew, as in a world
without durable state: the neighbour has given up the link meanwhile, or has lost its state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.errors import SessionLostError
from tidegate.routing.durability.durable_state import DurableKey, DurableRecord, Journal
from tidegate.routing.durability.link_session import LinkSession, StreamPosition
from tidegate.routing.durability.restoring import held_digest, restore_state, sync_for
from tidegate.routing.messages import Address, Client, Message, Peer

if TYPE_CHECKING:
    from tidegate.simulation.world import World


@dataclass(slots=True)
class StoredBroker:
    """What a broker has on its disk."""

    records: dict[DurableKey, DurableRecord] = field(default_factory=dict)
    taken: dict[Peer, StreamPosition] = field(default_factory=dict)
    """How far it has taken the streams of its neighbours."""


class DurableSites:
    """The disks of the brokers of a world, and the sessions of its links."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._last_epoch = 0
        self.stored = {name: StoredBroker() for name in world.sites}
        self.sessions: dict[tuple[Peer, Peer], LinkSession[Message]] = {}
        """By broker and neighbour."""
        self._journals = {name: Journal(site.broker) for name, site in world.sites.items()}
        for one, other in world.directions:
            self._begin(one, other)
        for one, other in world.directions:
            self.sessions[one, other].opened(self.sessions[other, one].opening())
        for name in world.sites:
            self.commit(name)

    # -- steps of brokers ---------------------------------------------------------------------

    def send(self, sender: Peer, receiver: Peer, message: Message) -> tuple[int, Message] | None:
        """Keep a message; returns it with its number if there is a connection."""
        session = self.sessions.get((sender, receiver))
        return None if session is None else session.send(message)

    def takes(self, receiver: Peer, sender: Address, number: int) -> bool:
        """Whether a message is new to a broker, which handles it now."""
        assert not isinstance(sender, Client)
        session = self.sessions.get((receiver, sender))
        return session is not None and session.take(number)

    def commit(self, name: Peer) -> None:
        """Store what has changed at a broker, and acknowledge what it has taken."""
        stored = self.stored[name]
        for key, record in self._journals[name].changes().items():
            if record is None:
                stored.records.pop(key, None)
            else:
                stored.records[key] = record
        for (one, other), session in self.sessions.items():
            if one == name:
                stored.taken[other] = session.taken
                self._acknowledge(one, other, session.commit())

    def _acknowledge(self, one: Peer, other: Peer, number: int) -> None:
        """Tell the sender of a stream, after the delay of the link, what was committed."""
        direction = self._world.directions[one, other]
        session = self.sessions.get((other, one))
        if session is None or not direction.is_up or session.is_acknowledged(number):
            return
        epoch = direction.epoch

        def arrive() -> None:
            if direction.epoch == epoch and self.sessions.get((other, one)) is session:
                session.acknowledged(number)

        self._world.at(self._world.now_us + direction.delay_us, arrive)

    # -- faults -------------------------------------------------------------------------------

    def break_connection(self, a: Peer, b: Peer) -> None:
        """Lose the connection of a link, with what is on its way."""
        for one, other in ((a, b), (b, a)):
            self._world.take_down(one, other)
            if (one, other) in self.sessions:
                self.sessions[one, other].closed()

    def reconnect(self, a: Peer, b: Peer) -> None:
        """Have a link go on with a new connection, if both brokers are up."""
        world = self._world
        if not (world.sites[a].is_up and world.sites[b].is_up) or world.directions[a, b].is_up:
            return
        try:
            again = self._opened(a, b)
        except SessionLostError:
            world.cut(a, b)
            world.mend(a, b)
            return
        for one, other in ((a, b), (b, a)):
            world.directions[one, other].is_up = True
        for (one, other), messages in again.items():
            for number, message in messages:
                world.transmit(one, other, message, number)

    def _opened(self, a: Peer, b: Peer) -> dict[tuple[Peer, Peer], list[tuple[int, Message]]]:
        """Open both ends of a link; returns what each sends again."""
        ends = ((a, b), (b, a))
        for one, other in ends:
            is_known = self._world.sites[one].broker.knows(other)
            if (one, other) not in self.sessions or not is_known:
                raise SessionLostError(f"{one!r} does not know {other!r}")
        for one, other in ends:
            session, brokers = self.sessions[one, other], self._world.sites
            if session.needs_sync:
                digest = held_digest(brokers[other].broker, one)
                session.begin_with(sync_for(brokers[one].broker, other, digest))
        opening = {end: self.sessions[end].opening() for end in ends}
        return {
            (one, other): self.sessions[one, other].opened(opening[other, one])
            for one, other in ends
        }

    def stop(self, name: Peer) -> None:
        """Stop a broker; it loses all that it has not stored."""
        site = self._world.sites[name]
        if not site.is_up:
            return
        site.is_up = False
        site.epoch += 1
        site.waiting = 0
        for peer in self._world.topology.neighbours(name):
            self.break_connection(name, peer)

    def come_back(self, name: Peer) -> None:
        """Start a stopped broker from what it has stored."""
        world, stored = self._world, self.stored[name]
        site = world.sites[name]
        if site.is_up:
            return
        broker = world.start(name)
        sent = restore_state(broker, stored.records, world.now_us)
        self._last_epoch += 1
        for peer in world.topology.neighbours(name):
            self.sessions.pop((name, peer), None)
            if broker.knows(peer):
                self.sessions[name, peer] = LinkSession(
                    self._last_epoch, committed=stored.taken[peer], restored=True
                )
        self._journals[name] = Journal(broker)
        self.commit(name)
        world.send(name, sent)
        for peer in world.topology.neighbours(name):
            self.reconnect(name, peer)

    # -- links that are given up -----------------------------------------------------------------

    def gave_up(self, one: Peer, other: Peer) -> None:
        """Forget the session of a link that is cut."""
        self.sessions.pop((one, other), None)

    def has_session(self, a: Peer, b: Peer) -> bool:
        """Whether both ends of a link have a session, with a connection or not."""
        return (a, b) in self.sessions and (b, a) in self.sessions

    def forget(self, name: Peer) -> None:
        """Begin with nothing for a broker that was started without its state."""
        self.stored[name] = StoredBroker()
        self._journals[name] = Journal(self._world.sites[name].broker)

    def set_up(self, a: Peer, b: Peer) -> None:
        """Begin new sessions for a link that was cut, with a connection."""
        for one, other in ((a, b), (b, a)):
            self._begin(one, other)
        for one, other in ((a, b), (b, a)):
            self.sessions[one, other].opened(self.sessions[other, one].opening())

    def _begin(self, one: Peer, other: Peer) -> None:
        self._last_epoch += 1
        self.sessions[one, other] = LinkSession(self._last_epoch)
