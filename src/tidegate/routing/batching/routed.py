"""What becomes of a batch of events: who gets which of them, as arrays.

A runtime encodes these arrays as they are; nothing here is an object per delivery. The `messages`
that the same events would have led to one by one can be had from them (`RoutedEvents.messages`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.errors import TidegateError
from tidegate.matching.arrays import I32, I64, Bools
from tidegate.matching.batches import EventBatch
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.messages import (
    Client,
    Deliver,
    Examination,
    MatchedVersion,
    Notify,
    Outgoing,
    Peer,
    Publication,
)

NameOf = Callable[[int], str]
"""The name of a named subscription by its handle."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Which clients get which events: a row for each event and client, the clients one by one.

    Client ``clients[i]`` gets the rows from ``client_starts[i]`` to before
    ``client_starts[i + 1]``, in the order of the events. The matches of row ``j``, as handles and
    versions, are those from ``match_starts[j]`` to before ``match_starts[j + 1]``.
    """

    clients: Sequence[Client]
    client_starts: I64
    events: I32
    """The event of each row, by its number in the batch."""
    unnamed: Bools
    """Whether a subscription without a name matches."""
    match_starts: I64
    handles: I32
    """The named subscription of each match (see `NamedSubscriptions.handle`)."""
    versions: I64
    """The version of the named subscription that matches."""

    def __len__(self) -> int:
        return len(self.events)

    def delivery(self, row: int, publication: Publication, name_of: NameOf) -> Deliver:
        """One row as a message."""
        begin, end = self.match_starts[row : row + 2].tolist()
        matches = tuple(
            MatchedVersion(name_of(handle), version)
            for handle, version in zip(
                self.handles[begin:end].tolist(), self.versions[begin:end].tolist(), strict=True
            )
        )
        return Deliver(publication, matches, unnamed=bool(self.unnamed[row]))


@dataclass(frozen=True, slots=True)
class PassedOn:
    """The events that go on to one neighbour, in their order; the columns have a row for each."""

    events: I32
    trees: Coded[Peer | None]
    targets: Coded[frozenset[Peer] | None]
    examinations: Coded[Examination | None]


@dataclass(frozen=True, slots=True)
class RoutedEvents:
    """The answer to a batch of events."""

    batch: EventBatch
    """The events with the times at which they were judged, as their clients see them."""
    stamps: StampColumns
    """The stamp of each event; the number of one that was not accepted here is 0."""
    publishers: Coded[str]
    spaces: Coded[str | None]
    refused: Mapping[int, TidegateError]
    """Why an event was refused, by its number in the batch."""
    deliveries: Deliveries
    passed_on: Mapping[Peer, PassedOn]
    sent: Outgoing = field(default_factory=list)
    """Other messages. Each of them goes out after the events for its receiver."""

    def publication(self, index: int) -> Publication:
        """One event as a publication, by its number in the batch."""
        return Publication(
            self.batch.timed_event(index),
            self.stamps.row(index),
            self.publishers.row(index),
            self.spaces.row(index),
        )

    def messages(self, name_of: NameOf) -> Outgoing:
        """What `Broker.handle` would have sent for the events, receiver by receiver."""
        sent: Outgoing = []
        found, publications = self.deliveries, _Publications(self)
        for client, begin, end in zip(
            found.clients,
            found.client_starts[:-1].tolist(),
            found.client_starts[1:].tolist(),
            strict=True,
        ):
            for row in range(begin, end):
                publication = publications[found.events.item(row)]
                sent.append((client, found.delivery(row, publication, name_of)))
        for peer, passed in self.passed_on.items():
            for row, event in enumerate(passed.events.tolist()):
                notify = Notify(
                    publications[event],
                    passed.trees.row(row),
                    passed.targets.row(row),
                    passed.examinations.row(row),
                )
                sent.append((peer, notify))
        return sent + self.sent


class _Publications(dict[int, Publication]):
    """The publications of a batch, each made once."""

    def __init__(self, routed: RoutedEvents) -> None:
        super().__init__()
        self._routed = routed

    def __missing__(self, index: int) -> Publication:
        self[index] = self._routed.publication(index)
        return self[index]
