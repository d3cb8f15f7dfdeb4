from __future__ import annotations

import pytest

from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.routing import messages as m
from tidegate.routing.broker import Broker
from tidegate.routing.messages import Client, Key, Message
from tidegate.routing.overlay.graph import Announcement
from tidegate.routing.strategies import strategy
from tidegate.simulation.costs import FREE, Costs

EVENT = Event.of({"x": 1, "y": 2})
PUBLICATION = m.Publication(EVENT, m.Stamp("b", 0, 1), "bob")


def broker_with(filters: int) -> Broker:
    broker = Broker("b", strategy("subscription"))
    for x in range(filters):
        broker.handle(m.Subscribe(f"x = {x}"), Client(f"c{x}"), now_us=0)
    return broker


def test_a_type_may_have_a_cost_of_its_own() -> None:
    costs = Costs(base_us=5, by_kind_us={"Echo": 2})
    broker = broker_with(0)
    assert costs.processor_us(m.Echo("b", 1), broker) == 2
    assert costs.processor_us(m.Disconnect(), broker) == 5
    assert FREE.processor_us(m.Publish(EVENT), broker) == 0


def test_matching_costs_by_the_filters_that_are_there() -> None:
    costs = Costs(base_us=5, match_us_per_filter=0.5)
    broker = broker_with(8)
    assert costs.processor_us(m.Publish(EVENT), broker) == 9
    assert costs.processor_us(m.Notify(PUBLICATION), broker) == 9
    assert costs.processor_us(m.Disconnect(), broker) == 5


@pytest.mark.parametrize(
    ("message", "size"),
    [
        (m.Notify(PUBLICATION), 24 + 2 * 16),
        (m.Notify(PUBLICATION, None, frozenset(["b", "c"])), 24 + 4 * 16),
        (m.Interests(((Key(1, None), parse("x = 1 and y = 2")),), (Key(0, None),)), 24 + 3 * 16),
        (m.Announce((Announcement("b", 1, (("c", 5), ("d", 6))),)), 24 + 2 * 16),
        (m.Disconnect(), 24 + 16),
    ],
)
def test_bytes(message: Message, size: int) -> None:
    assert FREE.bytes(message) == size
