"""Events for neighbours: columns of the broker's answer, and rows of the store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.msgpack import Decoder, Encoder

from tidegate.matching.arrays import I64
from tidegate.network.server.deliveries.stored_events import publications_of
from tidegate.network.store.reading import QueuedEvent
from tidegate.network.store.store import Store
from tidegate.network.wire.links import Notifications, Route
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.batching.incoming import NotifiedFrame
from tidegate.routing.batching.routed import PassedOn
from tidegate.routing.messages import Examination
from tidegate.routing.spaces import DEFAULT


class StoredRoute(msgspec.Struct, array_like=True, frozen=True):
    """What goes with an event in the queue of a neighbour."""

    tree: str | None
    targets: list[str] | None
    examination: tuple[str, bytes, int] | None


_encode = Encoder().encode
_decoder = Decoder(StoredRoute)


def notifications(block: PublicationBlock, passed: PassedOn) -> Notifications:
    """The events of a block that go on to one neighbour."""
    columns = (passed.trees, passed.targets, passed.examinations)
    codes = np.stack([each.codes.astype(np.int64) for each in columns])
    distinct, route_of = np.unique(codes, axis=1, return_inverse=True)
    routes = [
        Route(passed.trees.values[tree], passed.targets.values[targets],
              passed.examinations.values[examination])
        for tree, targets, examination in distinct.T.tolist()
    ]  # fmt: skip
    events = passed.events.astype(np.int64)
    return Notifications(block.select(events), routes, route_of.reshape(-1).astype(np.int64))


def notified_frame(peer: str, message: Notifications, *, has_spaces: bool) -> NotifiedFrame:
    """The events of a neighbour as the broker takes them, in a network with spaces or without."""
    publications, routes = message.publications, message.routes
    origins = publications.origins
    brokers = Coded([broker for broker, _ in origins], publications.origin_of.astype(np.int32))
    begun_us = np.array([begun for _, begun in origins], np.int64)[publications.origin_of]
    events = publications.events
    route_of = message.route_of.astype(np.int32)
    # An event travels as its client sent it; one without a space belongs to the default space.
    default = DEFAULT if has_spaces else None
    spaces = [each.space or default for each in events.shapes]
    has_targets = any(each.targets is not None for each in routes)
    has_examinations = any(each.examination is not None for each in routes)
    return NotifiedFrame(
        peer,
        StampColumns(brokers, begun_us, publications.numbers),
        Coded(publications.publishers, publications.publisher_of.astype(np.int32)),
        Coded([each.tree for each in routes], route_of),
        Coded(spaces, events.shape_of.astype(np.int32)),
        Coded([each.targets for each in routes], route_of) if has_targets else None,
        Coded([each.examination for each in routes], route_of) if has_examinations else None,
    )


def selected(message: Notifications, indices: I64) -> Notifications:
    """Some of the events for a neighbour."""
    return Notifications(
        message.publications.select(indices), message.routes, message.route_of[indices]
    )


def route_detail(route: Route) -> bytes:
    """A route as it is stored."""
    examination = route.examination
    return _encode(
        StoredRoute(
            route.tree,
            None if route.targets is None else sorted(route.targets),
            None
            if examination is None
            else (
                examination.examiner,
                examination.examined.to_bytes((examination.examined.bit_length() + 7) // 8, "big"),
                examination.brokers,
            ),
        )
    )


def _route_of(detail: bytes) -> Route:
    stored = _decoder.decode(detail)
    targets = None if stored.targets is None else frozenset(stored.targets)
    examination = None
    if stored.examination is not None:
        examiner, examined, brokers = stored.examination
        examination = Examination(examiner, int.from_bytes(examined, "big"), brokers)
    return Route(stored.tree, targets, examination)


def stored_notifications(store: Store, queued: Sequence[QueuedEvent]) -> Notifications:
    """The events in the queue of a neighbour that the store has kept."""
    sound = [each for each in queued if store.description(each.event.shape) is not None]
    routes: dict[bytes, int] = {}
    route_of = [routes.setdefault(each.detail, len(routes)) for each in sound]
    numbers: I64 = np.array(route_of, np.int64)
    publications = publications_of(store, [each.event for each in sound])
    return Notifications(publications, [_route_of(each) for each in routes], numbers)
