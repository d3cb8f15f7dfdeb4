"""How brokers become neighbours and part; what is refused is in test_bad_input.py."""

from __future__ import annotations

import pytest

from support.broker_network import Network
from tidegate.errors import RoutingError
from tidegate.language.filters import parse
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Accept,
    Announce,
    Connect,
    Disconnect,
    FilterDelta,
    Key,
    Refused,
    Subscribe,
    Update,
)
from tidegate.routing.overlay.domains import Architecture, Domain
from tidegate.routing.overlay.graph import Announcement
from tidegate.routing.strategies import strategy


def a_broker(architecture: Architecture = Architecture.ACYCLIC) -> Broker:
    broker = Broker("m", strategy("subscription"))
    broker.add_domain(Domain("d", architecture, "m"))
    return broker


def test_a_broker_that_was_asked_is_no_neighbour_until_it_accepts() -> None:
    broker = a_broker()
    assert broker.join("p", "d", 5) == [("p", Connect("d", 5))]
    assert broker.neighbours.knows("p")
    assert "p" not in broker.domains.domain_of
    sent = broker.handle(Accept("d", 5), "p", 10)
    assert broker.domains.domain_of["p"].neighbours == {"p": 5}
    assert [type(message) for _, message in sent] == [Announce, Announce]


def test_a_broker_that_asks_is_a_neighbour_at_once_and_gets_all_filters() -> None:
    network = Network([])
    network.add("m")
    network.subscribe("m", "ann", "x < 5")
    network.ask("m", "ann", Subscribe("y < :n", "s", {"n": 3}, version=1))
    sent = network.brokers["m"].handle(Connect("d", 7), "p", 10)
    (_, accept), *_, (peer, delta) = sent
    assert accept == Accept("d", 7)
    assert peer == "p"
    assert isinstance(delta, FilterDelta)
    assert [str(item) for _, item in delta.added] == ["x < 5", "y < 3"]


def test_a_refusal_leaves_nothing() -> None:
    broker = a_broker()
    ((_, request),) = broker.join("p", "d", 5)
    broker.neighbours.on_refused(Refused(request, "no"), "p")
    assert not broker.neighbours.knows("p")
    broker.join("p", "d", 5)  # it can ask again


def test_a_request_is_forgotten_when_the_link_is_lost_before_the_answer() -> None:
    broker = a_broker()
    broker.join("p", "d", 5)
    assert broker.link_lost("p", 10) == []
    assert not broker.neighbours.knows("p")


def test_a_lost_link_is_announced_to_the_others() -> None:
    network = Network([("a", "b"), ("b", "c")])
    sent = network.brokers["b"].link_lost("a", 50)
    ((peer, message),) = sent
    assert peer == "c"
    assert isinstance(message, Announce)
    (announced,) = message.announcements
    assert (announced.broker, announced.costs_us) == ("b", (("c", 1),))
    assert network.brokers["b"].link_lost("a", 60) == []  # once


def test_announcements_are_passed_on_once_and_not_back() -> None:
    network = Network([("a", "b"), ("b", "c"), ("b", "d")])
    announce = Announce((Announcement("far", 7, (("a", 3),)),))
    sent = network.brokers["b"].handle(announce, "a", 50)
    assert sent == [("c", announce), ("d", announce)]
    assert network.brokers["b"].handle(announce, "a", 51) == []


def test_the_broker_that_was_asked_becomes_the_master() -> None:
    network = Network([("s", "m")], architecture=Architecture.HIERARCHICAL)
    assert network.brokers["s"].domains.by_name["d"].master == "m"
    assert network.brokers["m"].domains.by_name["d"].master is None
    network.cut("s", "m")
    assert network.brokers["s"].domains.by_name["d"].master is None


def test_a_broker_that_leaves_tells_the_other_end() -> None:
    network = Network([("a", "b"), ("b", "c")])
    sent = network.brokers["b"].leave("c", 50)
    assert ("c", Disconnect()) in sent
    with pytest.raises(RoutingError, match="'c' is not a neighbour of 'b'"):
        network.brokers["b"].leave("c", 60)


def test_a_link_that_comes_up_again_has_new_keys() -> None:
    """An update after a link was down is of what was sent since, under the new key."""
    network = Network([("a", "b")])
    network.ask("a", "ann", Subscribe("x < :n", "s", {"n": 3}, version=1))
    network.run()
    network.cut("a", "b")
    network.ask("a", "ann", Update("s", 2, {"n": 4}))
    assert not any(network.waiting.values())
    network.connect("b", "a")
    assert network.brokers["a"].subscriptions.sent("b") == {Key(2, None): parse("x < 4")}
    network.ask("a", "ann", Update("s", 3, {"n": 5}))
    assert list(network.waiting["a", "b"]) == [FilterDelta(updated=((Key(2, None), ((0, 5),)),))]
    network.run()
    network.publish("b", "pub", x=4.5)
    network.run()
    assert network.delivered("ann") == [{"x": 4.5}]
