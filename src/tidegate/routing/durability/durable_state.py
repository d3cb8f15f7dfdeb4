"""The durable state of a broker: what must survive its restart, as records by key.

Rules.

(1) Durable are what clients have asked for, what neighbours have sent (by key), the links, their
    announcements, and the last event seen of each broker. What a broker sends follows from these.
(2) Not durable are waves, moves under way, what was delegated, deliveries that a session keeps, and
    summaries: after a restart they begin anew (see `restoring`).
(3) A runtime stores the changed records together with what else a turn has brought about, before
    anything is sent. So whatever a neighbour has received from a broker follows from what that one
    has stored.

A client that is still on its way here from another broker is not durable: its old broker has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.filters import Filter
from tidegate.language.patterns.pattern import Pattern
from tidegate.matching.poset.wanted_filter import WantedFilter
from tidegate.routing.askers import Asker, NamedAsker, NeighbourAsker
from tidegate.routing.messages import Client, Key, NamedSubscription, Peer, Stamp
from tidegate.routing.overlay.graph import Announcement

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


@dataclass(frozen=True, slots=True)
class ClientKey:
    """Of a `ClientRecord`."""

    client: Client


@dataclass(frozen=True, slots=True)
class NamedKey:
    """Of a `NamedSubscription`."""

    client: Client
    name: str


@dataclass(frozen=True, slots=True)
class FilterKey:
    """Of a filter that a neighbour has sent."""

    peer: Peer
    key: Key


@dataclass(frozen=True, slots=True)
class AdvertisementKey:
    """Of an advertisement that a neighbour has sent."""

    peer: Peer
    key: Key


@dataclass(frozen=True, slots=True)
class NeighbourKey:
    """Of a `NeighbourRecord`."""

    peer: Peer


@dataclass(frozen=True, slots=True)
class AnnouncementKey:
    """Of the latest `Announcement` of a broker in a domain."""

    domain: str
    broker: Peer


@dataclass(frozen=True, slots=True)
class SeenKey:
    """Of the `Stamp` of the last event of a broker that was routed here."""

    broker: Peer


@dataclass(frozen=True, slots=True)
class ClientRecord:
    """The session of a client, and what it has asked for without a name, as the tables hold it."""

    filters: tuple[Filter, ...]
    patterns: tuple[Pattern, ...]
    advertisements: tuple[Advertisement, ...]
    moves: int
    is_suspended: bool
    seen_elsewhere: tuple[Stamp, ...]


@dataclass(frozen=True, slots=True)
class NeighbourRecord:
    """A neighbour, and the link to it."""

    domain: str
    cost_us: int
    is_master: bool


DurableKey = (
    ClientKey | NamedKey | FilterKey | AdvertisementKey | NeighbourKey | AnnouncementKey | SeenKey
)
DurableRecord = (
    ClientRecord
    | NamedSubscription
    | WantedFilter
    | Advertisement
    | NeighbourRecord
    | Announcement
    | Stamp
)
DurableState = Mapping[DurableKey, DurableRecord]
Changes = Mapping[DurableKey, DurableRecord | None]
"""Records by key; None for one that is no more."""


class Journal:
    """Notes what has changed of the durable state of a broker since it was last asked.

    >>> from tidegate.routing.broker import Broker
    >>> from tidegate.routing.messages import Subscribe
    >>> from tidegate.routing.strategies import strategy
    >>> broker = Broker("b", strategy("subscription"))
    >>> journal = Journal(broker)
    >>> broker.handle(Subscribe("price < 10", "cheap", version=1), Client("ann"), now_us=0)
    []
    >>> for key, record in journal.changes().items():
    ...     print(type(key).__name__, getattr(record, "version", ""))
    ClientKey
    NamedKey 1
    """

    def __init__(self, broker: Broker) -> None:
        """Of a broker that was just made, or restored; what it has now counts as changed."""
        self._broker = broker
        self._changed: dict[DurableKey, None] = {}
        self._links: dict[DurableKey, DurableRecord] = {}
        """The records of links and announcements, as they were returned last."""
        self._revisions: dict[str, tuple[int, int]] = {}
        """Of each domain, its revision and number of neighbours when it was last looked at."""
        broker.sessions.on_change(self._client_changed)
        broker.subscriptions.on_change(self._filter_changed)
        broker.advertisements.on_change(self._advertisement_changed)
        broker.events.on_new(self._seen)
        self._changed.update(dict.fromkeys(_keys(broker)))

    def changes(self) -> Changes:
        """The records that have changed since the last call, as they are now."""
        changed: dict[DurableKey, DurableRecord | None] = {
            key: _record(self._broker, key) for key in self._changed
        }
        self._changed.clear()
        domains = self._broker.domains.by_name.items()
        revisions = {name: (each.revision, len(each.neighbours)) for name, each in domains}
        if revisions != self._revisions:
            links = dict(_link_records(self._broker))
            changed.update(
                {key: each for key, each in links.items() if self._links.get(key) != each}
            )
            changed.update(dict.fromkeys(key for key in self._links if key not in links))
            self._links, self._revisions = links, revisions
        return changed

    def _client_changed(self, client: Client) -> None:
        self._changed[ClientKey(client)] = None
        # While the client is on its way here, its subscriptions are not durable yet.
        for named in self._broker.named.subscriptions_of(client):
            self._changed[NamedKey(client, named.subscription.id)] = None

    def _filter_changed(self, asker: Asker) -> None:
        if isinstance(asker, NamedAsker):
            self._changed[NamedKey(asker.client, asker.name)] = None
        elif isinstance(asker, NeighbourAsker):
            self._changed[FilterKey(asker.peer, asker.key)] = None
        elif isinstance(asker, Client):
            self._changed[ClientKey(asker)] = None

    def _advertisement_changed(self, asker: Asker) -> None:
        if isinstance(asker, NeighbourAsker):
            self._changed[AdvertisementKey(asker.peer, asker.key)] = None
        elif isinstance(asker, Client):
            self._changed[ClientKey(asker)] = None

    def _seen(self, broker: Peer) -> None:
        self._changed[SeenKey(broker)] = None


def export_state(broker: Broker) -> dict[DurableKey, DurableRecord]:
    """The whole durable state of a broker."""
    state = dict(_link_records(broker))
    for key in _keys(broker):
        record = _record(broker, key)
        if record is not None:
            state[key] = record
    return state


def _keys(broker: Broker) -> Iterator[DurableKey]:
    """The keys of all records but those of links."""
    for client in broker.sessions:
        yield ClientKey(client)
        for named in broker.named.subscriptions_of(client):
            yield NamedKey(client, named.subscription.id)
    for peer in broker.domains.domain_of:
        for key in broker.subscriptions.held_from(peer):
            yield FilterKey(peer, key)
        for key in broker.advertisements.held_from(peer):
            yield AdvertisementKey(peer, key)
    for stamp in broker.events.last_seen()[1:]:
        yield SeenKey(stamp.broker)


def _link_records(broker: Broker) -> Iterator[tuple[DurableKey, DurableRecord]]:
    for name, domain in broker.domains.by_name.items():
        for announcement in domain.announcements():
            yield AnnouncementKey(name, announcement.broker), announcement
        for peer, cost_us in domain.neighbours.items():
            yield NeighbourKey(peer), NeighbourRecord(name, cost_us, domain.master == peer)


def _record(broker: Broker, key: DurableKey) -> DurableRecord | None:
    """The present record of a key that is not of a link; None if there is none."""
    match key:
        case ClientKey(client):
            return _client_record(broker, client)
        case NamedKey(client, name):
            if client not in broker.sessions or broker.sessions[client].is_arriving:
                return None
            return broker.named.find(client, name)
        case FilterKey(peer, at):
            return broker.subscriptions.held(peer, at)
        case AdvertisementKey(peer, at):
            return broker.advertisements.held(peer, at)
        case SeenKey(other):
            return broker.events.last_seen_of(other)
    raise TypeError(f"{key!r} is not asked for by its key")


def _client_record(broker: Broker, client: Client) -> ClientRecord | None:
    if client not in broker.sessions or broker.sessions[client].is_arriving:
        return None
    session = broker.sessions[client]
    wanted = broker.subscriptions.items_of(client)
    return ClientRecord(
        tuple(each for each in wanted if isinstance(each, Filter)),
        tuple(broker.patterns.patterns_of(client)),
        tuple(broker.advertisements.items_of(client)),
        session.moves,
        session.is_suspended,
        tuple(session.seen_elsewhere.values()),
    )
