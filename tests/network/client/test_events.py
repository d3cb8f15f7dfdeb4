from __future__ import annotations

import pytest

from tidegate.errors import NetworkError
from tidegate.language.events import Event
from tidegate.network.client.events import Acknowledgements, Delivery, ReceivedEvent
from tidegate.routing.messages import Stamp


def delivery(position: int) -> Delivery:
    return Delivery(Event({"x": position}), Stamp("a", 1, position), "p", position, 1)


def test_positions_are_acknowledged_without_gaps() -> None:
    acks = Acknowledgements()
    deliveries = [delivery(position) for position in (3, 5, 9, 10)]
    for each in deliveries:
        assert acks.is_new(each.position)
        acks.came(each)
    assert not acks.is_new(10)
    assert acks.received == 10
    one, two, three, four = deliveries
    assert acks.done(two) is None
    assert acks.done(one) == 5
    assert acks.done(four) is None
    assert acks.done(three) == 10
    with pytest.raises(NetworkError, match="acknowledged before"):
        acks.done(two)


def test_an_event_is_read_like_a_mapping() -> None:
    done: list[Delivery] = []
    event = ReceivedEvent(delivery(4), (), done.append)
    assert (event["x"], event.get("y", 7), list(event), "x" in event) == (4, 7, ["x"], True)
    assert (event.position, event.publisher, event.version, event.time) == (4, "p", 0, None)
    assert repr(event) == "ReceivedEvent({'x': 4}, version=0)"
    with pytest.raises(KeyError):
        event["y"]
    event.ack()
    event.ack()
    assert len(done) == 1
