"""What messages cost: the processor of a broker, and bytes on a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
    by_type_us: Mapping[type[Message], int] = field(default_factory=dict)
    match_us_per_filter: float = 0.0

    def processor_us(self, message: Message, broker: Broker) -> int:
        """How long a broker takes for a message."""
        cost = self.by_type_us.get(type(message), self.base_us)
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


FREE = Costs()
