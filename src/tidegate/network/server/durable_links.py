"""What the store keeps of links: what neighbours have sent, and how far their streams were taken.

    kind           owner     key               value
    link           peer      empty             [domain, cost_us, is_master]
    link-address   address   empty             the name of the neighbour at it
    announcement   domain    broker            `Announce` with one announcement
    filter         peer      [number, tree]    `FilterDelta` that adds one filter
    offered        peer      [number, tree]    `AdvertisementDelta` that adds one advertisement

Positions of the kind `stream` are those of neighbours' streams, those of the kind `seen` the last
event of each broker. They change with every event, so they are written only together with something
else, or now and then; what was not written yet is not acknowledged, and comes again after a crash.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from tidegate.errors import TidegateError
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire import peer_messages as w
from tidegate.network.wire.filter_shapes import ReceivedFilterShapes, SentFilterShapes
from tidegate.network.wire.peer_conversion import PeerReader, PeerWriter
from tidegate.routing import messages as m
from tidegate.routing.durability.durable_state import (
    AdvertisementKey,
    AnnouncementKey,
    DurableKey,
    DurableRecord,
    FilterKey,
    Journal,
    NeighbourKey,
    NeighbourRecord,
    SeenKey,
)
from tidegate.routing.durability.link_session import NOTHING, StreamPosition
from tidegate.routing.durability.restoring import restore_state

if TYPE_CHECKING:
    from tidegate.network.server.broker_server import BrokerServer

_log = logging.getLogger(__name__)

STREAM, SEEN = "stream", "seen"
LINK, ADDRESS, ANNOUNCEMENT, FILTER, OFFERED = (
    "link", "link-address", "announcement", "filter", "offered",
)  # fmt: skip

_encode = msgspec.msgpack.Encoder().encode
_key = msgspec.msgpack.Decoder(tuple[int, str | None])
_link = msgspec.msgpack.Decoder(tuple[str, int, bool])
_message = msgspec.msgpack.Decoder(tuple[list[bytes], w.WireMessage])


class DurableLinks:
    """Saves and restores the links of a broker."""

    def __init__(self, server: BrokerServer) -> None:
        self._server = server
        self._seen: dict[str, m.Stamp] = {}
        """Positions that are not written yet."""
        self._peers: dict[str, str] = {}
        """By address: the neighbour that was there last."""

    # -- saving -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Note all changes of the broker from now on."""
        self._journal = Journal(self._server.broker)

    def save(self, transaction: Transaction, *, positions_too: bool) -> bool:
        """Save what has changed; returns whether that includes positions.

        They are saved with anything else, and on request."""
        for key, record in self._journal.changes().items():
            self._save(key, record, transaction)
        if not (transaction or positions_too):
            return False
        for broker, stamp in self._seen.items():
            transaction.set_position(SEEN, broker, stamp.begun_us, stamp.number)
        self._seen.clear()
        for peer, link in self._server.links.by_peer.items():
            if link.unacknowledged:
                transaction.set_position(STREAM, peer, *link.session.taken)
        return True

    def _save(self, key: DurableKey, record: DurableRecord | None, to: Transaction) -> None:
        match key, record:
            case SeenKey(broker), m.Stamp():
                self._seen[broker] = record
            case NeighbourKey(peer), None:
                to.remove_state(LINK, peer, b"")
            case NeighbourKey(peer), NeighbourRecord(domain, cost_us, is_master):
                to.put_state(LINK, peer, b"", _encode((domain, cost_us, is_master)))
            case AnnouncementKey(domain, broker), None:
                to.remove_state(ANNOUNCEMENT, domain, broker.encode())
            case AnnouncementKey(domain, broker), _:
                value = _encoded(m.Announce((record,)))  # type: ignore[arg-type]
                to.put_state(ANNOUNCEMENT, domain, broker.encode(), value)
            case FilterKey(peer, at), None:
                to.remove_state(FILTER, peer, _encode(at))
            case FilterKey(peer, at), _:
                value = _encoded(m.FilterDelta(((at, record),)))  # type: ignore[arg-type]
                to.put_state(FILTER, peer, _encode(at), value)
            case AdvertisementKey(peer, at), None:
                to.remove_state(OFFERED, peer, _encode(at))
            case AdvertisementKey(peer, at), _:
                value = _encoded(m.AdvertisementDelta(((at, record),)))  # type: ignore[arg-type]
                to.put_state(OFFERED, peer, _encode(at), value)

    def save_address(self, address: str, peer: str, transaction: Transaction) -> None:
        """Save which neighbour is at an address."""
        if self._peers.get(address) != peer:
            self._peers[address] = peer
            transaction.put_state(ADDRESS, address, b"", peer.encode())

    def forget_address(self, peer: str, transaction: Transaction) -> None:
        """Forget at which addresses a neighbour was."""
        for address in [each for each, name in self._peers.items() if name == peer]:
            del self._peers[address]
            transaction.remove_state(ADDRESS, address, b"")

    def peer_at(self, address: str) -> str | None:
        """The neighbour that was last at an address."""
        return self._peers.get(address)

    # -- after a start ------------------------------------------------------------------------

    def restore(
        self,
        state: Iterable[tuple[str, str, bytes, bytes]],
        seen: dict[str, tuple[int, int]],
    ) -> m.Outgoing:
        """Give the broker what it knew of its neighbours; returns messages for these."""
        records: dict[DurableKey, DurableRecord] = {
            SeenKey(broker): m.Stamp(broker, *last) for broker, last in seen.items()
        }
        for kind, owner, key, value in state:
            try:
                records.update(self._restored(kind, owner, key, value))
            except (msgspec.DecodeError, TidegateError, UnicodeDecodeError) as error:
                _log.error("a %s of %r cannot be restored: %s", kind, owner, error)
        neighbours = {key.peer for key in records if isinstance(key, NeighbourKey)}
        records = {
            key: record
            for key, record in records.items()
            if not isinstance(key, FilterKey | AdvertisementKey) or key.peer in neighbours
        }
        return restore_state(self._server.broker, records, self._server.now_us())

    def _restored(
        self, kind: str, owner: str, key: bytes, value: bytes
    ) -> dict[DurableKey, DurableRecord]:
        if kind == LINK:
            return {NeighbourKey(owner): NeighbourRecord(*_link.decode(value))}
        if kind == ADDRESS:
            self._peers[owner] = value.decode()
        if kind not in (ANNOUNCEMENT, FILTER, OFFERED):
            return {}
        match _decoded(value):
            case m.Announce((announcement,)):
                return {AnnouncementKey(owner, announcement.broker): announcement}
            case m.FilterDelta(((_, wanted),)):
                return {FilterKey(owner, m.Key(*_key.decode(key))): wanted}
            case m.AdvertisementDelta(((_, offered),)):
                return {AdvertisementKey(owner, m.Key(*_key.decode(key))): offered}
        return {}


def stream_position(stored: tuple[int, int] | None) -> StreamPosition:
    """How far the stream of a neighbour was taken, from the positions of the store."""
    return NOTHING if stored is None else StreamPosition(*stored)


def _encoded(message: m.PeerMessage) -> bytes:
    """A message by itself, with the filter shapes that it needs."""
    writer = PeerWriter(SentFilterShapes())
    wire = writer.write(message)
    return _encode((writer.definitions, wire))


def _decoded(value: bytes) -> Any:
    definitions, wire = _message.decode(value)
    shapes = ReceivedFilterShapes()
    for each in definitions:
        shapes.define(memoryview(each))
    return PeerReader(shapes).read(wire, iter(()))
