"""Two brokers in the same state: one handles events one by one, the other in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tidegate.language.events import Event
from tidegate.language.values import to_us
from tidegate.matching.arrays import NO_TIME
from tidegate.matching.batches import EventBatch
from tidegate.routing.batching.columns import Coded, StampColumns
from tidegate.routing.batching.incoming import (
    Frame,
    IncomingEvents,
    NotifiedFrame,
    PublishedFrame,
)
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Address,
    Client,
    Deliver,
    Message,
    Notify,
    Outgoing,
    Publish,
    Refused,
)

Sent = tuple[Address, Publish | Notify]


def incoming_of(sent: Sequence[Sent]) -> IncomingEvents:
    """Messages with events as a batch: a frame for each run of one sender and space."""
    events: list[Event] = []
    frames: list[Frame] = []
    run: list[Sent] = []
    for each in [*sent, None]:
        if run and (each is None or _sender(each) != _sender(run[0])):
            frames.append(_frame(run))
            run = []
        if each is not None:
            run.append(each)
            message = each[1]
            events.append(
                message.event if isinstance(message, Publish) else message.publication.event
            )
    times = [NO_TIME if each.time is None else to_us(each.time) for each in events]
    batch = EventBatch.of_events(events).judged_at(np.array(times, np.int64))
    return IncomingEvents(batch, frames)


def _sender(sent: Sent) -> tuple[Address, str | None]:
    sender, message = sent
    return sender, message.space if isinstance(message, Publish) else None


def _frame(run: list[Sent]) -> Frame:
    sender, first = run[0]
    if isinstance(sender, Client):
        assert isinstance(first, Publish)
        return PublishedFrame(sender, len(run), first.space)
    messages = [message for _, message in run if isinstance(message, Notify)]
    publications = [each.publication for each in messages]
    return NotifiedFrame(
        sender,
        StampColumns.of([each.stamp for each in publications]),
        Coded.of(each.publisher for each in publications),
        Coded.of(each.tree for each in messages),
        Coded.of(each.space for each in publications),
        Coded.of(each.targets for each in messages),
        Coded.of(each.examination for each in messages),
    )


class TwinBrokers:
    """A broker that handles events one by one, and its twin that handles them in batches."""

    def __init__(self, make: Callable[[], Broker]) -> None:
        self.single, self.batching = make(), make()
        self.now_us = 0

    def both(self, sender: Address, message: Message) -> None:
        """Have both handle a message."""
        assert self.single.handle(message, sender, self.now_us) == self.batching.handle(
            message, sender, self.now_us
        )

    def check(self, sent: Sequence[Sent]) -> None:
        """Have both handle events; their answers must be the same for each receiver."""
        one_by_one: Outgoing = []
        for sender, message in sent:
            one_by_one += self.single.handle(message, sender, self.now_us)
        routed = self.batching.handle_events(incoming_of(sent), self.now_us)
        at_once = routed.messages(self.batching.named.name_of)
        for number in sorted(routed.refused):
            sender, message = sent[number]
            at_once.append((sender, Refused(message, str(routed.refused[number]))))
        assert by_receiver(at_once) == by_receiver(one_by_one)
        assert self.single.events.last_seen() == self.batching.events.last_seen()


def by_receiver(sent: Iterable[tuple[Address, Message]]) -> dict[Address, list[Message]]:
    """The messages for each receiver in their order, refusals last; matches in a fixed order."""
    messages: dict[Address, list[Message]] = {}
    for receiver, message in sent:
        if isinstance(message, Deliver):
            matches = tuple(sorted(message.matches))
            message = Deliver(message.publication, matches, message.unnamed)
        messages.setdefault(receiver, []).append(message)
    return {
        receiver: sorted(each, key=lambda message: isinstance(message, Refused))
        for receiver, each in messages.items()
    }
