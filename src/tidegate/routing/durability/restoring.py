"""How a broker comes back from its durable state, and how it and its neighbours go on.

    restarted broker                      neighbour, which has kept what the broker had sent
    restore_state(broker, records)
    sync_for(neighbour)  -- Sync -->      holds just that from now on; sends again what the broker
                                          must know and has forgotten: probes, delegated patterns

Rules.

(1) `Sync` is the first message of the broker's new stream to a neighbour (see `link_session`).
    Until it is made, changes for this neighbour are not sent: `Sync` has all of them.
(2) The neighbour goes over from the old filters to the new ones in one step, so it misses nothing
    that both contain. Until then it keeps events for the broker, as after any broken connection.
(3) What the neighbour had sent before is in the broker's durable state, or is sent again by the
    session. So the neighbour does not send its own filters again.
(4) Where both ends hold the same, `Sync` has its digest only. Keys are numbered anew by both, in an
    order that both know, because the broker has forgotten which it had used.
(5) A neighbour that refuses `Sync` is left, and can connect anew.

What is lost. Waves of the restarted broker end: a client asks again for its confirmation. Other
brokers' waves are probed again. A move that passed the broker is given up as if the link were down.
Patterns are delegated anew; a sequence of which a part had come is not found. Summaries are
exchanged as on a new link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidegate.errors import RoutingError
from tidegate.language.algebra.advertisements import Advertisement
from tidegate.language.filters import Filter
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter
from tidegate.routing.durability.digests import digest_of, in_fixed_order, text_of
from tidegate.routing.durability.durable_state import (
    AdvertisementKey,
    AnnouncementKey,
    ClientKey,
    ClientRecord,
    DurableState,
    FilterKey,
    NamedKey,
    NeighbourKey,
    NeighbourRecord,
    SeenKey,
)
from tidegate.routing.messages import Client, Key, NamedSubscription, Outgoing, Peer, Stamp, Sync
from tidegate.routing.overlay.graph import Announcement
from tidegate.routing.validation import check_wanted_filter, checked_advertisement

if TYPE_CHECKING:
    from tidegate.routing.broker import Broker


def restore_state(broker: Broker, state: DurableState, now_us: int) -> Outgoing:
    """Give a new broker the durable state of one that had its name, domains and settings.

    Returns messages for its neighbours, each of which follows the `Sync` for its receiver.
    """
    broker.now_us = now_us
    _restore_links(broker, state)
    for key, record in state.items():
        match key, record:
            case FilterKey(peer, at), Filter() | EvolvingFilter():
                broker.subscriptions.put(peer, at, record)
            case AdvertisementKey(peer, at), Advertisement():
                broker.advertisements.put(peer, at, record)
            case ClientKey(client), ClientRecord():
                _restore_client(broker, client, record)
            case SeenKey(), Stamp():
                broker.events.restore_last_seen(record)
    sent: Outgoing = []
    for key, record in state.items():
        if isinstance(key, NamedKey) and isinstance(record, NamedSubscription):
            broker.named.restore(key.client, record)
        elif isinstance(key, ClientKey) and isinstance(record, ClientRecord):
            for pattern in record.patterns:
                sent += broker.patterns.subscribe(key.client, pattern, now_us)
    broker.tables.without_sync.update(dict.fromkeys(broker.domains.domain_of))
    return sent + broker.tables.settle()


def _restore_links(broker: Broker, state: DurableState) -> None:
    for key, record in state.items():
        if isinstance(key, AnnouncementKey) and isinstance(record, Announcement):
            broker.domains.by_name[key.domain].learn([record])
        elif isinstance(key, NeighbourKey) and isinstance(record, NeighbourRecord):
            domain = broker.domains.by_name[record.domain]
            domain.link(key.peer, record.cost_us, is_master=record.is_master)
            broker.domains.domain_of[key.peer] = domain


def _restore_client(broker: Broker, client: Client, record: ClientRecord) -> None:
    broker.sessions.begin(client)
    session = broker.sessions[client]
    session.moves, session.is_suspended = record.moves, record.is_suspended
    session.seen_elsewhere = {stamp.broker: stamp for stamp in record.seen_elsewhere}
    for wanted in record.filters:
        broker.subscriptions.ask(client, wanted)
    for offered in record.advertisements:
        broker.advertisements.ask(client, offered)


# -- the restarted broker -------------------------------------------------------------------------


def held_digest(broker: Broker, peer: Peer) -> bytes:
    """The digest of what a broker holds from a neighbour, which that one needs for `sync_for`."""
    filters = broker.subscriptions.held_from(peer)
    return digest_of(filters, broker.advertisements.held_from(peer))


def sync_for(broker: Broker, peer: Peer, held: bytes | None = None) -> Sync:
    """The first message of a restored broker to a neighbour.

    ``held`` is the `held_digest` at the neighbour, if it is known: filters and advertisements that
    it holds already are left out.
    """
    assert not broker.tables.settle(), "the tables settle after each message"
    broker.subscriptions.number_anew(peer, in_fixed_order)
    broker.advertisements.number_anew(peer, in_fixed_order)
    broker.tables.without_sync.pop(peer, None)
    filters, offered = broker.subscriptions.sent(peer), broker.advertisements.sent(peer)
    digest = digest_of(filters, offered)
    if digest == held:
        return Sync(digest)
    return Sync(digest, tuple(filters.items()), tuple(offered.items()))


# -- the neighbour --------------------------------------------------------------------------------


def on_sync(broker: Broker, sync: Sync, peer: Peer) -> Outgoing:
    """Hold what a restarted neighbour says, and send again what it has forgotten."""
    filters, offered = _what_holds(broker, sync, peer)
    broker.subscriptions.hold(peer, filters, text_of)
    changed = broker.advertisements.hold(peer, offered, text_of)
    sent = broker.patterns.on_restart(peer)
    sent += broker.tables.advertisements_changed(changed)
    sent += broker.moves.on_link_lost(peer)
    sent += broker.waves.on_restart(peer)
    if broker.summaries is not None:
        sent += broker.summaries.on_restart(peer)
    return sent


def _what_holds(
    broker: Broker, sync: Sync, peer: Peer
) -> tuple[Mapping[Key, WantedFilter], Mapping[Key, Advertisement]]:
    """The filters and advertisements of a neighbour from now on, checked."""
    if sync.filters is None or sync.advertisements is None:
        if sync.digest != held_digest(broker, peer):
            raise RoutingError(
                f"{peer!r} takes what {broker.name!r} holds from it for what it sends, but their "
                "digests differ; send all of it"
            )
        held, advertised = broker.subscriptions.held_from(peer), broker.advertisements
        return in_fixed_order(held), in_fixed_order(advertised.held_from(peer))
    filters, offered = dict(sync.filters), dict(sync.advertisements)
    limits = broker.limits
    for table in (filters, offered):
        if len(table) > limits.delta_items_max:
            raise RoutingError(
                f"{peer!r} sends {len(table)} filters or advertisements in one message; "
                f"at most {limits.delta_items_max} are taken"
            )
        for key in table:
            broker.domains.check_tree(key.tree, peer)
            if key.number <= 0:
                raise RoutingError(f"{peer!r} sends {key}; keys are numbered from 1")
    for wanted in filters.values():
        check_wanted_filter(wanted, limits.filters)
    for each in offered.values():
        checked_advertisement(each, limits.filters)
    return filters, offered
