"""Event routing: an event is stamped, delivered once, and passed on along one tree."""

from __future__ import annotations

from support.broker_network import BrokerHarness, Network
from tidegate.language.events import Event
from tidegate.language.values import from_us
from tidegate.routing.broker import Broker
from tidegate.routing.messages import (
    Client,
    Deliver,
    Notify,
    Publication,
    Publish,
    Stamp,
    Subscribe,
)
from tidegate.routing.overlay.domains import Architecture
from tidegate.routing.strategies import strategy

LINE = [("a", "b"), ("b", "c"), ("c", "d")]
ANN = Client("ann")


def alone() -> Network:
    network = Network([])
    network.add("a")
    return network


def publication(number: int, broker: str = "far", begun_us: int = 0) -> Publication:
    return Publication(Event.of({"x": 1}, from_us(5)), Stamp(broker, begun_us, number), "pub")


def test_an_event_gets_a_time_a_stamp_and_the_name_of_who_published_it() -> None:
    network = alone()
    network.subscribe("a", "ann", "x = 1")
    network.now_us = 10
    network.ask("a", "pub", Publish(Event.of({"x": 1})))
    at = from_us(5)
    network.ask("a", "pub", Publish(Event.of({"x": 1}, at)))
    assert network.received["ann"] == [
        Deliver(Publication(Event.of({"x": 1}, from_us(10)), Stamp("a", 1, 1), "pub")),
        Deliver(Publication(Event.of({"x": 1}, at), Stamp("a", 1, 2), "pub")),
    ]


def test_who_has_two_subscriptions_that_match_gets_an_event_once() -> None:
    network = Network(LINE)
    network.subscribe("d", "ann", "x = 1")
    network.subscribe("d", "ann", "y = 1")
    network.run()
    network.publish("a", "pub", x=1, y=1)
    network.run()
    assert network.delivered("ann") == [{"x": 1, "y": 1}]


def test_who_publishes_gets_its_own_events_if_it_wants_them() -> None:
    network = alone()
    network.subscribe("a", "ann", "x = 1")
    network.publish("a", "ann", x=1)
    assert network.delivered("ann") == [{"x": 1}]


def test_the_second_copy_of_an_event_is_dropped() -> None:
    network = Network(LINE)
    network.subscribe("b", "ann", "x = 1")
    network.run()
    network.publish("a", "pub", x=1)
    (message,) = network.waiting["a", "b"]
    for _ in range(2):
        network.take("b", network.brokers["b"].handle(message, "a", network.now_us))
    assert network.delivered("ann") == [{"x": 1}]


def test_a_broker_that_has_restarted_counts_anew_and_is_heard() -> None:
    network = Network(LINE)
    network.subscribe("b", "ann", "x > 0")
    network.run()
    for x in (1, 2):
        network.publish("a", "pub", x=x)
    network.run()
    network.cut("a", "b")
    network.run()
    del network.brokers["a"]
    network.connect("a", "b")
    network.publish("a", "pub", x=3)
    network.run()
    assert network.delivered("ann") == [{"x": 1}, {"x": 2}, {"x": 3}]


def test_only_a_newer_event_of_the_same_broker_is_routed() -> None:
    """Numbers start again when a broker restarts, and brokers are counted one by one."""
    harness = BrokerHarness(Broker("m", strategy("subscription")), "p", "q")
    harness.send(ANN, Subscribe("x = 1"))
    routed = []
    for broker, begun_us, number in (
        ("far", 10, 2),
        ("far", 10, 1),  # overtaken
        ("far", 10, 2),  # a second copy
        ("other", 0, 1),
        ("far", 20, 1),  # restarted
        ("far", 10, 3),  # from before the restart
        ("m", 0, 9),  # its own
    ):
        sent = publication(number, broker, begun_us)
        harness.send("p", Notify(sent))
        routed.append((ANN, Deliver(sent)) in harness.others)
    assert routed == [True, False, False, True, True, False, False]


def test_the_last_events_seen_are_known_by_broker() -> None:
    harness = BrokerHarness(Broker("m", strategy("subscription"), begun_us=7), "p", "q")
    assert harness.broker.events.last_seen() == (Stamp("m", 7, 0),)
    harness.send("p", Notify(publication(4)))
    harness.send("q", Notify(publication(2, "other")))
    harness.send(ANN, Publish(Event.of({"x": 1})))
    assert harness.broker.events.last_seen() == (
        Stamp("m", 7, 1), Stamp("far", 0, 4), Stamp("other", 0, 2),
    )  # fmt: skip


def test_a_broker_that_is_no_target_does_not_match() -> None:
    """With a list of targets only these deliver; the others pass the event on."""
    network = Network([("a", "b"), ("b", "c")], "match-first")
    network.subscribe("c", "ann", "x = 1")
    network.run()
    network.subscribe("b", "bob", "x = 1")
    network.publish("a", "pub", x=1)  # before a knows of bob
    network.run()
    assert network.delivered("ann") == [{"x": 1}]
    assert network.delivered("bob") == []


def test_in_a_ring_an_event_comes_once() -> None:
    network = Network([*LINE, ("d", "a")], architecture=Architecture.GENERAL)
    for name in "abcd":
        network.subscribe(name, f"at-{name}", "x = 1")
    network.run()
    network.publish("a", "pub", x=1)
    links = 0
    while network.step():
        links += 1
    assert links == 3  # a tree of four brokers
    assert all(network.delivered(f"at-{name}") == [{"x": 1}] for name in "abcd")
