"""Events and what goes with them in the form in which the store keeps them.

    header of an event    [broker, begun_us, number, publisher]      its stamp and publisher
    description of shape  [space, [name, ...]]
    detail for a client   [unnamed, [[name, version], ...]]          what it matches

All are MessagePack arrays. Names and not handles, which a restart gives anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
from msgspec.msgpack import Decoder, Encoder

from tidegate.network.store.reading import QueuedEvent
from tidegate.network.store.rows import EventRow
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.event_shapes import EventShape
from tidegate.network.wire.publications import IS_CONFIRMED, PublicationBlock


class EventHeader(msgspec.Struct, array_like=True, frozen=True):
    """The stamp and the publisher of an event."""

    broker: str
    begun_us: int
    number: int
    publisher: str


class ClientDetail(msgspec.Struct, array_like=True, frozen=True):
    """The subscriptions of a client that an event matches."""

    unnamed: bool
    matches: list[tuple[str, int]]


_encode = Encoder().encode
_header = Decoder(EventHeader)
_detail = Decoder(ClientDetail)
_shape = Decoder(tuple[str | None, tuple[str, ...]])

HandleOf = Callable[[str], int | None]
"""The handle of a named subscription; None if there is none of this name any more."""


def store_events(
    store: Store,
    transaction: Transaction,
    block: PublicationBlock,
    indices: Sequence[int],
    positions: Sequence[int],
) -> None:
    """Store some events of a block under their positions."""
    events = block.events
    shapes = [store.shape(_encode((each.space, each.names))) for each in events.shapes]
    bodies = events.body_views(indices)
    for index, position, body in zip(indices, positions, bodies, strict=True):
        broker, begun_us = block.origins[block.origin_of.item(index)]
        publisher = block.publishers[block.publisher_of.item(index)]
        number = block.numbers.item(index)
        header = _encode(EventHeader(broker, begun_us, number, publisher))
        shape = shapes[events.shape_of.item(index)]
        transaction.add_event(position, shape, events.times_us.item(index), header, bytes(body))


def client_detail(unnamed: bool, matches: list[tuple[str, int]]) -> bytes:
    """What goes with an event in the queue of a client."""
    return _encode(ClientDetail(unnamed, matches))


def publications_of(store: Store, rows: Sequence[EventRow]) -> PublicationBlock:
    """The events of some rows, all of which were confirmed."""
    origins: dict[tuple[str, int], int] = {}
    publishers: dict[str, int] = {}
    shapes: dict[EventShape, int] = {}
    shape_of, origin_of, publisher_of, numbers = [], [], [], []
    for row in rows:
        description = store.description(row.shape)
        assert description is not None  # the caller leaves out events of damaged shapes
        space, names = _shape.decode(description)
        shape_of.append(shapes.setdefault(EventShape.of(names, space), len(shapes)))
        header = _header.decode(row.header)
        origin_of.append(origins.setdefault((header.broker, header.begun_us), len(origins)))
        publisher_of.append(publishers.setdefault(header.publisher, len(publishers)))
        numbers.append(header.number)
    events = EventBlock(
        tuple(shapes),
        np.array(shape_of, np.int64),
        np.array([row.time_us for row in rows], np.int64),
        np.array([len(row.body) for row in rows], np.int64),
        b"".join(row.body for row in rows),
    )
    return PublicationBlock(
        events,
        list(origins),
        np.array(origin_of, np.int64),
        np.array(numbers, np.int64),
        list(publishers),
        np.array(publisher_of, np.int64),
        np.full(len(rows), IS_CONFIRMED, np.int64),
    )


def deliveries_of(store: Store, queued: Sequence[QueuedEvent], handle_of: HandleOf) -> Deliver:
    """The deliveries of a durable client that the store has kept.

    A subscription that has ended meanwhile is not named; an event that matched no other is
    delivered without matches, so that its position is acknowledged.
    """
    counts, handles, versions = [], [], []
    for each in queued:
        detail = _detail.decode(each.detail)
        found = [(handle_of(name), version) for name, version in detail.matches]
        matches = [(handle, version) for handle, version in found if handle is not None]
        if detail.unnamed:
            matches.append((0, 0))
        counts.append(len(matches))
        handles += [handle for handle, _ in matches]
        versions += [version for _, version in matches]
    return Deliver(
        publications_of(store, [each.event for each in queued]),
        np.array([each.event.position for each in queued], np.int64),
        np.array(counts, np.int64),
        np.array(handles, np.int64),
        np.array(versions, np.int64),
    )
