from __future__ import annotations

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.matching.poset.wanted_filter import EvolvingFilter
from tidegate.routing import messages as m
from tidegate.routing.messages import Key, Message
from tidegate.routing.overlay.graph import Announcement
from tidegate.simulation.costs import FREE, Costs, unshared

EVENT = Event.of({"x": 1, "y": 2})
PUBLICATION = m.Publication(EVENT, m.Stamp("b", 0, 1), "bob")


def test_costs_by_kind() -> None:
    costs = Costs(base_us=5, by_kind_us={"Echo": 2})
    assert costs.processor_us(m.Echo("b", 1)) == 2
    assert costs.processor_us(m.Disconnect()) == 5
    assert FREE.processor_us(m.Publish(EVENT)) == 0


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (m.Notify(PUBLICATION), 24 + 2 * 16),
        (m.Notify(PUBLICATION, None, frozenset(["b", "c"])), 24 + 4 * 16),
        (
            m.Notify(PUBLICATION, None, frozenset("c"), m.Examination("d", 1 << 8, 7)),
            24 + 4 * 16 + 2,
        ),
        (m.SummaryUpdate(3, ("a", "b"), (m.Validity("a", 1, 9),), b"xyz"), 24 + 3 * 16 + 3),
        (m.Drained(3, "a", ("b", "c")), 24 + 3 * 16),
        (m.FilterDelta(((Key(1, None), parse("x = 1 and y = 2")),), (Key(0, None),)), 24 + 3 * 16),
        (m.Announce((Announcement("b", 1, (("c", 5), ("d", 6))),)), 24 + 2 * 16),
        (m.Disconnect(), 24 + 16),
    ],
)
def test_bytes(message: Message, size: int) -> None:
    assert FREE.bytes(message) == size


def test_filters_of_an_unshared_message_are_equal_and_not_the_same() -> None:
    filter, evolving = parse("x = 1"), EvolvingFilter(parse("x < t"), 7)
    message = m.FilterDelta(((Key(1, None), filter), (Key(2, None), evolving)))
    copy = unshared(message)
    assert copy == message
    assert isinstance(copy, m.FilterDelta)
    assert copy.added[0][1] is not filter
    disconnect = m.Disconnect()
    assert unshared(disconnect) is disconnect
