"""Sorting the pairs of an event and a client's subscription into deliveries."""

from __future__ import annotations

import numpy as np

from tidegate.matching.arrays import I32, I64, Bools
from tidegate.routing.batching.routed import Deliveries
from tidegate.routing.clients.sessions import Sessions

NO_HANDLE = -1
"""In place of a handle: the subscription has no name."""


def deliveries(
    length: int, sessions: Sessions, clients: I64, events: I32, handles: I64, versions: I64
) -> tuple[Deliveries, I64]:
    """The deliveries for pairs of a client, by number, and an event, with what matched.

    ``length`` is the number of events in the batch. Also returns the row of each pair.
    """
    keys = clients * length + events
    order = np.argsort(keys, kind="stable")
    keys, events, handles = keys[order], events[order], handles[order]
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    numbers = clients[order][begins]
    client_begins = np.flatnonzero(np.diff(numbers, prepend=-1))
    is_named: Bools = handles != NO_HANDLE
    named_before = np.concatenate([[0], np.cumsum(is_named)])
    ends = np.append(begins[1:], len(keys))
    found = Deliveries(
        clients=[sessions.client(each) for each in numbers[client_begins].tolist()],
        client_starts=np.append(client_begins, len(begins)),
        events=events[begins],
        unnamed=ends - begins > named_before[ends] - named_before[begins],
        match_starts=named_before[np.append(begins, len(keys))],
        handles=handles[is_named].astype(np.int32),
        versions=versions[order][is_named],
    )
    rows = np.empty(len(keys), np.int64)
    rows[order] = np.repeat(np.arange(len(begins)), ends - begins)
    return found, rows
