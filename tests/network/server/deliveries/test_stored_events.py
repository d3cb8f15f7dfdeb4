"""Events come back from the store as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.network.server.deliveries.stored_events import (
    client_detail,
    deliveries_of,
    store_events,
)
from tidegate.network.store.store import Store
from tidegate.network.store.transaction import Transaction
from tidegate.network.wire.publications import IS_CONFIRMED, PublicationBlock
from tidegate.routing.messages import Publication, Stamp

TIME = from_us(1_700_000_000_000_000)
PUBLICATIONS = [
    Publication(Event({"x": 1, "s": "a"}, TIME), Stamp("a", 5, 1), "p"),
    Publication(Event({"x": 2.5}, TIME), Stamp("b", 6, 9), "q", "space"),
    Publication(Event({"x": True, "s": "b"}, TIME), Stamp("a", 5, 2), "p"),
    Publication(Event({}, TIME), Stamp("a", 5, 3), "p", ""),
]


def test_events_come_back(tmp_path: Path) -> None:
    store = Store(tmp_path, "a")
    transaction = Transaction()
    positions = [store.next_position() for _ in PUBLICATIONS]
    block = PublicationBlock.of(PUBLICATIONS)
    store_events(store, transaction, block, [0, 1, 2, 3], positions)
    queue = store.queue("client", "ann")
    details = [
        client_detail(False, [("low", 3), ("gone", 1)]),
        client_detail(True, []),
        client_detail(True, [("low", 4)]),
        client_detail(False, [("gone", 1)]),
    ]
    for position, detail in zip(positions, details, strict=True):
        transaction.enqueue(queue, position, detail)
    store.commit(transaction).result()
    store.close()
    store = Store(tmp_path, "a")
    found = deliveries_of(store, store.read_queue(queue).events, {"low": 8}.get)
    assert list(found.publications.publications()) == PUBLICATIONS
    assert found.positions.tolist() == positions
    assert found.match_counts.tolist() == [1, 1, 2, 0]
    assert found.handles.tolist() == [8, 0, 8, 0]
    assert found.versions.tolist() == [3, 0, 4, 0]
    assert np.all(found.publications.flags == IS_CONFIRMED)
    store.close()
