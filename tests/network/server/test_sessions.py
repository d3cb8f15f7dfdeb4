"""A session keeps the last answers, and gives patterns handles."""

from __future__ import annotations

from tidegate.language.patterns.pattern import parse_pattern
from tidegate.network.server.deliveries.delivery_queue import DeliveryQueue
from tidegate.network.server.sessions import PATTERN_HANDLES, ClientSession
from tidegate.network.wire.requests import Done
from tidegate.routing.messages import Client


def test_answers_are_bounded() -> None:
    session = ClientSession(Client("ann"), 1, DeliveryQueue(10))
    for number in range(10):
        session.answer(Done(number), 3)
    assert [each.number for each in session.answers] == [7, 8, 9]


def test_pattern_keeps_its_handle() -> None:
    session = ClientSession(Client("ann"), 1, DeliveryQueue(10))
    one, other = parse_pattern("x = 1 then x = 2"), parse_pattern("x = 1 then x = 3")
    assert session.handle_of_pattern(one) is None
    first = session.add_pattern(one)
    assert first > PATTERN_HANDLES
    assert session.add_pattern(other) != first
    assert session.add_pattern(one) == session.handle_of_pattern(one) == first
