"""Pairs become one row for each client and event."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.routing.batching.delivery_rows import NO_HANDLE, deliveries
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.messages import Client

CLIENTS = [Client(each) for each in ("ann", "bob", "cat")]
LENGTH = 4

pairs_of_clients = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, LENGTH - 1), st.integers(NO_HANDLE, 5))
)


@given(pairs_of_clients)
def test_each_client_gets_an_event_once_with_all_that_matched(
    pairs: list[tuple[int, int, int]],
) -> None:
    sessions = Sessions()
    for each in CLIENTS:
        sessions.begin(each)
    clients, events, handles = np.array(pairs, np.int64).reshape(-1, 3).T
    found, rows = deliveries(
        LENGTH, sessions, clients, events.astype(np.int32), handles, handles * 10
    )
    expected: dict[tuple[int, int], list[int]] = {}
    for client, event, handle in pairs:
        expected.setdefault((client, event), []).append(handle)
    order = sorted(expected)
    assert [CLIENTS.index(each) for each in found.clients] == sorted({each for each, _ in order})
    assert found.events.tolist() == [event for _, event in order]
    assert np.diff(found.client_starts).tolist() == [
        sum(client == each for each, _ in order) for client in sorted({each for each, _ in order})
    ]
    for row, key in enumerate(order):
        begin, end = found.match_starts[row : row + 2].tolist()
        named = [each for each in expected[key] if each != NO_HANDLE]
        assert found.handles[begin:end].tolist() == named
        assert found.versions[begin:end].tolist() == [each * 10 for each in named]
        assert found.unnamed.item(row) == (NO_HANDLE in expected[key])
    assert [order[row] for row in rows.tolist()] == [pair[:2] for pair in pairs]
