"""The costs of messages: processor time at a broker, and bytes on a link."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tidegate.language.filters import Filter
from tidegate.matching.poset.wanted_filter import EvolvingFilter, WantedFilter, underlying_filter
from tidegate.routing import messages as m
from tidegate.routing.messages import Message

# Rough sizes on the wire. They matter for comparisons of routings, not as absolute numbers.
HEADER_BYTES = 24
VALUE_BYTES = 16
"""The size of a name and a value."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The processor time that a broker takes for a message."""

    base_us: int = 0
    """For a message whose kind has no time of its own."""
    by_kind_us: Mapping[str, int] = field(default_factory=dict)
    """By `kind_of` the message."""
    step_us: float = 0.0
    """For each matching step of a message, in addition; the substrate must count them."""

    def processor_us(self, message: Message) -> int:
        """The processor time that a broker takes for a message."""
        if self.by_kind_us:
            return self.by_kind_us.get(kind_of(message), self.base_us)
        return self.base_us

    def bytes(self, message: Message) -> int:
        """The size of a message on a link."""
        match message:
            case m.Notify(publication, _, destinations, examination):
                values = len(publication.event.attributes) + len(destinations or ())
                if examination is not None:
                    values += 1  # the name of the examiner
                bits = 0 if examination is None else examination.examined.bit_length()
                return HEADER_BYTES + VALUE_BYTES * values + -(-bits // 8)
            case m.SummaryUpdate(_, brokers, validity, tables):
                names = len(brokers) + len(validity)
                return HEADER_BYTES + VALUE_BYTES * names + len(tables)
            case m.Drained(_, _, stops):
                return HEADER_BYTES + VALUE_BYTES * (1 + len(stops))
            case m.FilterDelta(added, removed, updated):
                attributes = sum(len(each.attributes) for _, each in added)
                cells = sum(len(each) for _, each in updated)
                return HEADER_BYTES + VALUE_BYTES * (attributes + len(removed) + cells)
            case m.Sync(_, filters, advertisements):
                attributes = sum(len(each.attributes) for _, each in filters or ())
                attributes += len(advertisements or ())
                return HEADER_BYTES + VALUE_BYTES * (1 + attributes)
            case m.Announce(announcements):
                links = sum(len(each.costs_us) for each in announcements)
                return HEADER_BYTES + VALUE_BYTES * links
        return HEADER_BYTES + VALUE_BYTES


def kind_of(message: Message) -> str:
    """The type of a message; for filters also whether some are added, removed or updated.

    Brokers take very different times for the three.

    >>> kind_of(m.FilterDelta(removed=(m.Key(1, None),)))
    'FilterDelta -'
    """
    name = type(message).__name__
    if isinstance(message, m.FilterDelta):
        parts = (message.added, "+"), (message.removed, "-"), (message.updated, "~")
        return f"{name} {''.join(sign for part, sign in parts if part)}"
    return name


def unshared(message: Message) -> Message:
    """A copy of a message whose filters have no cached results, as if read from a network.

    In the world a message is an object that brokers share. What one of them computes and caches in
    a filter (its normal form, for example) would cost the others nothing, and falsify their times.
    """
    if isinstance(message, m.Sync) and message.filters is not None:
        filters = tuple((key, _uncached(each)) for key, each in message.filters)
        return replace(message, filters=filters)
    if not isinstance(message, m.FilterDelta):
        return message
    return replace(message, added=tuple((key, _uncached(each)) for key, each in message.added))


def _uncached(wanted: WantedFilter) -> WantedFilter:
    filter = Filter.of_shape(*underlying_filter(wanted).shape_and_row)
    return replace(wanted, filter=filter) if isinstance(wanted, EvolvingFilter) else filter


FREE = Costs()
