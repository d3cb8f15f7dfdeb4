"""What messages cost: the processor of a broker, and bytes on a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.language.filters import Filter
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, filter_of
from tidegate.routing import messages as m
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Message

HEADER_BYTES = 24
VALUE_BYTES = 16
"""A name and a value, roughly."""


@dataclass(frozen=True, slots=True)
class Costs:
    """How long a broker takes for a message, by its type, and for each filter it holds."""

    base_us: int = 0
    by_kind_us: Mapping[str, int] = field(default_factory=dict)
    """By what `kind_of` says of a message."""
    match_us_per_filter: float = 0.0

    def processor_us(self, message: Message, broker: Broker) -> int:
        """How long a broker takes for a message."""
        cost = self.base_us
        if self.by_kind_us:
            cost = self.by_kind_us.get(kind_of(message), cost)
        if self.match_us_per_filter and isinstance(message, m.Notify | m.Publish):
            cost += round(self.match_us_per_filter * len(broker.subscriptions.poset))
        return cost

    def bytes(self, message: Message) -> int:
        """How long a message is on a link."""
        match message:
            case m.Notify(publication, _, destinations):
                values = len(publication.event.attributes) + len(destinations or ())
                return HEADER_BYTES + VALUE_BYTES * values
            case m.Interests(wanted, unwanted, altered):
                attributes = sum(len(each.attributes) for _, each in wanted)
                cells = sum(len(each) for _, each in altered)
                return HEADER_BYTES + VALUE_BYTES * (attributes + len(unwanted) + cells)
            case m.Announce(announcements):
                links = sum(len(each.costs_us) for each in announcements)
                return HEADER_BYTES + VALUE_BYTES * links
        return HEADER_BYTES + VALUE_BYTES


def kind_of(message: Message) -> str:
    """The name of its type; of interests also whether some are new, gone or altered.

    >>> kind_of(m.Interests(unwanted=(m.Key(1, None),)))
    'Interests -'
    """
    name = type(message).__name__
    if isinstance(message, m.Interests):
        parts = (message.wanted, "+"), (message.unwanted, "-"), (message.altered, "~")
        return f"{name} {''.join(sign for part, sign in parts if part)}"
    return name


def unshared(message: Message) -> Message:
    """A message as it comes from a network: nothing is known of its filters but what they say.

    In the world messages are objects, and what one broker has worked out of a filter all others
    would have for free.
    """
    if not isinstance(message, m.Interests):
        return message
    return replace(message, wanted=tuple((key, _anew(each)) for key, each in message.wanted))


def _anew(standing: WantedFilter) -> WantedFilter:
    filter = Filter.of_shape(*filter_of(standing).shape_and_row)
    return replace(standing, filter=filter) if isinstance(standing, EvolvingFilter) else filter


FREE = Costs()
