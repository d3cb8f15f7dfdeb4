"""Deliveries are kept while a client is away, and requests while it is arriving."""

from __future__ import annotations

import pytest

from tidegate.errors import RoutingError
from tidegate.language.events import Event
from tidegate.routing.clients.sessions import Sessions
from tidegate.routing.messages import Client, Deliver, Depart, Missed, Publication, Stamp

ANN = Client("ann")


def delivery(number: int) -> Deliver:
    return Deliver(Publication(Event.of({"n": number}), Stamp("b", 0, number), "pub"))


def known(kept_max: int = 100) -> Sessions:
    sessions = Sessions(kept_max)
    sessions.begin(ANN)
    return sessions


def test_who_is_there_gets_it_at_once() -> None:
    assert known().deliver(ANN, delivery(1)) == [(ANN, delivery(1))]


def test_what_comes_for_the_suspended_is_kept_in_order() -> None:
    sessions = known()
    sessions.suspend(ANN)
    assert sessions.deliver(ANN, delivery(1)) == sessions.deliver(ANN, delivery(2)) == []
    assert sessions.resume(ANN) == [(ANN, delivery(1)), (ANN, delivery(2))]
    assert sessions.resume(ANN) == []
    assert sessions.deliver(ANN, delivery(3)) == [(ANN, delivery(3))]


def test_the_oldest_go_when_too_many_are_kept_and_the_client_is_told_first() -> None:
    sessions = known(kept_max=2)
    sessions.suspend(ANN)
    for number in range(5):
        sessions.deliver(ANN, delivery(number))
    assert sessions.resume(ANN) == [(ANN, Missed(3)), (ANN, delivery(3)), (ANN, delivery(4))]
    sessions.suspend(ANN)
    assert sessions.resume(ANN) == []  # `Missed` is sent once


@pytest.mark.parametrize("suspended_first", [True, False])
def test_who_is_suspended_and_arriving_waits_for_both(suspended_first: bool) -> None:
    sessions = known()
    sessions.suspend(ANN)
    sessions[ANN].is_arriving = True
    assert sessions.deliver(ANN, delivery(1)) == []
    first, second = (
        (sessions.resume, sessions.arrived) if suspended_first
        else (sessions.arrived, sessions.resume)
    )  # fmt: skip
    assert first(ANN) == []
    assert second(ANN) == [(ANN, delivery(1))]
    assert not sessions[ANN].is_arriving


def test_beginning_again_keeps_what_is_there() -> None:
    sessions = known()
    sessions.suspend(ANN)
    sessions.begin(ANN)
    assert sessions.deliver(ANN, delivery(1)) == []
    assert sessions.resume(ANN) == [(ANN, delivery(1))]


def test_who_has_left_is_unknown() -> None:
    sessions = known()
    sessions.end(ANN)
    assert ANN not in sessions
    sessions.end(ANN)
    for ask in (sessions.suspend, sessions.resume, sessions.arrived):
        with pytest.raises(RoutingError, match="'ann' is not known here"):
            ask(ANN)


def test_requests_of_who_is_arriving_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.routing.clients.sessions.REQUESTS_MAX", 2)
    sessions = known()
    for _ in range(2):
        sessions.postpone(ANN, Depart())
    with pytest.raises(RoutingError, match="'ann' is still on its way here and has 2 requests"):
        sessions.postpone(ANN, Depart())
    assert len(sessions[ANN].requests) == 2


def test_an_event_that_reached_an_earlier_broker_is_not_delivered_here() -> None:
    sessions = known()
    sessions[ANN].seen_elsewhere = {"b": Stamp("b", 0, 2)}
    assert [bool(sessions.deliver(ANN, delivery(number))) for number in (1, 2, 3)] == [
        False, False, True,
    ]  # fmt: skip
    assert sessions[ANN].seen_elsewhere == {}  # none of the earlier events can come any more
