"""The events of a turn: what came in as one batch for the broker, and what goes out of it.

A frame of a client becomes rows of the batch; what the broker says of each row becomes a block of
publications, of which each receiver gets a selection. The bodies of events are copied as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np

from tidegate.matching.arrays import I64, Bools
from tidegate.network.wire.deliveries import Deliver
from tidegate.network.wire.event_block import EventBlock
from tidegate.network.wire.publications import IS_CONFIRMED, PublicationBlock
from tidegate.routing.batching.columns import StampColumns
from tidegate.routing.batching.routed import Deliveries, RoutedEvents
from tidegate.routing.messages import Client


def publications(events: EventBlock, routed: RoutedEvents, confirmed: Bools) -> PublicationBlock:
    """The events of a batch with the stamps and times that the broker has given them."""
    origins, origin_of = _origins(routed.stamps)
    return PublicationBlock(
        events if routed.batch.times_us is None else events.with_times(routed.batch.times_us),
        origins,
        origin_of,
        routed.stamps.numbers,
        list(routed.publishers.values),
        routed.publishers.codes.astype(np.int64),
        np.where(confirmed, IS_CONFIRMED, 0).astype(np.int64),
    )


def _origins(stamps: StampColumns) -> tuple[list[tuple[str, int]], I64]:
    """The distinct brokers of stamps with their starts, and the index of each event's in them."""
    codes, begun_us, brokers = stamps.brokers.codes, stamps.begun_us, stamps.brokers.values
    if len(codes) and np.all(codes == codes[0]) and np.all(begun_us == begun_us[0]):
        # All come from clients of this broker, or all from one other: mostly so.
        return [(brokers[codes[0]], int(begun_us[0]))], np.zeros(len(codes), np.int64)
    pairs = np.stack([codes.astype(np.int64), begun_us])
    distinct, origin_of = np.unique(pairs, axis=1, return_inverse=True)
    origins = [(brokers[code], begun_us) for code, begun_us in distinct.T.tolist()]
    return origins, origin_of.reshape(-1).astype(np.int64)


@dataclass(frozen=True, slots=True)
class ClientDeliveries:
    """The rows of one client in the deliveries of a turn."""

    client: Client
    events: I64
    """The numbers of the events in the block."""
    match_counts: I64
    handles: I64
    """As on the wire: 0 for subscriptions without a name, else that of the broker plus 1."""
    versions: I64

    def deliver(self, block: PublicationBlock, positions: I64) -> Deliver:
        """The message for the client."""
        return Deliver(
            block.select(self.events), positions, self.match_counts, self.handles, self.versions
        )

    def only(self, keep: Bools) -> ClientDeliveries:
        """Some of the rows."""
        matches = np.repeat(keep, self.match_counts)
        return ClientDeliveries(
            self.client,
            self.events[keep],
            self.match_counts[keep],
            self.handles[matches],
            self.versions[matches],
        )

    def matches(self) -> Iterator[tuple[bool, list[tuple[int, int]]]]:
        """For each row: whether one without a name matches, and handles and versions of others."""
        begin = 0
        handles, versions = self.handles.tolist(), self.versions.tolist()
        for count in self.match_counts.tolist():
            pairs = list(zip(handles[begin : begin + count], versions[begin : begin + count],
                             strict=True))  # fmt: skip
            named = [pair for pair in pairs if pair[0]]
            yield len(named) < len(pairs), named
            begin += count


def by_client(found: Deliveries, clients: Set[Client]) -> Iterator[ClientDeliveries]:
    """The rows of each of some clients, with handles as on the wire."""
    starts = found.client_starts.tolist()
    counts = np.diff(found.match_starts)
    for client, begin, end in zip(found.clients, starts[:-1], starts[1:], strict=True):
        if client not in clients:
            continue
        first, last = found.match_starts[[begin, end]].tolist()
        handles = found.handles[first:last].astype(np.int64) + 1
        versions, match_counts = found.versions[first:last], counts[begin:end]
        unnamed = found.unnamed[begin:end]
        if unnamed.any():
            ends = (np.cumsum(match_counts))[unnamed]
            handles, versions = np.insert(handles, ends, 0), np.insert(versions, ends, 0)
            match_counts = match_counts + unnamed
        yield ClientDeliveries(
            client, found.events[begin:end].astype(np.int64), match_counts, handles, versions
        )


def joined_events(blocks: Sequence[EventBlock]) -> EventBlock:
    """The events of several frames, one after the other, with their values if they are decoded."""
    joined = EventBlock.joined(blocks)
    if len(blocks) > 1 and all("rows" in each.__dict__ for each in blocks):
        joined.__dict__["rows"] = [row for block in blocks for row in block.rows]
    return joined
