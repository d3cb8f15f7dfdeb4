"""Many requests are handled in order and settled once."""

from __future__ import annotations

from support.broker_network import Ledger, Network
from tidegate.language.events import Event
from tidegate.routing.messages import (
    Cancel,
    Client,
    Depart,
    FilterDelta,
    InForce,
    Message,
    Probe,
    Publish,
    Subscribe,
    Unsubscribe,
    Update,
)

ANN, BOB = Client("ann"), Client("bob")


def named(name: str, version: int, limit: int, *, confirm: bool = False) -> Subscribe:
    return Subscribe("x < :limit", name, {"limit": limit}, version=version, confirm=confirm)


def test_neighbours_learn_of_all_requests_in_one_message() -> None:
    network = Network([("a", "b")])
    requests: list[tuple[Client, Message]] = [
        (ANN, named("s", 1, 1)),
        (ANN, Update("s", 2, {"limit": 5})),
        (ANN, Update("s", 3, {"limit": 9})),
        (BOB, named("gone", 1, 20)),
        (BOB, Cancel("gone")),
        (BOB, Subscribe("y = 1")),
    ]
    handled = network.brokers["a"].handle_requests(requests, now_us=1)
    assert handled.errors == {}
    ((peer, delta),) = handled.sent
    assert peer == "b"
    assert isinstance(delta, FilterDelta)
    ledger = Ledger()
    ledger.take(delta)
    assert sorted(ledger.texts()) == ["x < 9", "y = 1"]


def test_a_request_that_is_refused_does_not_concern_the_others() -> None:
    network = Network([("a", "b")])
    requests: list[tuple[Client, Message]] = [
        (ANN, Subscribe("x <")),
        (ANN, named("s", 1, 1)),
        (BOB, Update("s", 2, {"limit": 5})),
        (BOB, Unsubscribe("x = 1")),
    ]
    handled = network.brokers["a"].handle_requests(requests, now_us=1)
    assert list(handled.errors) == [0, 2, 3]
    assert "bob" in str(handled.errors[2])
    assert [type(message) for _, message in handled.sent] == [FilterDelta]


def test_one_wave_confirms_all_and_follows_the_change() -> None:
    network = Network([("a", "b")])
    requests: list[tuple[Client, Message]] = [
        (ANN, named("s", 1, 1, confirm=True)),
        (ANN, named("gone", 2, 1, confirm=True)),
        (BOB, named("s", 1, 3, confirm=True)),
        (ANN, Update("s", 3, {"limit": 5}, confirm=True)),
        (ANN, Cancel("gone")),
    ]
    handled = network.brokers["a"].handle_requests(requests, now_us=1)
    assert [type(message) for _, message in handled.sent] == [FilterDelta, Probe]
    network.take("a", handled.sent)
    network.run()
    assert network.in_force("ann") == [("s", 3)]
    assert network.in_force("bob") == [("s", 1)]


def test_without_neighbours_all_is_in_force_at_once() -> None:
    network = Network([])
    broker = network.add("a")
    requests = [(ANN, named(f"s{number}", number, 1, confirm=True)) for number in range(3)]
    handled = broker.handle_requests(requests, now_us=1)
    assert handled.sent == [(ANN, InForce(f"s{number}", number)) for number in range(3)]


def test_an_event_among_requests_is_matched_by_those_before_it() -> None:
    network = Network([])
    broker = network.add("a")
    requests: list[tuple[Client, Message]] = [
        (ANN, named("s", 1, 10)),
        (BOB, Publish(Event({"x": 5}))),
        (ANN, Update("s", 2, {"limit": 1})),
        (BOB, Publish(Event({"x": 5}))),
        (ANN, Depart()),
    ]
    network.take("a", broker.handle_requests(requests, now_us=1).sent)
    assert network.delivered("ann") == [{"x": 5}]
    assert ANN not in broker.sessions
