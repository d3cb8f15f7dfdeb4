"""Events that come to a broker in one batch: their columns, and from whom each of them comes.

The events of all senders are the rows of one `EventBatch`, frame after frame: each frame says who
sent the next ``length`` rows. A client's frame is as many `Publish` messages, a neighbour's frame
as many `Notify` messages; what those have beside the event is in columns of the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.errors import RoutingError
from tidegate.matching.batches import EventBatch
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.messages import Client, Examination, Peer


@dataclass(frozen=True, slots=True)
class PublishedFrame:
    """Events that a client publishes, all in one space; each is as one `Publish`.

    An event without a time gets that of the call.
    """

    client: Client
    length: int
    space: str | None = None


@dataclass(frozen=True, slots=True)
class NotifiedFrame:
    """Events that a neighbour passes on; each is as one `Notify`.

    The columns have a row for each event. ``targets`` and ``examinations`` are None where no event
    has any, as with all routings but match-first and summaries. Each event must have a time.
    """

    peer: Peer
    stamps: StampColumns
    publishers: Coded[str]
    trees: Coded[Peer | None]
    spaces: Coded[str | None]
    targets: Coded[frozenset[Peer] | None] | None = None
    examinations: Coded[Examination | None] | None = None

    @property
    def length(self) -> int:
        """The number of events."""
        return len(self.stamps)


Frame = PublishedFrame | NotifiedFrame


@dataclass(frozen=True, slots=True)
class IncomingEvents:
    """The events of some frames, in the order in which they are handled.

    ``batch`` has the attributes of all of them, and their times (NO_TIME for none) in ``times_us``;
    its variables are not used. The lengths of the frames add up to its length.
    """

    batch: EventBatch
    frames: Sequence[Frame]

    def check(self) -> None:
        """Raise RoutingError unless the frames fit the batch and their columns fit each other."""
        length = sum(each.length for each in self.frames)
        if length != self.batch.length:
            raise RoutingError(
                f"the frames have {length} events and the batch has {self.batch.length}"
            )
        for frame in self.frames:
            if isinstance(frame, NotifiedFrame):
                columns = (
                    frame.stamps.brokers,
                    frame.stamps.begun_us,
                    frame.publishers,
                    frame.trees,
                    frame.spaces,
                    frame.targets,
                    frame.examinations,
                )
                lengths = [len(each) for each in columns if each is not None]
                if any(each != frame.length for each in lengths):
                    raise RoutingError(
                        f"a frame of {frame.peer!r} has {frame.length} events and columns of "
                        f"{lengths} rows"
                    )
