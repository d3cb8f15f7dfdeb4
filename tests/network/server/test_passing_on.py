"""Events for neighbours survive the store, with their routes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.network.server.deliveries.stored_events import store_events
from tidegate.network.server.passing_on import (
    notified_frame,
    route_detail,
    selected,
    stored_notifications,
)
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.links import Notifications, Route
from tidegate.network.wire.publications import PublicationBlock
from tidegate.routing.messages import Examination, Publication, Stamp

TIME = from_us(1_700_000_000_000_000)
PUBLICATIONS = [
    Publication(Event({"x": n}, TIME), Stamp("ab"[n % 2], 5, n + 1), "p") for n in range(6)
]
ROUTES = [
    Route(None, None, None),
    Route("a", frozenset({"c", "d"}), None),
    Route(None, frozenset({"c"}), Examination("b", 2**70 + 1, 99)),
]
ROUTE_OF = np.array([0, 1, 2, 0, 1, 2], np.int64)


def test_stored_events_are_passed_on_as_they_would_have_been(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    message = Notifications(PublicationBlock.of(PUBLICATIONS, 1), ROUTES, ROUTE_OF)
    transaction, queue = Transaction(), store.queue("link", "b")
    positions = [store.next_position() for _ in PUBLICATIONS]
    store_events(store, transaction, message.publications, range(6), positions)
    for position, route in zip(positions, ROUTE_OF.tolist(), strict=True):
        transaction.enqueue(queue, position, route_detail(ROUTES[route]))
    store.commit(transaction).result()
    found = stored_notifications(store, store.read_queue(queue).events)
    assert [found.message(n) for n in range(6)] == [message.message(n) for n in range(6)]
    assert found.publications.flags.tolist() == [1] * 6
    store.close()


def test_frame_of_a_neighbour_has_a_row_for_each_event() -> None:
    message = Notifications(PublicationBlock.of(PUBLICATIONS), ROUTES, ROUTE_OF)
    part = selected(message, np.array([1, 2, 5]))
    frame = notified_frame("b", part, has_spaces=False)
    assert [frame.stamps.row(n) for n in range(3)] == [PUBLICATIONS[n].stamp for n in (1, 2, 5)]
    assert frame.trees.rows() == ["a", None, None]
    assert frame.targets is not None
    assert frame.targets.rows() == [ROUTES[n].targets for n in (1, 2, 2)]
    assert frame.examinations is not None
    assert frame.examinations.rows() == [ROUTES[n].examination for n in (1, 2, 2)]
    plain = notified_frame("b", selected(message, np.array([0, 3])), has_spaces=False)
    assert plain.publishers.rows() == ["p", "p"]


def test_an_event_without_a_space_is_in_the_default_space_of_a_network_with_spaces() -> None:
    spaces = (None, "trades", "")
    sent = [
        Publication(Event.of({"x": 1}), Stamp("a", 1, n), "p", space)
        for n, space in enumerate(spaces)
    ]
    message = Notifications(PublicationBlock.of(sent), ROUTES[:1], np.zeros(3, np.int64))
    frame = notified_frame("b", message, has_spaces=True)
    assert frame.spaces.rows() == ["", "trades", ""]
