"""The answer to a batch can be read as messages."""

from __future__ import annotations

from support.twin_brokers import incoming_of
from tidegate.language.events import Event
from tidegate.language.filters import parse
from tidegate.language.values import from_us
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Client,
    Deliver,
    FilterDelta,
    Key,
    MatchedVersion,
    Notify,
    Publication,
    Publish,
    Stamp,
    Subscribe,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.strategies import strategy

ANN, PUB = Client("ann"), Client("pub")


def test_deliveries_and_copies_are_the_messages_of_the_same_events() -> None:
    broker = Broker("me", strategy("subscription"), begun_us=2)
    domain = Domain("d", Architecture.ACYCLIC, "me")
    domain.link("peer", 1)
    broker.add_domain(domain)
    broker.handle(Subscribe("x > 1", "s", version=4), ANN, 0)
    broker.handle(Subscribe("x > 2"), ANN, 0)
    broker.handle(FilterDelta(((Key(1, None), parse("x > 2")),)), "peer", 0)
    sent = [(PUB, Publish(Event({"x": x}))) for x in (1, 2, 3)]
    routed = broker.handle_events(incoming_of(sent), 5)
    two, three = (
        Publication(Event({"x": x}, from_us(5)), Stamp("me", 2, x), "pub") for x in (2, 3)
    )
    match = (MatchedVersion("s", 4),)
    assert routed.publication(2) == three
    assert routed.messages(broker.named.name_of) == [
        (ANN, Deliver(two, match, unnamed=False)),
        (ANN, Deliver(three, match, unnamed=True)),
        ("peer", Notify(three)),
    ]
    assert len(routed.deliveries) == 2
